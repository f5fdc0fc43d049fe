"""Updates of a framework, and by the reference's rule; gradients added up over micro-steps."""

import numpy as np
from harness.adapter import RankContext, Unsupported
from harness.kinds.verification import ReferenceFolder, compare
from harness.measuring.errors import compare_arrays
from reference.weights import OPTIMIZERS, clip_by_global_norm

from .prelude import ADDRESSES, FRAMEWORK, RANK, batch_of, load_model_config, raised, started
from .small import small_bert


def compare_mean(folder, compilers):
    reference, errors = ReferenceFolder(folder), {}
    for compiler in compilers:
        adapter = started(load_model_config(folder), compiler=compiler, steps=2)
        adapter.build(reference.prepare(adapter))
        errors[compiler] = ["fp32", compare(adapter, reference, print)]
    return {"errors": errors}


def train_together(compiler):
    adapter = started(small_bert(layers=0), compiler=compiler, steps=3)
    adapter.build(batch_of(small_bert(layers=0), 6, rank=RANK))
    adapter.step()
    return {"checksum": adapter.weights_checksum(), "sent": sent_by(adapter)}


def sent_by(adapter):
    """Return how many messages PyTorch's step sends for each bucket; 1 for other frameworks."""
    if type(adapter).MODULE != "torch":
        return 1
    import torch

    with torch.autograd.profiler.profile() as profiled:
        adapter.step()
    sent = sum(event.name == "c10d::allreduce_" for event in profiled.function_events)
    return sent / len(adapter.gradient_messages())


COMPILER = "jit" if FRAMEWORK == "jax" else "none"


def widened(arrays):
    return {name: np.asarray(array, np.float64) for name, array in arrays.items()}


def mean(several):
    return {name: sum(entry[name] for entry in several) / len(several) for name in several[0]}


def refuse(model_config, compiler=COMPILER, parallelism="data", **hyper):
    few = {**model_config, "hyperparameters": {**model_config["hyperparameters"], **hyper}}
    adapter = started(few, compiler=compiler, parallelism=parallelism)
    batch = batch_of(few, rank=adapter.case.layout.replica(RANK))
    return {"reason": raised(Unsupported, lambda: adapter.build(batch))}


def clip_over_ranks(model_config):
    """Compare an update with clipping of the whole gradient, and of parts of it."""
    hyper = model_config["hyperparameters"]

    def clipped(gradients):
        return clip_by_global_norm(gradients, hyper["clip_global_norm"])

    adapter = started(model_config, compiler=COMPILER, steps=2)
    adapter.build(batch_of(model_config, 4, rank=RANK))
    weights = widened(adapter.weights())
    adapter.step()
    change = {name: array - weights[name] for name, array in adapter.weights().items()}
    rank_context = RankContext(0, 0, ADDRESSES[RANK : RANK + 1], "cpu", 1, seed=7)
    alone, each = started(model_config, compiler=COMPILER, rank_context=rank_context), []
    alone.build(batch_of(model_config, 2))
    for rank in range(2):
        batch = batch_of(model_config, 4, rank=rank)
        for part in (slice(0, 2), slice(2, 4)):
            alone.feed({name: array[part] for name, array in batch.items()})
            each.append(widened(alone.gradients()))
    ways = {
        "right": clipped(mean(each)),
        "of ranks": mean([clipped(mean(half)) for half in (each[:2], each[2:])]),
        "of micro-steps": mean([clipped(entry) for entry in each]),
        "of none": mean(each),
    }
    errors = {}
    for name, gradients in ways.items():
        after = dict(weights)
        OPTIMIZERS[hyper["optimizer"]](hyper).step(after, dict(gradients))
        wanted = {name: after[name] - weights[name] for name in after}
        errors[name] = ["fp32", compare_arrays("first update", change, wanted, 0.05)]
    return {"errors": errors, "checksum": adapter.weights_checksum()}
