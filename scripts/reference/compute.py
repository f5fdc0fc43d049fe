"""Everything that a run is compared with: weights, batches, outputs, gradients, losses, update."""

from __future__ import annotations

import copy
import functools
import importlib
import json
import math
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import autograd
import numpy as np
from core.parallelism import FEWEST_PARTS
from harness.kinds.verification import RATES, UPDATES
from harness.learning.targets import Softening, softened
from harness.measuring.synthetic import make_batch, shape_of
from harness.measuring.verification import dropout
from harness.measuring.verification.generation import FEWEST, count_compared

from reference.operations import NEAREST, Jumps, Moments, MultiplyAdds, running_statistics
from reference.optimizers import OPTIMIZERS, global_norm, update
from reference.transformers import showing_dropout
from reference.weights import Drawn, draw

#: Batches are drawn until none has a value near to where a derivative jumps, or a token that is
#: sampled to another; of images, a few pixels.
ATTEMPTS, OTHER_SEED, ROUNDS = 20, 1_000_003, 5
#: Fewest and most passes with dropout for each set of weights, and multiply-adds of all of them:
#: less than a minute of a large model.
FEWEST_PASSES, MOST_PASSES, DROPOUT_MULTIPLY_ADDS = 16, 256, 4 * 10**11
#: Label smoothing and mixup of soft labels.
SMOOTHING, MIXUP = 0.1, 0.4

#: Bound on the norm of averaged gradients, as part of the smallest share in their mean. It clips
#: every share, too: to clip before gradients are averaged gives them other weights.
PART_CLIPPED = 0.8

Arrays = dict[str, Any]


def verification_model_config(model_config: dict[str, Any], with_dropout: bool) -> dict[str, Any]:
    """Return the model config with the hyper-parameters of the comparison: others than those that
    are timed, so that none can be hard-coded, and large enough for each to show within two steps.
    ``with_dropout``: with the model's own rates of dropout, not without."""
    changed = copy.deepcopy(model_config)
    own = model_config["hyperparameters"]
    changed.pop("of_sequence_length", None)  # it would replace some of them
    changed["hyperparameters"].update(model_config["verification"]["hyperparameters"])
    if with_dropout:
        rates = {key: rate for key, rate in own.items() if "dropout" in key}
        changed["hyperparameters"].update(rates)
    return changed


def padded(inputs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the declared inputs with padding behind each sequence, which a mask of ones never
    shows."""
    return [
        {**entry, "distribution": "padded"} if entry["name"] == "attention_mask" else entry
        for entry in inputs
    ]


def with_extremes(
    batch: Arrays, inputs: list[dict[str, Any]], sequence_length: int | None
) -> Arrays:
    """Return the batch with the least and the greatest of all values that each input of integers
    may have: some frameworks ignore labels or tokens of a certain number."""
    for entry in inputs:
        if entry["distribution"] == "integers":
            values = batch[entry["name"]].reshape(-1)
            (below,) = shape_of([entry["below"]], len(batch[entry["name"]]), sequence_length)
            values[0] = 0
            if len(values) > 2:
                values[1] = below - 1
    return batch


def reduced(model_config: dict[str, Any], kind: str = "small") -> dict[str, Any]:
    """Return the model config made smaller, by ``verification.small``, so that a comparison takes a
    moment, or by ``verification.reduced``, so that one fits into memory: other hyper-parameters and
    inputs, and others in the verification: a deep model diverges at a rate that is right for a
    small one. They say which they were reduced from, and how many parameters are left. Raises
    KeyError for a model that has no such reduction."""
    small = copy.deepcopy(model_config)
    changes = model_config["verification"][kind]
    small["hyperparameters"].update(changes.get("hyperparameters", {}))
    small["verification"]["hyperparameters"].update(changes.get("verification_hyperparameters", {}))
    for item in small["inputs"]:
        item.update(changes.get("inputs", {}).get(item["name"], {}))
    drawn = module_of(model_config).parameters(small)
    small["trainable_parameters"] = _count_trained(drawn)
    return {**small, "reduced_from": model_config}


def module_of(model_config: dict[str, Any]) -> Any:
    """Return the module that computes a model, by its definition."""
    name = model_config.get("definition", model_config["name"].replace(".", "_"))
    return importlib.import_module(f"reference.{name}")


def write(
    model_config: dict[str, Any],
    sequence_length: int | None,
    seed: int,
    folder: Path,
    parts: int = FEWEST_PARTS,
    soft_labels: bool = False,
    micro_steps: bool = False,
) -> None:
    """Write the whole comparison into ``folder``, which must not exist; it appears when it is
    complete. ``parts``: batches whose gradients are averaged, of ranks or micro-steps.
    ``soft_labels``: with label smoothing and mixup, of images with a class each. ``micro_steps``:
    with the spread of gradients over masks of dropout, where the model is small enough for so many
    passes.

    ``model_config.json`` and ``model_config-dropout.json`` (to run with, without
    dropout and with the model's own), ``weights.npz``, ``batch-RANK.npz``,
    ``outputs.npz`` (``train`` or ``inference``, rank, number),
    ``gradients-BATCHES.npz`` (averaged over the first one or all batches),
    ``update-BATCHES-STEP.npz`` (change of the weights by the first steps with these, see UPDATES),
    ``statistics-biased-BATCHES-STEP-RANK.npz`` and ``statistics-unbiased-BATCHES-STEP-RANK.npz``
    (change of the first running statistics by the forward pass of the first steps with these, see
    :func:`reference.operations.running_statistics`),
    ``dropout-weights-NAME.npz`` and ``dropout-outputs-NAME.npz`` (changed weights, and outputs
    ``plain-NUMBER`` and ``scaled-NUMBER`` with them, see
    :mod:`harness.measuring.verification.dropout`) and ``expected.json``.
    """
    partial = _begun(folder)
    without = verification_model_config(model_config, with_dropout=False)
    hyper, inputs = without["hyperparameters"], padded(model_config["inputs"])
    model = module_of(model_config)
    parameters = model.parameters(without)
    weights = draw(parameters, seed)
    size = model_config["verification"]["batch_per_device"]
    if hasattr(model, "calibrated"):
        batch = make_batch(inputs, size, sequence_length, seed, 0)
        weights = model.calibrated(weights, batch, hyper)
    exact = {name: array.astype(np.float64) for name, array in weights.items()}
    for attempt in range(ATTEMPTS):
        batches = [
            with_extremes(
                make_batch(inputs, size, sequence_length, seed + attempt * OTHER_SEED, rank),
                inputs,
                sequence_length,
            )
            for rank in range(parts)
        ]
        if soft_labels:
            how = Softening(SMOOTHING, MIXUP, hyper["classes"])
            batches = [softened(batch, how, (seed, n)) for n, batch in enumerate(batches)]
        if hasattr(model, "decided"):
            batches = [model.decided(exact, batch, hyper) for batch in batches]
        for batch in batches:
            if "images" in batch:
                decide(model, exact, batch, hyper)
        Jumps.nearest = math.inf
        outputs = _outputs(model, exact, batches, hyper)
        if Jumps.nearest > NEAREST:
            break
    else:
        raise ValueError(
            f"{model_config['name']}: each of {ATTEMPTS} batches has a ReLU nearer than {NEAREST} "
            "to 0, where float32 may take the other side; draw larger biases in front of the ReLUs"
        )
    _save(partial / "weights.npz", weights)
    _save(partial / "outputs.npz", outputs)
    del outputs  # of long sequences with many words as large as the weights
    for rank, batch in enumerate(batches):
        _save(partial / f"batch-{rank}.npz", batch)
    trained = [name for name, drawn in parameters.items() if drawn.trained]

    def differentiate(weights: Arrays, batch: Arrays) -> tuple[float, Arrays]:
        def loss(some: Arrays) -> Any:
            return model.loss(model.forward({**weights, **some}, batch, hyper, True), batch, hyper)

        value, gradients = autograd.value_and_grad(loss)({name: weights[name] for name in trained})
        return float(value), gradients

    def save_statistics(weights: Arrays, parts: int, step: int) -> None:
        for rank, batch in enumerate(batches[:parts]):
            for convention, change in _statistics(model, weights, batch, hyper).items():
                name = f"statistics-{convention}-{parts}-{step}-{rank}"
                _save(partial / f"{name}.npz", change)

    averaged = dict(hyper)
    expected: dict[str, Any] = {
        "losses": {
            str(len(some)): _train(exact, some, changed, differentiate, save_statistics, partial)
            for some, changed in ((batches[:1], hyper), (batches, averaged))
        },
        "clip_averaged": averaged.get("clip_global_norm"),
        "trainable_parameters": _count_trained(parameters),
    }
    if model_config["hyperparameters"].get("dropout"):
        with_dropout = verification_model_config(model_config, with_dropout=True)
        expected |= _dropout(model, exact, batches[0], with_dropout, trained, partial, micro_steps)
    _save_model_configs(partial, without, model_config)
    _save_expected(partial, expected)
    partial.rename(folder)


def write_generation(
    model_config: dict[str, Any], sequence_length: int | None, seed: int, folder: Path
) -> None:
    """Write the comparison of generated text into ``folder``, as :func:`write` does.

    ``model_config.json``, ``model_config-dropout.json``, ``weights.npz``, ``batch-0.npz`` with the
    prompts, ``expected.json`` and ``generated.npz``: ``tokens`` and ``logits`` that continue them.
    The model configs alone where the model generates no text, or has no positions for more
    tokens."""
    without = verification_model_config(model_config, with_dropout=False)
    model, partial = module_of(model_config), _begun(folder)
    _save_model_configs(partial, without, model_config)
    can_generate = hasattr(model, "continued")
    count = count_compared(model_config, sequence_length) if can_generate else 0
    if count >= FEWEST:
        parameters = model.parameters(without)
        weights = draw(parameters, seed)
        size = model_config["verification"]["batch_per_device"]
        batch = make_batch(model_config["inputs"], size, sequence_length, seed, 0)
        exact = {name: array.astype(np.float64) for name, array in weights.items()}
        prompts, hyper = batch["token_ids"], without["hyperparameters"]
        tokens, logits = model.continued(exact, prompts, hyper, count)
        _save(partial / "weights.npz", weights)
        _save(partial / "batch-0.npz", batch)
        _save(partial / "generated.npz", {"tokens": tokens, "logits": logits})
        _save_expected(partial, {"trainable_parameters": _count_trained(parameters)})
    partial.rename(folder)


def _begun(folder: Path) -> Path:
    """Return a new folder, which is to become ``folder`` when it is complete."""
    partial = folder.with_name(f"{folder.name}.partial-{os.getpid()}")
    partial.mkdir(parents=True)
    return partial


def _save_model_configs(folder: Path, without: Arrays, model_config: Arrays) -> None:
    """Write ``model_config.json``, the model config ``without`` dropout, and
    ``model_config-dropout.json`` if the model has some."""
    configs = {"model_config": without}
    if model_config["hyperparameters"].get("dropout"):
        configs["model_config-dropout"] = verification_model_config(model_config, with_dropout=True)
    for name, config in configs.items():
        (folder / f"{name}.json").write_text(json.dumps(config, indent=1) + "\n", encoding="utf-8")


def _save_expected(folder: Path, expected: dict[str, Any]) -> None:
    text = json.dumps(expected, indent=1) + "\n"
    (folder / "expected.json").write_text(text, encoding="utf-8")


def _count_trained(parameters: dict[str, Drawn]) -> int:
    """Return the number of trained parameters."""
    return sum(math.prod(drawn.shape) for drawn in parameters.values() if drawn.trained)


def decide(model: Any, weights: Arrays, batch: Arrays, hyper: dict[str, Any]) -> None:
    """Draw the pixels anew around which rounding to float32 decides about a gradient, again while
    that brings about others, and keep the images with the fewest such places: none in a small
    network. In a large one with batch normalisation, through which each pixel moves all else, a
    few of its millions of values are left, and say little."""
    images, random, fewest = batch["images"], np.random.RandomState(0), math.inf
    for _ in range(ROUNDS):
        Jumps.places.clear()
        model.forward(weights, batch, hyper, True)
        if len(Jumps.places) < fewest:
            fewest, kept = len(Jumps.places), images.copy()
        for image, y, x in Jumps.places:
            row, column = (int(share * n) for share, n in zip((y, x), images.shape[1:3]))
            patch = images[image, max(0, row - 1) : row + 1, max(0, column - 1) : column + 1]
            patch[...] = random.standard_normal(patch.shape)
        if not fewest:
            break
    images[...] = kept


def _outputs(model: Any, weights: Arrays, batches: list[Arrays], hyper: dict[str, Any]) -> Arrays:
    return {
        f"{mode}-{rank}-{number}": array
        for mode in ("train", "inference")
        for rank, batch in enumerate(batches)
        for number, array in enumerate(model.forward(weights, batch, hyper, mode == "train"))
    }


def _statistics(
    model: Any, weights: Arrays, batch: Arrays, hyper: dict[str, Any]
) -> dict[str, Arrays]:
    """Change of the running statistics by one pass in training; {} of a model without, by how the
    variance is kept."""
    if "batch_norm_momentum" not in hyper:
        return {}
    Moments.seen.clear()
    model.forward(weights, batch, hyper, True)
    share = hyper["batch_norm_momentum"]
    after = {
        "biased": running_statistics(weights, share),
        "unbiased": running_statistics(weights, share, unbiased=True),
    }
    return {
        convention: {name: array - weights[name] for name, array in updated.items()}
        for convention, updated in after.items()
    }


def count_multiply_adds(
    model: Any, weights: Arrays, batch: Arrays, hyper: dict[str, Any], training: bool = False
) -> int:
    """Return the multiply-adds of one forward pass."""
    before = MultiplyAdds.multiply_adds
    model.forward(weights, batch, hyper, training)
    return MultiplyAdds.multiply_adds - before


def _train(
    weights: Arrays,
    batches: list[Arrays],
    hyper: dict[str, Any],
    differentiate: Callable[[Arrays, Arrays], tuple[float, Arrays]],
    save_statistics: Callable[[Arrays, int, int], None],
    folder: Path,
) -> list[list[float]]:
    """Return the losses of each batch before each optimizer step and after the last.

    A step takes the mean gradient of all batches, at its rate of RATES. Sets the bound on the
    gradients' norm in ``hyper``, where there is one, see PART_CLIPPED and :func:`_bound_between`.
    The first gradients and updates are left in ``folder``. Each of these is a gibibyte of a large
    model: none is kept for longer. ``save_statistics`` is called with the weights, the number of
    batches and the number of the step before the first steps."""
    weights, start, parts = dict(weights), weights, len(batches)
    optimizer, losses = OPTIMIZERS[hyper["optimizer"]](hyper), []
    for step, rate in enumerate((*RATES, None)):
        if step < len(UPDATES):
            save_statistics(weights, parts, step)
        of_batches, norms, mean = _mean(weights, batches, differentiate)
        losses.append(of_batches)
        if rate is None:
            break
        if not step:
            _save(folder / f"gradients-{parts}.npz", mean)
            if hyper.get("clip_global_norm") is not None:
                hyper["clip_global_norm"] = (
                    PART_CLIPPED * min(norms) / parts
                    if parts > 1
                    else _bound_between(mean, weights, hyper, batches[0], differentiate)
                )
        optimizer.rate = rate * hyper["learning_rate"]
        update(weights, mean, optimizer, hyper)
        if step < len(UPDATES):
            change = {name: weights[name] - start[name] for name in mean}
            _save(folder / f"update-{parts}-{step}.npz", change)
    return losses


def _mean(
    weights: Arrays,
    batches: Iterable[Arrays],
    differentiate: Callable[[Arrays, Arrays], tuple[float, Arrays]],
) -> tuple[list[float], list[float], Arrays]:
    """Return the losses of the batches, the norms of their gradients, and the mean gradients."""
    losses, norms, total = [], [], Arrays()
    for batch in batches:
        loss, gradients = differentiate(weights, batch)
        losses.append(loss)
        norms.append(global_norm(gradients))
        for name, array in gradients.items():
            total[name] = total.get(name, 0.0) + array
        del gradients  # as large as the weights, while the next are computed
    return losses, norms, {name: array / len(losses) for name, array in total.items()}


def _bound_between(
    gradients: Arrays,
    weights: Arrays,
    hyper: dict[str, Any],
    batch: Arrays,
    differentiate: Callable[[Arrays, Arrays], tuple[float, Arrays]],
) -> float:
    """Return a bound on the gradients' norm that one of the first two steps exceeds and the other
    does not, so that both sides of clipping are compared: the geometric mean of both norms."""
    without = {**hyper, "clip_global_norm": None}
    moved = dict(weights)
    update(moved, gradients, OPTIMIZERS[hyper["optimizer"]](without), without)
    return math.sqrt(global_norm(gradients) * global_norm(differentiate(moved, batch)[1]))


def _dropout(
    model: Any,
    weights: Arrays,
    batch: Arrays,
    model_config: dict[str, Any],
    trained: list[str],
    folder: Path,
    micro_steps: bool,
) -> dict[str, Any]:
    """Return the moments of statistics over random masks with each set of weights that shows other
    places of dropout, by its name, and the spread of gradients for ``micro_steps``; leave in
    ``folder`` what these statistics are made with."""
    hyper, random = model_config["hyperparameters"], np.random.RandomState(0)

    def mask(shape: tuple[int, ...], rate: float) -> Any:
        return (random.random_sample(shape) >= rate) / (1 - rate)

    multiply_adds = count_multiply_adds(model, weights, batch, hyper, True)
    passes = max(FEWEST_PASSES, min(MOST_PASSES, DROPOUT_MULTIPLY_ADDS // multiply_adds))
    moments = {}
    for name, changed in showing_dropout(weights).items():
        _save(folder / f"dropout-weights-{name}.npz", changed)
        compute = functools.partial(model.forward, {**weights, **changed}, batch, hyper, True)
        plain, scaled = compute(), compute(lambda _, rate: 1 - rate)
        named = (("plain", plain), ("scaled", scaled))
        outputs = {f"{kind}-{n}": array for kind, of in named for n, array in enumerate(of)}
        _save(folder / f"dropout-outputs-{name}.npz", outputs)
        losses: list[float] = []

        def masked(compute: Any = compute, losses: list[float] = losses) -> Any:
            outputs = compute(mask)
            losses.append(float(model.loss(outputs, batch, hyper)))
            return outputs

        drawn = dropout.sampled(masked, plain, scaled, passes)
        moments[name] = dropout.moments(drawn, plain, scaled)
        moments[name]["losses"] = [np.mean(losses), np.var(losses, ddof=1)]

    def loss(some: Arrays) -> Any:
        return model.loss(
            model.forward({**weights, **some}, batch, hyper, True, mask), batch, hyper
        )

    gradients = autograd.grad(loss)
    spread = {}
    if micro_steps and passes >= dropout.GRADIENTS:
        spread = dropout.spread(lambda: gradients({name: weights[name] for name in trained}))
    return {"dropout": moments, "dropout_gradients": spread}


def _save(path: Path, arrays: Arrays) -> None:
    np.savez(path, **{name: _stored(array) for name, array in arrays.items()})


def _stored(array: Any) -> Any:
    """Return floating-point numbers as float32: rounding to it (6e-8) is far below every bound."""
    return array.astype(np.float32, copy=False) if array.dtype.kind == "f" else array
