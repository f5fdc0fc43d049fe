"""Updates of a framework and by the reference's rule on the framework's own gradients."""

import numpy as np
from harness.adapter import RankContext, Unsupported
from harness.measuring.verification.errors import compare_arrays
from reference.optimizers import OPTIMIZERS, clip_by_global_norm

from .prelude import ADDRESSES, FRAMEWORK, RANK, batch_of, module_of, raised, started

COMPILER = "jit" if FRAMEWORK == "jax" else "none"


def changed(model_config, **hyper):
    return {**model_config, "hyperparameters": {**model_config["hyperparameters"], **hyper}}


def widened(arrays):
    return {name: np.asarray(array, np.float64) for name, array in arrays.items()}


def clipped(model_config, gradients):
    return clip_by_global_norm(gradients, model_config["hyperparameters"]["clip_global_norm"])


def mean(several):
    return {name: sum(entry[name] for entry in several) / len(several) for name in several[0]}


def apart(change, hyper, weights, gradients):
    """Return how far a change is from the reference's with these gradients."""
    after = dict(weights)
    OPTIMIZERS[hyper["optimizer"]](hyper).step(after, dict(gradients))
    wanted = {name: after[name] - weights[name] for name in after}
    return ["fp32", compare_arrays("first update", change, wanted, 0.05)]


def prepared(model_config, steps=1, **options):
    adapter = started(model_config, compiler=COMPILER, steps=steps, **options)
    adapter.build(batch_of(model_config, 2 * steps, rank=RANK))
    return adapter


def moved(adapter):
    """Return weights, gradients, and the change of the weights by a step."""
    weights, gradients = widened(adapter.weights()), widened(adapter.gradients())
    adapter.step()
    after = adapter.weights()
    return weights, gradients, {name: after[name] - weights[name] for name in weights}


def update_by_lamb(model_config):
    """Compare an update after two micro-steps with and without clipping."""
    model_config = changed(model_config, no_trust_ratio=[])
    weights, gradients, change = moved(prepared(model_config, steps=2))
    ways = {"right": clipped(model_config, gradients), "not clipped": gradients}
    errors = {
        n: apart(change, model_config["hyperparameters"], weights, way) for n, way in ways.items()
    }
    zeros = sum(not array.any() for array in weights.values())
    wrong = changed(model_config, no_weight_decay=["nrom"])
    return {"errors": errors, "zeros": zeros, "absent": raised(ValueError, lambda: prepared(wrong))}


def refuse(model_config, compiler=COMPILER, **hyper):
    """Build a model with hyperparameters that the framework does not have."""
    few = changed(model_config, **hyper)
    adapter = started(few, compiler=compiler)
    return {"reason": raised(Unsupported, lambda: adapter.build(batch_of(few)))}


def clip_over_ranks(model_config):
    """Compare an update with clipping of the whole gradient, and of parts of it."""
    adapter = prepared(model_config, steps=2)
    weights, _, change = moved(adapter)
    rank_context = RankContext(0, 0, ADDRESSES[RANK : RANK + 1], "cpu", 1, seed=7)
    alone, each = prepared(model_config, rank_context=rank_context), []
    for rank in range(2):
        batch = batch_of(model_config, 4, rank=rank)
        for part in (slice(0, 2), slice(2, 4)):
            alone.put({name: array[part] for name, array in batch.items()})
            each.append(widened(alone.gradients()))
    ways = {
        "right": clipped(model_config, mean(each)),
        "of ranks": mean([clipped(model_config, mean(half)) for half in (each[:2], each[2:])]),
        "of micro-steps": mean([clipped(model_config, entry) for entry in each]),
        "of none": mean(each),
    }
    hyper = model_config["hyperparameters"]
    errors = {name: apart(change, hyper, weights, way) for name, way in ways.items()}
    return {"errors": errors, "checksum": adapter.weights_checksum()}


def share_parameters(model_config):
    """Compare updates where ranks share the parameters."""
    errors = {}
    for parallelism in ("fsdp", "tensor"):
        adapter = started(model_config, parallelism=parallelism)
        module_of("parallel.data_parallel").join = lambda *where: "gloo"  # once in a process
        adapter.build(batch_of(model_config, 2, rank=adapter.case.layout.replica(RANK)))
        weights, gradients, change = moved(adapter)
        hyper = model_config["hyperparameters"]
        errors[parallelism] = apart(change, hyper, weights, clipped(model_config, gradients))
    return {"errors": errors}


def leave_out_decay(model_config, optimizers):
    """Compare updates without decay of some parameters, and with it.
    Biases start at zero, which decay does not change: all weights are moved before the step."""
    no_decay, errors = ["bias", "norm"], {}
    for optimizer, hyper in optimizers.items():
        own = changed(model_config, optimizer=optimizer, no_weight_decay=no_decay, **hyper)
        adapter = prepared(own)
        adapter.load_weights({name: array + 0.1 for name, array in adapter.weights().items()})
        weights, gradients, change = moved(adapter)
        if hyper["clip_global_norm"] is not None:
            gradients = clipped(own, gradients)
        ways = {"right": no_decay, "all decay": [], "biases decay": ["norm"]}
        for about, left_out in ways.items():
            named = {**own["hyperparameters"], "no_weight_decay": left_out}
            errors[f"{optimizer}: {about}"] = apart(change, named, weights, gradients)
        adapter.stop()
    return {"errors": errors}
