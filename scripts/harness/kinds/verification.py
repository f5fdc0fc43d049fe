"""Errors of a framework's results against the reference; the driver has their bounds.

Models are compared with what ``scripts/reference`` left in a folder, and a user's model with its
own float64 run."""

from __future__ import annotations

import os
from collections import Counter
from typing import Any, Callable, Dict, List, Mapping, Sequence

from core import axes, bounded, precisions

from harness.adapter import Generation, MatmulTrace, Numerics, Unsupported, require
from harness.capabilities import BatchInput
from harness.kind import TRAINING_AXES, Context, Kind, Parameter, Workload, one_of
from harness.kinds import generate
from harness.measuring import dropout, float64_run, model
from harness.measuring.checks import (
    check_same_weights,
    check_sharding,
    compiler_evidence,
    note_sharding,
)
from harness.measuring.errors import compare_arrays, measured, relative, worst, worst_token

#: Learning rate of each optimizer step whose loss is compared, relative to the model config's.
RATES = (1.0, 1.0, 1.0, 1.0, 0.5, 0.2)
#: After which steps the change of the weights since the start is compared. The change in the second
#: step alone would contain the rounding of weights to float32 twice.
UPDATES = ("first update", "two updates")
#: Fraction of matmuls that do not run in the dtypes of the mixed precision.
OTHER_DTYPES = "other dtypes"
#: Most significant bits that a sum of a few half-precision numbers has. In float32, hardly ever all
#: losses, or most gradients, have so few by chance.
HALF_BITS = 16


class Compared(MatmulTrace, Numerics):
    """Adapter that can be compared with the reference."""


class ReferenceVerification(Kind):
    """Verification of outputs, losses and gradients; it has errors instead of metrics."""

    parameters = (
        Parameter("mode", one_of(*axes.VERIFIED), "", "which computation is compared"),
        Parameter("scale", str, "", "full, or the reduction of the model", "full"),
        Parameter("labels", one_of("hard", "soft"), "", "soft: with smoothing and mixup", "hard"),
        Parameter(
            "reference", os.path.abspath, "",
            "folder that scripts/reference wrote, to compare with; none for a user's own model", "",
        ),
    )  # fmt: skip

    needs = Numerics
    axes = TRAINING_AXES

    def mode(self, parameters: Mapping[str, Any]) -> str:
        return axes.TRAIN if parameters["mode"] == axes.TRAIN else axes.INFERENCE

    def measure(self, context: Context) -> None:
        adapter, fields, enter = context.adapter, context.fields, context.report.enter
        if context.workload.parameters["mode"] == axes.GENERATE:
            require(adapter, Generation)
            generate.check_generates(adapter, context.workload, generate.FEWEST)
            fields["verification"] = compare_generation(adapter, _built(context), enter)
        elif "own" in context.workload.model_config:
            fields["verification"] = float64_run.compare(context)
        else:
            fields["verification"] = compare(adapter, _built(context), enter)
        fields["compiled"] = compiler_evidence(adapter)
        fields["weights_checksum"] = adapter.weights_checksum()
        note_sharding(context)

    def check(self, workload: Workload, ranks: Sequence[Mapping[str, Any]]) -> None:
        if workload.parameters["mode"] == "train":
            check_same_weights(ranks)
            check_sharding(workload.case, ranks)


def _built(context: Context) -> ReferenceFolder:
    """Build the model with a batch of the reference, and return the reference."""
    folder = context.workload.parameters["reference"]
    if not folder:
        raise ValueError(
            "--kind verification needs --parameter reference=FOLDER, the reference to compare with"
        )
    reference = ReferenceFolder(folder)
    model.build(context, reference.prepare(context.adapter))
    return reference


class ReferenceFolder:
    """Results of the reference in a folder."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self.expected: Dict[str, Any] = bounded.read_json(os.path.join(folder, "expected.json"))

    def arrays(self, name: str) -> Mapping[str, Any]:
        """Return the arrays of ``NAME.npz`` by name, each read on access."""
        import numpy as np

        arrays: Mapping[str, Any] = np.load(
            os.path.join(self._folder, name + ".npz"), allow_pickle=False
        )
        return arrays

    def prepare(self, adapter: Compared) -> Dict[str, Any]:
        """Return the batch with which an adapter's replica is to be built. With dropout it is the
        first batch in all replicas and micro-steps, so that these differ in their masks alone.
        Batches of several ranks serve as micro-batches of a replica. Raises ValueError where the
        reference does not average over this number of batches.

        Where gradients are averaged, the adapter clips them at the reference's bound for averaged
        gradients from now on."""
        import numpy as np

        case, bound = adapter.case, self.expected.get("clip_averaged")
        if bound is not None and case.parts > 1:
            adapter.model_config["hyperparameters"]["clip_global_norm"] = bound
        numbers = case.parts_of(case.layout.replica(adapter.rank_context.rank))
        if _drops(adapter):
            numbers = range(1)
        elif case.parts > 1 and str(case.parts) not in self.expected["losses"]:
            known = " or ".join(self.expected["losses"])
            raise ValueError(f"{case.parts_text}: the reference averages over {known} batches")
        parts = [self.arrays(f"batch-{number}") for number in numbers]
        times = case.accumulation // len(parts)
        return {name: np.concatenate(times * [part[name] for part in parts]) for name in parts[0]}


def _drops(adapter: Compared) -> bool:
    """Return whether the adapter trains with dropout."""
    return adapter.case.mode == "train" and bool(
        adapter.model_config["hyperparameters"].get("dropout")
    )


class Comparison:
    """Comparison of an adapter, built with the batch of its replica, with the reference."""

    def __init__(self, adapter: Any, reference: ReferenceFolder) -> None:
        self._adapter, self._reference, self._case = adapter, reference, adapter.case
        self._replica = adapter.case.layout.replica(adapter.rank_context.rank)
        self._parts = adapter.case.parts_of(self._replica)
        self._precision = precisions.known()[adapter.case.precision]
        self._start: Mapping[str, Any] = reference.arrays("weights")

    def load_weights(self) -> None:
        self._adapter.load_weights(dict(self._start))

    def parameters(self) -> Dict[str, Any]:
        expected = self._reference.expected["trainable_parameters"]
        count = self._adapter.trainable_parameters()
        return measured("trainable parameters", abs(count - expected) / expected, str(count))

    def other_dtypes(self) -> Dict[str, Any]:
        """Return the share of the matmuls that run in other dtypes than the precision's. Matmuls
        that the framework lacks in the precision's dtypes do not count."""
        counts = Counter(self._adapter.matmul_dtypes())
        lacking = self._adapter.lacking_matmuls()
        counts["float32"] -= sum(lacking.values())
        wanted, total = self._precision.dtypes, sum(counts.values())
        others = sum(count for dtype, count in counts.items() if dtype not in wanted)
        return measured(OTHER_DTYPES, others / total if total else 1.0, "; ".join(sorted(lacking)))

    def outputs(self) -> List[Dict[str, Any]]:
        """Return the errors of the worst output and, of outputs with a value per token, of the
        worst token."""
        expected = self._reference.arrays("outputs")
        errors, tokens = [], []
        for number, array in enumerate(self._adapter.outputs()):
            exact = expected[f"{self._case.mode}-{self._parts[0]}-{number}"]
            errors.append(measured("outputs", relative(array, exact), f"output {number}"))
            if exact.ndim == 3:
                tokens.append(worst_token(array, exact))
        return [worst(errors), *([worst(tokens)] if tokens else [])]

    def gradients(self) -> List[Dict[str, Any]]:
        """Return the errors of the gradients, averaged over replicas or micro-steps, and whether
        replicas averaged them in half precision."""
        found = self._adapter.gradients()
        exact = self._reference.arrays(f"gradients-{self._case.parts}")
        errors = compare_arrays("gradients", found, exact, self._precision.gradient_floor)
        if self._case.replicas > 1 and self._precision.storage == "float32":
            errors.append(reduction(found))
        return errors

    def dropout(self) -> List[Dict[str, Any]]:
        """Return errors of dropout's statistics, in standard errors, and whether replicas or
        micro-steps share masks. Masks shared by micro-steps show only in the spread of their mean
        gradients, which takes many passes: the reference has it for cases with micro-steps alone.

        Each set of the reference's weights shows different dropout layers. Losses show the masks
        of training steps."""
        adapter, reference, case = self._adapter, self._reference, self._case
        masks, errors, bounds = [], [], self._precision.bounds
        if case.replicas > 1:
            shared = dropout.share_masks(self._sums_of_replicas)
            masks.append(measured("masks of dropout", float(shared), "replicas"))
        one_part = reference.expected["dropout_gradients"]
        if case.accumulation > 1 and one_part:
            found = dropout.spread(adapter.gradients)
            apart = dropout.dependence(found, one_part, case.parts)
            masks.append(measured("masks of dropout", apart, "micro-steps"))
        for name, known in reference.expected["dropout"].items():
            weights = {**self._start, **reference.arrays(f"dropout-weights-{name}")}
            adapter.load_weights(weights)
            outputs = reference.arrays(f"dropout-outputs-{name}")
            plain, scaled = (
                [outputs[f"{kind}-{number}"] for number in range(len(outputs.keys()) // 2)]
                for kind in ("plain", "scaled")
            )
            drawn = dropout.sampled(adapter.outputs, plain, scaled, known["passes"])
            off = dropout.deviations(drawn, known, bounds["outputs"])
            if self._precision.updates:
                losses = []
                for _ in range(dropout.STEPS):
                    adapter.load_weights(weights)
                    losses.append(adapter.read(adapter.step()))
                off["losses of steps"] = dropout.loss_error(
                    losses, known, bounds["loss"], case.accumulation
                )
            errors += [measured("dropout", of, f"{name}, {where}") for where, of in off.items()]
        return [worst(errors), *masks]

    def _sums_of_replicas(self) -> List[float]:
        """Run a forward pass; return the sum of the squared outputs of each replica."""
        import numpy as np

        outputs = (np.asarray(output, np.float64) for output in self._adapter.outputs())
        share = sum(float((output**2).sum()) for output in outputs)
        share /= self._case.devices // self._case.replicas
        return [
            self._adapter.all_reduce(share if replica == self._replica else 0.0)
            for replica in range(self._case.replicas)
        ]

    def training(self) -> List[Dict[str, Any]]:
        """Return the errors of the losses, the running statistics, and the first updates.

        Gradients of several batches are averaged, over replicas or micro-steps. The loss is the
        replica's mean over its micro-steps. The comparison ends before the first step with another
        learning rate if the framework cannot change it. For a precision whose updates are not
        compared, only the first loss and the running statistics are."""
        adapter, parts, precision = self._adapter, self._parts, self._precision
        if adapter.statistics():  # earlier comparisons have changed the running statistics
            self.load_weights()
        exact = [
            float(sum(losses[parts.start : parts.stop]) / len(parts))
            for losses in self._reference.expected["losses"][str(self._case.parts)]
        ]
        losses, differences, every = [], [], []
        for step in range(len(exact) if precision.updates else 1):
            rates = RATES[max(step - 1, 0) : step + 1]
            if len({*rates}) > 1 and not self._set_rate(rates[-1]):
                break
            loss = adapter.read(adapter.step())
            every.append(loss)
            error = float(abs(loss - exact[step]) / abs(exact[step]))
            if step == 0:
                differences.append(measured("loss", error))
            else:
                losses.append(measured("losses", error, f"after {step} step(s)"))
            if step >= len(UPDATES):
                continue
            differences += self._statistics(step)
            if precision.updates:
                weights = adapter.weights().items()
                change = {name: array - self._start[name] for name, array in weights}
                update = self._reference.arrays(f"update-{self._case.parts}-{step}")
                floor = precision.gradient_floor
                differences += compare_arrays(UPDATES[step], change, update, floor)
        if precision.updates:
            differences.append(worst(losses))
            in_half = not (significant_bits(every) > HALF_BITS).any()
            differences.append(measured("losses in half precision", float(in_half)))
        return differences

    def _set_rate(self, part: float) -> bool:
        """Set the learning rate to this fraction of the model config's; return whether the
        framework can."""
        if not isinstance(self._adapter, BatchInput):
            return False
        rate = self._adapter.model_config["hyperparameters"]["learning_rate"]
        try:
            self._adapter.set_learning_rate(part * rate)
        except Unsupported:
            return False
        return True

    def _statistics(self, step: int) -> List[Dict[str, Any]]:
        """Return the errors of the changes that the steps up to ``step`` made to the running
        statistics.

        Whether the variance is biased or not is the framework's choice, the same for all
        statistics."""
        after = self._adapter.statistics()
        if not after:
            return []
        change = {name: array - self._start[name] for name, array in after.items()}
        share = self._adapter.model_config["hyperparameters"]["batch_norm_momentum"]
        conventions = []
        for estimator in ("biased", "unbiased"):
            name = f"statistics-{estimator}-{self._case.parts}"
            expected: Dict[str, Any] = {}
            for number in range(step + 1):
                # each update replaces a fraction of the old statistics by the new ones
                for part in self._parts:
                    added = self._reference.arrays(f"{name}-{number}-{part}")
                    kept = {key: (1 - share) * array for key, array in expected.items()}
                    expected = {key: kept.get(key, 0.0) + added[key] for key in added}
            conventions.append(compare_arrays("running statistics", change, expected, 0.0))
        return min(conventions, key=lambda errors: float(errors[-1]["error"]))


def significant_bits(values: Any) -> Any:
    """Return the number of bits from the first 1 to the last, in float32, of each nonzero value."""
    import numpy as np

    values = np.asarray(values, np.float32)
    mantissas = values[values != 0].view(np.int32) & 0x7FFFFF | 0x800000
    return (24 - np.log2(mantissas & -mantissas)).astype(int)


def reduction(gradients: Mapping[str, Any]) -> Dict[str, Any]:
    """Return whether gradients were averaged over replicas in half precision.

    The sum of a few numbers of half precision has little more than their significant bits. Mixed
    precision computes some gradients in float32, such as those of normalizations, which have all of
    its bits unless they were rounded."""
    import numpy as np

    found = (significant_bits(array) for array in gradients.values())
    bits = max(int(np.median(own)) if own.size else 0 for own in found)
    return measured(
        "gradients reduced in half precision", float(bits <= HALF_BITS), f"{bits} significant bits"
    )


def compare(
    adapter: Compared, reference: ReferenceFolder, enter: Callable[[str], None]
) -> List[Dict[str, Any]]:
    """Return the errors of everything that can be compared for this case.

    The adapter has just been built. ``enter`` is called with the name of each phase. A mean over
    micro-steps is compared with one over the same number of ranks. Training with dropout is
    compared by statistics of the outputs alone; inference must not drop anything."""
    comparison = Comparison(adapter, reference)
    enter("load weights")
    comparison.load_weights()
    if _drops(adapter):
        enter("dropout")
        return comparison.dropout()
    differences = [comparison.parameters()]
    if OTHER_DTYPES in precisions.known()[adapter.case.precision].bounds:
        differences.append(comparison.other_dtypes())
    enter("outputs")
    differences += comparison.outputs()
    if adapter.case.mode == "train":
        enter("gradients")
        differences += comparison.gradients()
        enter("training")
        differences += comparison.training()
    return differences


def compare_generation(
    adapter: Any, reference: ReferenceFolder, enter: Callable[[str], None]
) -> List[Dict[str, Any]]:
    """Return the errors of generated text. The adapter, a Compared and a Generation, has just been
    built, with the prompts as its batch. Raises Unsupported for a model that generates no text."""
    comparison = Comparison(adapter, reference)
    enter("load weights")
    comparison.load_weights()
    parameters = comparison.parameters()
    length = reference.arrays("batch-0")["token_ids"].shape[1]
    adapter.make_cache(generate.count_compared(adapter.model_config, length))
    enter("generation")
    return [parameters, *generate.generation_errors(adapter, reference.arrays("generated"))]
