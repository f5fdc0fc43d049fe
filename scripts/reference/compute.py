"""Everything that a run is compared with: weights, batches, outputs, gradients, losses, update."""

from __future__ import annotations

import copy
import functools
import importlib
import json
import math
import os
from pathlib import Path
from typing import Any

import autograd
import numpy as np
from core.parallelism import FEWEST_PARTS
from harness.kinds.generate import FEWEST, count_compared
from harness.kinds.verification import RATES, UPDATES
from harness.learning.training import Softening, softened
from harness.measuring import dropout
from harness.measuring.model import make_batch, shape_of

from reference.operations import NEAREST, Jumps, Moments, MultiplyAdds, running_statistics
from reference.transformers import showing_dropout
from reference.weights import OPTIMIZERS, Arrays, Drawn, draw, global_norm, update

#: Attempts to draw batches without values near a derivative's jump or near ties of sampled tokens,
#: the seed's step between attempts, and rounds of redrawing pixels of images.
ATTEMPTS, OTHER_SEED, ROUNDS = 20, 1_000_003, 5
#: Smallest and largest number of passes with dropout for each set of weights, and multiply-adds
#: that they may take: less than a minute for a large model.
FEWEST_PASSES, MOST_PASSES, DROPOUT_MULTIPLY_ADDS = 16, 256, 4 * 10**11
#: Label smoothing and mixup of soft labels.
SMOOTHING, MIXUP = 0.1, 0.4

#: Bound on the norm of averaged gradients, relative to the smallest norm of a batch's share in the
#: mean. It is below the norm of every share, so clipping before averaging would show.
PART_CLIPPED = 0.8


def verification_model_config(model_config: dict[str, Any], with_dropout: bool) -> dict[str, Any]:
    """Return the model config with the hyper-parameters of the verification. They differ from the
    timed ones, so that none can be hard-coded, and each is large enough to show within two steps.
    ``with_dropout``: with the model's own rates of dropout instead of none."""
    changed = copy.deepcopy(model_config)
    own = model_config["hyperparameters"]
    changed.pop("of_sequence_length", None)  # this key would replace some hyper-parameters
    changed["hyperparameters"].update(model_config["verification"]["hyperparameters"])
    if with_dropout:
        rates = {key: rate for key, rate in own.items() if "dropout" in key}
        changed["hyperparameters"].update(rates)
    return changed


def reduced(model_config: dict[str, Any], kind: str = "small") -> dict[str, Any]:
    """Return a smaller model config: by ``verification.small``, so that a verification takes a
    moment, or by ``verification.reduced``, so that it fits into memory. Both replace inputs and
    hyper-parameters, the verification's too: a deep model diverges at a rate that suits a small
    one. The result has the number of its parameters, and the original config as ``reduced_from``.
    Raises KeyError for a model without such a reduction."""
    small = copy.deepcopy(model_config)
    changes = model_config["verification"][kind]
    small["hyperparameters"].update(changes.get("hyperparameters", {}))
    small["verification"]["hyperparameters"].update(changes.get("verification_hyperparameters", {}))
    for item in small["inputs"]:
        item.update(changes.get("inputs", {}).get(item["name"], {}))
    small["trainable_parameters"] = _count_trained(module_of(model_config).parameters(small))
    return {**small, "reduced_from": model_config}


def module_of(model_config: dict[str, Any]) -> Any:
    """Return the module that computes a model, by its definition."""
    name = model_config.get("definition", model_config["name"].replace(".", "_"))
    return importlib.import_module(f"reference.{name}")


def _count_trained(parameters: dict[str, Drawn]) -> int:
    """Return the number of trained parameters."""
    return sum(math.prod(drawn.shape) for drawn in parameters.values() if drawn.trained)


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
    ``soft_labels``: use label smoothing and mixup, for images with one class each. ``micro_steps``:
    add the spread of gradients over dropout masks, if the model is small enough for the passes.

    Files: ``model_config.json`` (without dropout) and ``model_config-dropout.json`` (with the
    model's own), ``weights.npz``, ``batch-RANK.npz``, ``outputs.npz`` (``train`` or ``inference``,
    rank, number), ``gradients-BATCHES.npz`` (averaged over the first batch or all),
    ``update-BATCHES-STEP.npz`` (change of the weights by the first steps with these batches, see
    UPDATES), ``statistics-biased-BATCHES-STEP-RANK.npz`` and
    ``statistics-unbiased-BATCHES-STEP-RANK.npz`` (change of the initial running statistics by the
    forward pass of each of these steps, see :func:`reference.operations.running_statistics`),
    ``dropout-weights-NAME.npz`` and ``dropout-outputs-NAME.npz`` (changed weights, and outputs
    ``plain-NUMBER`` and ``scaled-NUMBER`` with them, see :mod:`harness.measuring.dropout`) and
    ``expected.json``.
    """
    results = ReferenceResults(model_config, sequence_length, seed, folder)
    results.draw_weights()
    results.draw_batches(parts, soft_labels)
    averaged = dict(results.hyper)
    expected: dict[str, Any] = {
        "losses": {
            str(count): results.train(count, hyper)
            for count, hyper in ((1, results.hyper), (parts, averaged))
        },
        "clip_averaged": averaged.get("clip_global_norm"),
    }
    if results.has_dropout:
        expected |= results.dropout(micro_steps)
    results.finish(expected)


def write_generation(
    model_config: dict[str, Any], sequence_length: int | None, seed: int, folder: Path
) -> None:
    """Write the comparison of generated text into ``folder``, as :func:`write` does.

    ``model_config.json``, ``model_config-dropout.json``, ``weights.npz``, ``batch-0.npz`` with the
    prompts, ``expected.json`` and ``generated.npz``: ``tokens`` and ``logits`` that continue them.
    Only the model configs if the model generates no text, or has no positions for more tokens."""
    results = ReferenceResults(model_config, sequence_length, seed, folder)
    model = results.model
    can_generate = hasattr(model, "continued")
    count = count_compared(model_config, sequence_length) if can_generate else 0
    if count < FEWEST:
        results.finish(None)
        return
    results.draw_weights()
    batch = results.batch(model_config["inputs"], seed, 0)
    prompts = batch["token_ids"]
    tokens, logits = model.continued(results.exact, prompts, results.hyper, count)
    results.save("batch-0", batch)
    results.save("generated", {"tokens": tokens, "logits": logits})
    results.finish({})


class ReferenceResults:
    """Results of a model in float64, with which frameworks are compared, and the folder that they
    are written to.

    ``hyper``: the hyper-parameters without dropout; ``exact``: the float64 weights; ``batches``:
    one for each part of a step."""

    exact: Arrays
    batches: list[Arrays]

    def __init__(
        self, model_config: dict[str, Any], length: int | None, seed: int, folder: Path
    ) -> None:
        """Create a temporary folder next to ``folder``; it is renamed to ``folder`` once
        complete."""
        self.model_config, self._length, self._seed = model_config, length, seed
        self._size = model_config["verification"]["batch_per_device"]
        self._without = verification_model_config(model_config, with_dropout=False)
        self.hyper, self.model = self._without["hyperparameters"], module_of(model_config)
        self.has_dropout = bool(model_config["hyperparameters"].get("dropout"))
        self._folder = folder
        self._partial = folder.with_name(f"{folder.name}.partial-{os.getpid()}")
        self._partial.mkdir(parents=True)

    def save(self, name: str, arrays: Arrays) -> None:
        """Write ``NAME.npz``, with floating-point numbers as float32: this rounding (6e-8) is far
        below every bound."""
        stored = {
            key: array.astype(np.float32, copy=False) if array.dtype.kind == "f" else array
            for key, array in arrays.items()
        }
        np.savez(self._partial / f"{name}.npz", **stored)

    def finish(self, expected: dict[str, Any] | None) -> None:
        """Write the model configs and ``expected``, if any, and complete the folder."""
        written = {"model_config": self._without}
        if self.has_dropout:
            written["model_config-dropout"] = verification_model_config(self.model_config, True)
        if expected is not None:
            parameters = self.model.parameters(self._without)
            written["expected"] = {**expected, "trainable_parameters": _count_trained(parameters)}
        for name, values in written.items():
            text = json.dumps(values, indent=1) + "\n"
            (self._partial / f"{name}.json").write_text(text, encoding="utf-8")
        self._partial.rename(self._folder)

    def batch(self, inputs: list[dict[str, Any]], seed: int, rank: int) -> Arrays:
        return make_batch(inputs, self._size, self._length, seed, rank)

    def draw_weights(self) -> None:
        parameters = self.model.parameters(self._without)
        self._trained = [name for name, drawn in parameters.items() if drawn.trained]
        weights = draw(parameters, self._seed)
        if hasattr(self.model, "calibrated"):
            batch = self.batch(self.model_config["inputs"], self._seed, 0)
            weights = self.model.calibrated(weights, batch, self.hyper)
        self.save("weights", weights)
        self.exact = {name: array.astype(np.float64) for name, array in weights.items()}

    def draw_batches(self, parts: int, soft_labels: bool) -> None:
        """Draw batches until no value is so near a jump that rounding decides its side. Attention
        masks have padding after each sequence: masks of ones would not show whether they are
        applied."""
        inputs = [
            {**entry, "distribution": "padded"} if entry["name"] == "attention_mask" else entry
            for entry in self.model_config["inputs"]
        ]
        for attempt in range(ATTEMPTS):
            self.batches = [
                self._with_extremes(self.batch(inputs, self._seed + attempt * OTHER_SEED, rank))
                for rank in range(parts)
            ]
            if soft_labels:
                how = Softening(SMOOTHING, MIXUP, self.hyper["classes"])
                named = enumerate(self.batches)
                self.batches = [softened(batch, how, (self._seed, n)) for n, batch in named]
            if hasattr(self.model, "decided"):
                decided = functools.partial(self.model.decided, self.exact, hyper=self.hyper)
                self.batches = [decided(batch) for batch in self.batches]
            for batch in self.batches:
                if "images" in batch:
                    decide(self.model, self.exact, batch, self.hyper)
            Jumps.nearest = math.inf
            outputs = {
                f"{mode}-{rank}-{number}": array
                for mode in ("train", "inference")
                for rank, batch in enumerate(self.batches)
                for number, array in enumerate(
                    self.model.forward(self.exact, batch, self.hyper, mode == "train")
                )
            }
            if Jumps.nearest > NEAREST:
                break
        else:
            raise ValueError(
                f"{self.model_config['name']}: each of {ATTEMPTS} batches has a ReLU nearer than "
                f"{NEAREST} to 0, where float32 may take the other side; draw larger biases in "
                "front of the ReLUs"
            )
        self.save("outputs", outputs)
        for rank, batch in enumerate(self.batches):
            self.save(f"batch-{rank}", batch)

    def _with_extremes(self, batch: Arrays) -> Arrays:
        """Return the batch with the smallest and the largest possible value in each integer input:
        some frameworks ignore certain labels or tokens."""
        for entry in self.model_config["inputs"]:
            if entry["distribution"] == "integers":
                values = batch[entry["name"]].reshape(-1)
                (below,) = shape_of([entry["below"]], self._size, self._length)
                values[0] = 0
                if len(values) > 2:
                    values[1] = below - 1
        return batch

    def _loss(self, weights: Arrays, batch: Arrays, *dropout: Any) -> Any:
        outputs = self.model.forward(weights, batch, self.hyper, True, *dropout)
        return self.model.loss(outputs, batch, self.hyper)

    def train(self, count: int, hyper: dict[str, Any]) -> list[list[float]]:
        """Return the losses of each of the first ``count`` batches before each optimizer step and
        after the last.

        A step takes the mean gradient of these batches, at its rate of RATES. If the model clips
        gradients, sets their bound in ``hyper``, see PART_CLIPPED and :meth:`_bound_between`. The
        first gradients, updates and running statistics are saved at once and not kept: each takes a
        gibibyte for a large model."""
        weights, losses = dict(self.exact), []
        optimizer = OPTIMIZERS[hyper["optimizer"]](hyper)
        for step, rate in enumerate((*RATES, None)):
            if step < len(UPDATES):
                self._save_statistics(weights, count, step)
            of_batches, norms, mean = self._differentiated(weights, count)
            losses.append(of_batches)
            if rate is None:
                break
            if not step:
                self.save(f"gradients-{count}", mean)
                if hyper.get("clip_global_norm") is not None:
                    hyper["clip_global_norm"] = (
                        PART_CLIPPED * min(norms) / count
                        if count > 1
                        else self._bound_between(mean, weights, hyper)
                    )
            optimizer.rate = rate * hyper["learning_rate"]
            update(weights, mean, optimizer, hyper)
            if step < len(UPDATES):
                change = {name: weights[name] - self.exact[name] for name in mean}
                self.save(f"update-{count}-{step}", change)
        return losses

    def _differentiated(
        self, weights: Arrays, count: int
    ) -> tuple[list[float], list[float], Arrays]:
        """Return the losses of the first batches, the norms of their gradients, and the mean
        gradients."""
        losses, norms = [], []
        total: Arrays = {}
        trained = {name: weights[name] for name in self._trained}
        for batch in self.batches[:count]:
            loss, gradients = autograd.value_and_grad(
                lambda some, batch=batch: self._loss({**weights, **some}, batch)
            )(trained)
            losses.append(float(loss))
            norms.append(global_norm(gradients))
            for name, array in gradients.items():
                total[name] = total.get(name, 0.0) + array
            del gradients  # as large as the weights; not kept during the next pass
        return losses, norms, {name: array / count for name, array in total.items()}

    def _bound_between(self, gradients: Arrays, weights: Arrays, hyper: dict[str, Any]) -> float:
        """Return a bound on the gradients' norm that one of the first two steps exceeds and the
        other does not, so that both sides of clipping are compared: the geometric mean of both
        norms."""
        without = {**hyper, "clip_global_norm": None}
        moved = dict(weights)
        update(moved, gradients, OPTIMIZERS[hyper["optimizer"]](without), without)
        _, (norm,), _ = self._differentiated(moved, 1)
        return math.sqrt(global_norm(gradients) * norm)

    def _save_statistics(self, weights: Arrays, count: int, step: int) -> None:
        """Save the change of the running statistics by a training pass over each batch, for biased
        and unbiased variances; nothing for a model without running statistics."""
        share = self.hyper.get("batch_norm_momentum")
        for rank, batch in enumerate(self.batches[:count] if share is not None else ()):
            Moments.seen.clear()
            self.model.forward(weights, batch, self.hyper, True)
            for convention in ("biased", "unbiased"):
                after = running_statistics(weights, share, convention == "unbiased")
                change = {name: array - weights[name] for name, array in after.items()}
                self.save(f"statistics-{convention}-{count}-{step}-{rank}", change)

    def dropout(self, micro_steps: bool) -> dict[str, Any]:
        """Return moments of statistics over random masks, for each set of weights of
        :func:`showing_dropout`, and for ``micro_steps`` the spread of gradients. Save these
        weights, and the outputs without masks."""
        config = verification_model_config(self.model_config, with_dropout=True)
        model, batch, hyper = self.model, self.batches[0], config["hyperparameters"]
        random = np.random.RandomState(0)

        def mask(shape: tuple[int, ...], rate: float) -> Any:
            return (random.random_sample(shape) >= rate) / (1 - rate)

        multiply_adds = count_multiply_adds(model, self.exact, batch, hyper, True)
        passes = max(FEWEST_PASSES, min(MOST_PASSES, DROPOUT_MULTIPLY_ADDS // multiply_adds))
        moments = {}
        for name, changed in showing_dropout(self.exact).items():
            self.save(f"dropout-weights-{name}", changed)
            weights = {**self.exact, **changed}
            compute = functools.partial(model.forward, weights, batch, hyper, True)
            plain, scaled = compute(), compute(lambda _, rate: 1 - rate)
            named = (("plain", plain), ("scaled", scaled))
            outputs = {f"{kind}-{n}": array for kind, of in named for n, array in enumerate(of)}
            self.save(f"dropout-outputs-{name}", outputs)
            losses: list[float] = []

            def masked(compute: Any = compute, losses: list[float] = losses) -> Any:
                outputs = compute(mask)
                losses.append(float(model.loss(outputs, batch, hyper)))
                return outputs

            drawn = dropout.sampled(masked, plain, scaled, passes)
            moments[name] = dropout.moments(drawn, plain, scaled)
            moments[name]["losses"] = [np.mean(losses), np.var(losses, ddof=1)]
        spread = {}
        if micro_steps and passes >= dropout.GRADIENTS:
            trained = {name: self.exact[name] for name in self._trained}

            def loss(some: Arrays) -> Any:
                outputs = model.forward({**self.exact, **some}, batch, hyper, True, mask)
                return model.loss(outputs, batch, hyper)

            spread = dropout.spread(lambda: autograd.grad(loss)(trained))
        return {"dropout": moments, "dropout_gradients": spread}


def decide(model: Any, weights: Arrays, batch: Arrays, hyper: dict[str, Any]) -> None:
    """Redraw the pixels around places where rounding to float32 decides a gradient, in up to ROUNDS
    rounds, and keep the images with the fewest such places. A small network has none left. In a
    large one with batch normalisation, where each pixel affects all values, a few of millions of
    values are left, which matters little."""
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


def count_multiply_adds(
    model: Any, weights: Arrays, batch: Arrays, hyper: dict[str, Any], training: bool = False
) -> int:
    """Return the multiply-adds of one forward pass."""
    before = MultiplyAdds.multiply_adds
    model.forward(weights, batch, hyper, training)
    return MultiplyAdds.multiply_adds - before
