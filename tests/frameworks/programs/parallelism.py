"""Training steps whose model ranks share."""

import sys

import numpy as np
from harness.adapter import RankContext, Unsupported
from harness.measuring.checks import check_collectives
from harness.measuring.errors import compare_arrays

from . import prelude
from .prelude import ADDRESSES, FRAMEWORK, RANK, batch_of, module_of, raised

COMPILER = "jit" if FRAMEWORK == "jax" else "none"


def sharded_of(adapter):
    return sys.modules[type(adapter._sharding).__module__]


def started(model_config, compiler=COMPILER, **options):
    return prelude.started(model_config, compiler=compiler, **options)


def one_batch(model_config, replicas, steps=1):
    parts = [batch_of(model_config, 2 * steps, rank=replica) for replica in range(replicas)]
    return parts, {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def on_one(model_config, replicas, steps=1):
    alone = RankContext(0, 0, ADDRESSES[RANK : RANK + 1], "cpu", 1, seed=7)
    adapter = started(model_config, batch=2 * replicas * steps, rank_context=alone)
    adapter.build(one_batch(model_config, replicas, steps)[1])
    return adapter


def on_all(model_config, parallelism, steps=1):
    adapter = started(model_config, parallelism=parallelism, steps=steps)
    module_of("devices").join = lambda *where: "gloo"  # a process can join only once
    layout = adapter.case.layout
    adapter.build(one_batch(model_config, layout.replicas, steps)[0][layout.replica(RANK)])
    return adapter


def apart(arrays, others):
    """Return the worst error of an array.
    It is relative to at least a twentieth of the norm of all: a key's bias has no gradient."""
    (worst,) = compare_arrays("gradients", arrays, others, 0.05)[:1]
    return worst["error"]


def first_update(model_config, weights, gradients):
    """Return AdamW's first update over the learning rate, element by element.
    It may be anything if a gradient is mostly rounding, g / (|g| + epsilon): so it is that of a
    rank's own gradients, which are compared with one process's."""
    hyper = model_config["hyperparameters"]
    gradients = {name: gradient.astype("float64") for name, gradient in gradients.items()}
    norm = sum((gradient**2).sum() for gradient in gradients.values()) ** 0.5
    scale = min(1.0, hyper.get("clip_global_norm", np.inf) / norm)
    decay, epsilon = hyper["weight_decay"], hyper["epsilon"]
    return {
        name: -(scale * gradient / (abs(scale * gradient) + epsilon) + decay * weights[name])
        for name, gradient in gradients.items()
    }


def results_of_one(adapter, model_config, steps):
    """Return weights, gradients and loss of one process. The first rank computes them for all."""
    if RANK == 0:
        alone = on_one(model_config, adapter.case.layout.replicas, steps)
        np.savez("weights.npz", **alone.weights())
        np.savez("gradients.npz", **alone.gradients())
        np.save("loss.npy", alone.read(alone.step()))
    adapter.all_reduce(0.0)
    return dict(np.load("weights.npz")), dict(np.load("gradients.npz")), float(np.load("loss.npy"))


def observed(parallelism, model_config, steps=1):
    adapter = on_all(model_config, parallelism, steps)
    layout = adapter.case.layout
    before, expected, loss_of_one = results_of_one(adapter, model_config, steps)
    gradients = adapter.gradients()
    error = apart(gradients, expected)
    loss = adapter.read(adapter.step()), loss_of_one
    after, rate = adapter.weights(), model_config["hyperparameters"]["learning_rate"]
    expected = first_update(model_config, before, gradients)
    change = 0.0
    for name, update in expected.items():
        actual = after[name].astype("float64") - before[name]
        rounding = 2.0**-23 * np.maximum(abs(after[name]), abs(before[name]))
        change = max(change, ((abs(actual - rate * update) - rounding) / rate).max())
    held, total = adapter.held_parameters(), adapter.trainable_parameters()
    collectives = check_collectives(parallelism, layout, RANK, adapter.collective_counts())
    return {
        **{"error": error, "change": change, "loss": loss},
        **{"held": held, "total": total, "collectives": collectives},
    }


def observe(cases):
    """Observe a training step of each case: sharding, model config, and micro-steps."""
    return {
        "found": [
            observed(parallelism, model_config, steps) for parallelism, model_config, steps in cases
        ]
    }


def drop_elements(model_config):
    import torch

    adapter = on_all(model_config, "tensor")
    masks = {"embeddings.dropout": [], "layers.0.dropout": []}
    for name, mask in masks.items():

        def note(module, inputs, output, found=mask):
            found.append(torch.nonzero(output.flatten()[:512]).flatten().tolist())

        adapter._model.get_submodule(name).register_forward_hook(note)
    adapter.step()
    adapter.step()
    return {"masks": masks}


def accumulate(model_config):
    actual = {}
    for parallelism in ("fsdp", "tensor"):
        adapter = on_all(model_config, parallelism, steps=3)
        alone = on_one(model_config, adapter.case.layout.replicas, steps=3)
        error = apart(adapter.gradients(), alone.gradients())
        actual[parallelism] = [
            error,
            adapter.collective_counts(),
            on_all(model_config, parallelism).collective_counts(),
        ]
    return {"found": actual}


def refuse(model_config, chain):
    """Ask PyTorch for shardings that it lacks; the model ``chain`` cannot be cut into stages."""
    reasons, modules = [], []

    def attempt(model_config, parallelism, hyper=(), **options):
        changed = {
            **model_config,
            "hyperparameters": {**model_config["hyperparameters"], **dict(hyper)},
        }

        def build():
            adapter = started(changed, parallelism=parallelism, **options)
            module_of("devices").join = lambda *where: "gloo"
            modules.append(sharded_of(adapter))
            adapter.build(batch_of(changed))

        reasons.append(raised(Unsupported, build))

    attempt(model_config, "tensor", hyper={"heads": 3, "key_value_heads": 3, "hidden": 30})
    attempt(model_config, "tensor", hyper={"intermediate": 65})
    attempt(model_config, "fsdp", compiler="inductor")
    attempt(model_config, "pipeline", hyper={"layers": 1})
    attempt(chain, "pipeline")
    pipeline = modules[-1]
    spans = [pipeline.spans_of(*asked) for asked in ((12, 4), (7, 4))]
    return {"reasons": reasons, "spans": [[len(entry) for entry in span] for span in spans]}


def refuse_by_jax(model_config):
    reasons = [
        raised(Unsupported, lambda: started(model_config, compiler="none", parallelism="fsdp")),
    ]
    adapter = started(model_config, parallelism="tensor")
    sharded, definition = sharded_of(adapter), adapter._definition
    heads = {**model_config["hyperparameters"], "heads": 3, "key_value_heads": 3}
    for asked in ((heads, 16), (model_config["hyperparameters"], 15)):
        reasons.append(
            raised(
                Unsupported,
                lambda asked=asked: sharded.require_multiples(definition, *asked, 2),
            )
        )
    return {"reasons": reasons}
