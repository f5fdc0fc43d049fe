"""Errors of a framework's results against the reference; the driver has their bounds.

Models are compared with what ``scripts/reference`` left in a folder, and a user's model with its
own float64 run. Standard library and numpy.
"""

from __future__ import annotations

import os
from collections import Counter
from typing import Any, Callable, Dict, Iterable, List, Mapping, Sequence

from core import axes, bounded, precisions

from harness.adapter import (
    Case,
    Generation,
    MatmulTrace,
    Numerics,
    Unsupported,
    require,
)
from harness.batch_input import BatchInput
from harness.kind import TRAINING_AXES, Context, Kind, Parameter, Workload, one_of
from harness.measuring import model
from harness.measuring.checks import check_same_weights, compiler_evidence
from harness.measuring.verification import dropout, float64_run, generation, shared_steps
from harness.measuring.verification.errors import (
    compare_arrays,
    counted,
    measured,
    relative,
    worst,
    worst_token,
)

#: Learning rate of each optimizer step whose loss is compared, as part of the model config's.
RATES = (1.0, 1.0, 1.0, 1.0, 0.5, 0.2)
#: Changes of the weights since the start that are compared, after the first steps. A second step's
#: own change has twice the rounding of weights to float32 in it.
UPDATES = ("first update", "two updates")
#: Name of the losses behind optimizer steps.
LOSSES = "losses"

#: Share of the matmuls in other dtypes than those of a mixed precision.
OTHER_DTYPES = "other dtypes"

#: Significant bits that not every loss, and not most gradients, in float32 have by chance. The sum
#: of a few numbers of half precision has no more.
HALF_BITS = 16


class Compared(MatmulTrace, Numerics):
    """Adapter that can be compared with the reference."""


class ReferenceVerification(Kind):
    """Verification: errors of outputs, losses and gradients; there are no metrics."""

    parameters = (
        Parameter("mode", one_of(*axes.VERIFIED), "", "which computation is compared"),
        Parameter("scale", str, "", "full, or what makes the model smaller", "full"),
        Parameter("labels", one_of("hard", "soft"), "", "of the reference's batches", "hard"),
        Parameter(
            "reference",
            os.path.abspath,
            "",
            "a folder of scripts/reference, to compare with; none for a model of one's own",
            "",
        ),
    )

    needs = Numerics
    axes = TRAINING_AXES
    stands_in = True

    def mode(self, parameters: Mapping[str, Any]) -> str:
        return axes.TRAIN if parameters["mode"] == axes.TRAIN else axes.INFERENCE

    def measure(self, context: Context) -> None:
        adapter, fields, enter = context.adapter, context.fields, context.report.enter
        if context.workload.parameters["mode"] == axes.GENERATE:
            require(adapter, Generation)
            generation.check_supported(adapter, context.workload, generation.FEWEST)
            fields["verification"] = compare_generation(adapter, _built(context), enter)
        elif "own" in context.workload.model_config:
            fields["verification"] = float64_run.compare(context)
        else:
            fields["verification"] = compare(adapter, _built(context), enter)
        fields["compiled"] = compiler_evidence(adapter)
        fields["weights_checksum"] = adapter.weights_checksum()
        shared_steps.observe(context)

    def check(self, workload: Workload, ranks: Sequence[Mapping[str, Any]]) -> None:
        if workload.parameters["mode"] == "train":
            check_same_weights(ranks)
            shared_steps.check(workload, ranks)


def _built(context: Context) -> ReferenceFolder:
    """Build the model with a batch of the reference, which is returned."""
    folder = context.workload.parameters["reference"]
    if not folder:
        raise ValueError("--kind verification needs --parameter reference=..: what to compare with")
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
        """Return the batch of an adapter's replica, with which it is to be built; with dropout the
        first in all replicas and micro-steps, so that these differ in their masks alone.

        Changes the adapter's bound on the norm of gradients to one for averaged gradients, where
        it averages some."""
        bound = self.expected.get("clip_averaged")
        if bound is not None and adapter.case.parts > 1:
            adapter.model_config["hyperparameters"]["clip_global_norm"] = bound
        if _drops(adapter):
            return self._joined([0] * adapter.case.accumulation)
        return self.batch(_replica(adapter), adapter.case)

    def batch(self, replica: int, case: Case) -> Dict[str, Any]:
        """Return the batch of the ranks of a replica.

        Batches of several ranks serve as micro-batches of a replica. Raises ValueError where the
        reference has another number."""
        if case.parts > 1 and str(case.parts) not in self.expected["losses"]:
            known = " or ".join(self.expected["losses"])
            raise ValueError(f"{case.parts_text}: the reference averages over {known} batches")
        return self._joined(case.parts_of(replica))

    def _joined(self, numbers: Iterable[int]) -> Dict[str, Any]:
        import numpy as np

        parts = [self.arrays(f"batch-{number}") for number in numbers]
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _replica(adapter: Compared) -> int:
    return adapter.case.layout.replica(adapter.rank_context.rank)


def _drops(adapter: Compared) -> bool:
    """Return whether the adapter trains with dropout."""
    return adapter.case.mode == "train" and bool(
        adapter.model_config["hyperparameters"].get("dropout")
    )


def other_dtypes(adapter: MatmulTrace) -> Dict[str, Any]:
    """Return the share of the matmuls that run in other dtypes than those of the precision, without
    those that the framework lacks in them."""
    counts, lacking = Counter(adapter.matmul_dtypes()), adapter.lacking_matmuls()
    counts["float32"] -= sum(lacking.values())
    wanted, total = precisions.known()[adapter.case.precision].dtypes, sum(counts.values())
    others = sum(count for dtype, count in counts.items() if dtype not in wanted)
    return measured(OTHER_DTYPES, others / total if total else 1.0, "; ".join(sorted(lacking)))


def compare_outputs(adapter: Compared, reference: ReferenceFolder) -> List[Dict[str, Any]]:
    """Return the errors of the worst output and, of outputs with a value per token, of the worst
    token."""
    expected = reference.arrays("outputs")
    first = adapter.case.parts_of(_replica(adapter))[0]
    errors, tokens = [], []
    for number, array in enumerate(adapter.outputs()):
        name = f"{adapter.case.mode}-{first}-{number}"
        exact = expected[name]
        errors.append(measured("outputs", relative(array, exact), f"output {number}"))
        if exact.ndim == 3:
            tokens.append(worst_token(array, exact))
    return [worst(errors), *([worst(tokens)] if tokens else [])]


def compare_dropout(adapter: Compared, reference: ReferenceFolder) -> List[Dict[str, Any]]:
    """Return errors of dropout's statistics, in standard errors, and whether replicas or
    micro-steps share masks. Micro-steps show it in the spread of their mean gradients alone, which
    takes so many passes that the reference has them only where a case has micro-steps.

    Each set of the reference's weights shows different dropout layers. Masks of training steps show
    in the losses."""
    case = adapter.case
    masks = []
    if case.replicas > 1:
        shared = dropout.share_masks(lambda: _sums_of_replicas(adapter))
        masks.append(measured("masks of dropout", float(shared), "replicas"))
    one_part = reference.expected["dropout_gradients"]
    if case.accumulation > 1 and one_part:
        found = dropout.spread(adapter.gradients)
        apart = dropout.dependence(found, one_part, case.parts)
        masks.append(measured("masks of dropout", apart, "micro-steps"))
    precision = precisions.known()[case.precision]
    finest, errors = precision.bounds["outputs"], []
    for name, known in reference.expected["dropout"].items():
        changed = reference.arrays(f"dropout-weights-{name}")
        weights = {**reference.arrays("weights"), **changed}
        adapter.load_weights(weights)
        outputs = reference.arrays(f"dropout-outputs-{name}")
        plain, scaled = (
            [outputs[f"{kind}-{number}"] for number in range(len(outputs.keys()) // 2)]
            for kind in ("plain", "scaled")
        )
        drawn = dropout.sampled(adapter.outputs, plain, scaled, known["passes"])
        deviations = dropout.deviations(drawn, known, finest).items()
        errors += [measured("dropout", error, f"{name}, {where}") for where, error in deviations]
        if precision.updates:
            losses = [_loss_with(adapter, weights) for _ in range(dropout.STEPS)]
            off = dropout.of_losses(losses, known, precision.bounds["loss"], case.accumulation)
            errors.append(measured("dropout", off, f"{name}, losses of steps"))
    return [worst(errors), *masks]


def _sums_of_replicas(adapter: Compared) -> List[float]:
    """Run a forward pass; return the sum of the squared outputs of each replica."""
    import numpy as np

    case = adapter.case
    total = sum(float((np.asarray(output, np.float64) ** 2).sum()) for output in adapter.outputs())
    own, ranks = _replica(adapter), case.devices // case.replicas
    return [
        adapter.all_reduce(total / ranks if replica == own else 0.0)
        for replica in range(case.replicas)
    ]


def _loss_with(adapter: Compared, weights: Dict[str, Any]) -> float:
    """Return the loss of a training step that starts with ``weights``."""
    adapter.load_weights(weights)
    return adapter.read(adapter.step())


def compare_training(adapter: Compared, reference: ReferenceFolder) -> List[Dict[str, Any]]:
    """Return the errors of the losses, the running statistics, and the first updates.

    Gradients of several batches are averaged, over replicas or micro-steps. The loss is that of the
    replica, the mean over its micro-steps. The comparison ends before the first step with another
    learning rate if the framework cannot change it.
    For a precision whose updates are not compared, only the first loss and the running statistics
    are."""
    start = reference.arrays("weights")
    case = adapter.case
    precision = precisions.known()[case.precision]
    if adapter.statistics():  # what was compared before has moved them
        adapter.load_weights(dict(start))

    exact = _expected_losses(adapter, reference)
    losses, differences, every = [], [], []
    for step in range(len(exact) if precision.updates else 1):
        rates = RATES[max(step - 1, 0) : step + 1]
        if len({*rates}) > 1 and not _set_rate(adapter, rates[-1]):
            break
        loss = adapter.read(adapter.step())
        every.append(loss)
        error = float(abs(loss - exact[step]) / abs(exact[step]))
        if step == 0:
            differences.append(measured("loss", error))
        else:
            losses.append(measured(LOSSES, error, f"after {step} step(s)"))
        if step < len(UPDATES):
            differences += compare_statistics(adapter, reference, step)
        if precision.updates and step < len(UPDATES):
            change = {name: array - start[name] for name, array in adapter.weights().items()}
            update = reference.arrays(f"update-{case.parts}-{step}")
            differences += compare_arrays(UPDATES[step], change, update, precision.gradient_floor)
    if precision.updates:
        differences.append(worst(losses))
        in_half = not (significant_bits(every) > HALF_BITS).any()
        differences.append(measured("losses in half precision", float(in_half)))
    return differences


def _set_rate(adapter: Compared, part: float) -> bool:
    """Set the learning rate to a part of the model config's; return whether the framework can."""
    if not isinstance(adapter, BatchInput):
        return False
    try:
        adapter.set_learning_rate(part * adapter.model_config["hyperparameters"]["learning_rate"])
    except Unsupported:
        return False
    return True


def significant_bits(values: Any) -> Any:
    """Return the number of bits from the first 1 to the last of each number but 0 in float32."""
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


def _expected_losses(adapter: Compared, reference: ReferenceFolder) -> List[float]:
    """Return the losses of this rank's replica before each step."""
    parts = adapter.case.parts_of(_replica(adapter))
    return [
        float(sum(losses[parts.start : parts.stop]) / len(parts))
        for losses in reference.expected["losses"][str(adapter.case.parts)]
    ]


def compare_statistics(
    adapter: Compared, reference: ReferenceFolder, step: int
) -> List[Dict[str, Any]]:
    """Return the errors of the changes that the steps up to ``step`` made to the running
    statistics.

    Whether the variance is biased or not is the framework's choice, the same for all statistics."""
    after, weights = adapter.statistics(), reference.arrays("weights")
    if not after:
        return []
    change = {name: array - weights[name] for name, array in after.items()}
    case = adapter.case
    share = adapter.model_config["hyperparameters"]["batch_norm_momentum"]  # of the new statistics
    steps = [(n, part) for n in range(step + 1) for part in case.parts_of(_replica(adapter))]
    conventions = []
    for estimator in ("biased", "unbiased"):
        name = f"statistics-{estimator}-{case.parts}"
        added = (reference.arrays(f"{name}-{number}-{part}") for number, part in steps)
        expected = _accumulated(added, share)
        conventions.append(compare_arrays("running statistics", change, expected, 0.0))
    return min(conventions, key=lambda errors: float(errors[-1]["error"]))


def _accumulated(added: Iterable[Mapping[str, Any]], share: float) -> Dict[str, Any]:
    """Return the sum of what micro-steps add to the running statistics, each of which keeps all but
    ``share`` of the former ones."""
    total: Dict[str, Any] = {}
    for entry in added:
        total = {name: (1 - share) * total.get(name, 0.0) + entry[name] for name in entry}
    return total


def compare(
    adapter: Compared, reference: ReferenceFolder, enter: Callable[[str], None]
) -> List[Dict[str, Any]]:
    """Return the errors of everything that this case allows to compare.

    The adapter has just been built. ``enter`` is called with the name of each phase. The mean over
    micro-steps is compared with the mean over as many ranks. Training with dropout is compared by
    statistics of the outputs alone; inference of a model with dropout must have none."""
    case = adapter.case
    enter("load weights")
    adapter.load_weights(dict(reference.arrays("weights")))
    if _drops(adapter):
        enter("dropout")
        return compare_dropout(adapter, reference)
    parameters = reference.expected["trainable_parameters"]
    differences = [counted("trainable parameters", adapter.trainable_parameters(), parameters)]
    if OTHER_DTYPES in precisions.known()[case.precision].bounds:
        differences.append(other_dtypes(adapter))
    enter("outputs")
    differences += compare_outputs(adapter, reference)
    if case.mode == "train":
        enter("gradients")
        gradients = reference.arrays(f"gradients-{case.parts}")
        precision, found = precisions.known()[case.precision], adapter.gradients()
        differences += compare_arrays("gradients", found, gradients, precision.gradient_floor)
        if case.replicas > 1 and precision.storage == "float32":
            differences.append(reduction(found))
        enter("training")
        differences += compare_training(adapter, reference)
    return differences


def compare_generation(
    adapter: Any, reference: ReferenceFolder, enter: Callable[[str], None]
) -> List[Dict[str, Any]]:
    """Return the errors of generated text. The adapter, a Compared and a Generation, has just been
    built, with the prompts as its batch. Raises Unsupported for a model that generates none."""
    enter("load weights")
    adapter.load_weights(dict(reference.arrays("weights")))
    parameters = reference.expected["trainable_parameters"]
    counts = counted("trainable parameters", adapter.trainable_parameters(), parameters)
    length = reference.arrays("batch-0")["token_ids"].shape[1]
    adapter.make_cache(generation.count_compared(adapter.model_config, length))
    enter("generation")
    return [counts, *generation.compare(adapter, reference.arrays("generated"))]
