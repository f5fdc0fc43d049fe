"""Programs that the tests of several adapters run."""

import numpy as np
from harness.adapter import Mismatch, RankContext, Unsupported

from .prelude import ADDRESSES, LOCAL_RANK, NO_GPU, RANK, batch_of, built, raised, started
from .small import model_config_of, small_bert


def refuse(model_config=None, build=False, **options):
    """Start an adapter, or build a model in it, with options that it refuses."""
    start = built if build else started
    refusals = (Unsupported, Mismatch)  # of the framework, or of the machine
    return {"reason": raised(refusals, lambda: start(model_config or small_bert(), **options))}


def refuse_gpu():
    """Start an adapter on a GPU that is not there."""
    return refuse(rank_context=NO_GPU)


def refuse_own_gpu(model_config):
    """Start an adapter whose framework is built for processors on the rank's GPU."""
    own_gpu = RankContext(RANK, LOCAL_RANK, ADDRESSES, "cuda", 1, seed=7)
    return refuse(model_config, rank_context=own_gpu)


def flat(arrays):
    """Return the numbers of arrays of a framework."""
    arrays = [array.numpy() if hasattr(array, "numpy") else array for array in arrays]
    return np.concatenate([np.asarray(array, "float64").ravel() for array in arrays])


def hide_tokens(batch, outputs):
    """Return how far outputs change with a token outside the attention mask, and with one in it.
    ``outputs``: returns those of the model with the batch."""
    batch["masked_positions"][:] = np.arange(batch["masked_positions"].shape[1])
    batch["attention_mask"][:, -1] = 0
    before, changes = outputs(), []
    for index in (-1, -2):
        batch["token_ids"][:, index] = (batch["token_ids"][:, index] + 1) % 50
        changes.append(float(np.abs(outputs() - before).max()))
    return dict(zip(("hidden", "seen"), changes))


def optimizer_errors(run, arrays=1, clip=None, sizes=(1e-6, 1e-6, 1e-6)):
    """Return the errors of three steps of SGD and AdamW by torch.optim's rules in numpy.
    ``run``: returns weights after steps with hyperparameters, first weights and, for each step,
    gradients; ``sizes``: of AdamW's gradients, about its epsilon; ``clip``: limit of their norm."""
    random = np.random.RandomState(1)
    starts = [random.standard_normal(20) for _ in range(arrays)]

    def error(hyper, steps, wanted):
        return max(
            float(np.abs(actual - expected).max() / np.abs(expected - start).max())
            for actual, expected, start in zip(run(hyper, starts, steps), wanted, starts)
        )

    h = dict(
        model_config_of("resnet50_v1.5")["hyperparameters"], weight_decay=0.1, learning_rate=0.1
    )
    steps = [[random.standard_normal(20) for _ in starts] for _ in range(3)]
    wanted = []
    for index, start in enumerate(starts):
        weight, buffer = start.copy(), 0.0
        for gradients in steps:
            buffer = h["momentum"] * buffer + gradients[index] + h["weight_decay"] * weight
            weight = weight - h["learning_rate"] * buffer
        wanted.append(weight)
    sgd = error(h, steps, wanted)

    h = dict(model_config_of("bert_base")["hyperparameters"], learning_rate=0.1)
    h.update({"clip_global_norm": clip} if clip else {})
    steps = [[random.standard_normal(20) * size for _ in starts] for size in sizes]
    wanted = []
    for index, start in enumerate(starts):
        weight, m, v = start.copy(), 0.0, 0.0
        for t, gradients in enumerate(steps, 1):
            length = np.sqrt(sum((g**2).sum() for g in gradients))
            gradient = gradients[index] * min(1.0, (clip or np.inf) / (length + 1e-6))
            weight = weight * (1 - h["learning_rate"] * h["weight_decay"])
            m = h["beta1"] * m + (1 - h["beta1"]) * gradient
            v = h["beta2"] * v + (1 - h["beta2"]) * gradient**2
            denominator = np.sqrt(v) / np.sqrt(1 - h["beta2"] ** t) + h["epsilon"]
            weight = weight - h["learning_rate"] / (1 - h["beta1"] ** t) * m / denominator
        wanted.append(weight)
    return {"sgd": sgd, "adamw": error(h, steps, wanted)}


def batch_of_halves(model_config, halves):
    batches = [batch_of(model_config, rank=half) for half in halves]
    return {name: np.concatenate([batch[name] for batch in batches]) for name in batches[0]}


def averaged(model_config, halves=(RANK,), compiler="none"):
    """Return an adapter after two steps of training, and what it told of them.
    ``halves``: those of a batch that it trains with; by default, each rank has its own."""
    adapter = started(model_config, compiler=compiler)
    total = adapter.all_reduce(RANK + 1.0)  # the harness asks before the model is there
    adapter.build(batch_of_halves(model_config, halves))
    start = flat(adapter.weights().values())
    gradients, again = (flat(adapter.gradients().values()) for _ in range(2))
    kept = bool(np.array_equal(start, flat(adapter.weights().values())))
    loss = adapter.read(adapter.step())
    adapter.step()
    return adapter, {
        "total": total,
        "gradients": gradients.tolist(),
        "changed": float(np.linalg.norm(again - gradients)),
        "kept": kept,
        "loss": loss,
        "checksum": adapter.weights_checksum(),
        "settings": adapter.settings(),
        "compiled": adapter.compiled() if compiler != "none" else {},
    }


def average(model_config, **options):
    """Train two steps, whose gradients ranks average."""
    adapter, actual = averaged(model_config, **options)
    adapter.stop()
    return actual


def read_nan(model_config, compiler="none"):
    """Train a step with a NaN in the images."""
    adapter = started(model_config, compiler=compiler)
    batch = batch_of(model_config)
    batch["images"][0, 0, 0, 0] = float("nan")
    adapter.build(batch)
    return {"poisoned": adapter.read(adapter.step())}
