"""Errors of a framework's results against the reference; the driver has their bounds.

Models are compared with what ``scripts/reference`` left in a folder, and a user's model with its
own float64 run. Standard library and numpy.
"""

from __future__ import annotations

import math
import os
from typing import Any, Callable, Dict, Iterable, List, Mapping, Sequence

from core import axes, bounded, precisions

from harness.adapter import (
    Case,
    ExecutedMatmul,
    Generation,
    MatmulTrace,
    Numerics,
    Unsupported,
    require,
)
from harness.batch_input import LearningRateSchedule
from harness.kind import TRAINING_AXES, Context, Kind, Parameter, Workload, one_of
from harness.measuring import model
from harness.measuring.checks import check_same_weights, compiler_evidence
from harness.measuring.verification import dropout, float64_run, generation, sharding
from harness.measuring.verification.errors import (
    OF_TOKEN,
    compare_arrays,
    counted,
    largest,
    measured,
    relative,
    repeated,
    standard_errors,
    worst,
    worst_token,
)

STEPS = 5  # optimizer steps whose losses are compared
LAST_RATE = 0.5  # learning rate of the last of them, as part of that of the others
#: Changes of the weights since the start that are compared, after the first steps. A second step's
#: own change has twice the rounding of weights to float32 in it.
UPDATES = ("first update", "two updates")
#: Names of what rounding explains of what each of these steps adds to the running statistics.
OF_STATISTICS = tuple(f"running statistics, step {number}" for number in range(len(UPDATES)))
#: Name of the losses behind optimizer steps.
LOSSES = "losses"

#: Share of the multiply-adds in other dtypes than those of a mixed precision. Their number says
#: little: a few large matmuls have most of the multiply-adds.
OTHER_DTYPES = "other dtypes"

#: Significant bits that every loss in float32 has not by chance. The sum of a few numbers of half
#: precision has fewer.
LOSS_BITS = 16


class Compared(MatmulTrace, Numerics):
    """Adapter that can be compared with the reference."""


class ReferenceVerification(Kind):
    """Verification: errors of outputs, losses and gradients; there are no metrics."""

    parameters = (
        Parameter("mode", one_of(*axes.VERIFIED), "", "which computation is compared"),
        Parameter("scale", str, "", "full, or what makes the model smaller", "full"),
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
        adapter, fields = context.adapter, context.fields
        if context.workload.parameters["mode"] == axes.GENERATE:
            fields["verification"] = self._generation(context)
        elif "own" in context.workload.model_config:
            fields["verification"] = float64_run.compare(context)
        else:
            fields["verification"] = self._with_reference(context)
        fields["compiled"] = compiler_evidence(adapter)
        fields["weights_checksum"] = adapter.weights_checksum()
        sharding.observe(context)

    def _built(self, context: Context) -> ReferenceFolder:
        """Build the model with a batch of the reference, which is returned."""
        folder = context.workload.parameters["reference"]
        if not folder:
            raise ValueError(
                "--kind verification needs --parameter reference=..: what to compare with"
            )
        reference = ReferenceFolder(folder)
        model.build(context, reference.prepare(context.adapter))
        return reference

    def _with_reference(self, context: Context) -> List[Dict[str, Any]]:
        return compare(context.adapter, self._built(context), context.report.enter)

    def _generation(self, context: Context) -> List[Dict[str, Any]]:
        require(context.adapter, Generation)
        generation.check_supported(context.adapter, context.workload, generation.FEWEST)
        return compare_generation(context.adapter, self._built(context), context.report.enter)

    def check(self, workload: Workload, ranks: Sequence[Mapping[str, Any]]) -> None:
        if workload.parameters["mode"] == "train":
            check_same_weights(ranks)
            sharding.check(workload, ranks)


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
        """Return the batch of an adapter's replica, with which it is to be built; with dropout that
        of the first, so that replicas differ in their masks alone.

        Changes the adapter's bound on the norm of gradients to one for averaged gradients, where
        it averages some."""
        bound = self.expected.get("clip_averaged")
        if bound is not None and adapter.case.parts > 1:
            adapter.model_config["hyperparameters"]["clip_global_norm"] = bound
        return self.batch(0 if _drops(adapter) else _replica(adapter), adapter.case)

    def batch(self, replica: int, case: Case) -> Dict[str, Any]:
        """Return the batch of the ranks of a replica.

        Batches of several ranks serve as micro-batches of a replica. Raises ValueError where the
        reference has another number."""
        import numpy as np

        if case.parts > 1:
            count = len(self.expected["averaged_losses"][0])
            if case.parts != count:
                raise ValueError(f"{case.parts_text}: the reference averages over {count} batches")
        parts = [self.arrays(f"batch-{number}") for number in case.parts_of(replica)]
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    def rounding(self, quantity: str, precision: str) -> Any:
        """Return what rounding to a precision explains of a quantity's error, or of the errors by
        name: those in bfloat16, in proportion. {} where it was not computed."""
        scale = precisions.known()[precision].coarseness
        errors = self.expected["rounding"].get(quantity, {})
        if isinstance(errors, float):
            return scale * errors
        return {name: scale * error for name, error in errors.items()}


def _replica(adapter: Compared) -> int:
    return adapter.case.layout.replica(adapter.rank_context.rank)


def _drops(adapter: Compared) -> bool:
    """Return whether the adapter trains with dropout."""
    return adapter.case.mode == "train" and bool(
        adapter.model_config["hyperparameters"].get("dropout")
    )


def other_dtypes(precision: str, matmuls: Sequence[ExecutedMatmul]) -> Dict[str, Any]:
    """Return the share of a forward pass's multiply-adds that run in other dtypes than those of
    the precision, without those that the framework lacks in them."""
    judged = [matmul for matmul in matmuls if not matmul.lacking]
    total = sum(matmul.multiply_adds for matmul in judged)
    wanted = precisions.known()[precision].dtypes
    others = sum(matmul.multiply_adds for matmul in judged if matmul.dtype not in wanted)
    lacking = sorted({matmul.lacking for matmul in matmuls if matmul.lacking})
    return measured(OTHER_DTYPES, others / total if total else 1.0, "; ".join(lacking))


def compare_outputs(adapter: Compared, reference: ReferenceFolder) -> List[Dict[str, Any]]:
    """Return the errors of the worst output and, of outputs with a value per token, of the worst
    token."""
    expected = reference.arrays("outputs")
    first = adapter.case.parts_of(_replica(adapter))[0]
    rounding = reference.rounding("outputs", adapter.case.precision)
    of_tokens = reference.rounding(OF_TOKEN, adapter.case.precision)
    errors, tokens = [], []
    for number, array in enumerate(adapter.outputs()):
        name = f"{adapter.case.mode}-{first}-{number}"
        exact = expected[name]
        error = relative(array, exact)
        errors.append(measured("outputs", error, f"output {number}", rounding[name]))
        if exact.ndim == 3:
            explained = of_tokens.get(name, 0.0)
            tokens.append(measured(OF_TOKEN, *worst_token(array, exact), rounding=explained))
    return [worst(errors), *([worst(tokens)] if tokens else [])]


def compare_initial(adapter: Compared, reference: ReferenceFolder) -> List[Dict[str, Any]]:
    """Return how far initial parameters are off, in standard errors: the mean, deviation and
    kurtosis of their values, or the correlation of two parameters."""
    known = reference.expected["initial"]
    found = {**adapter.weights(), **adapter.statistics()}
    errors = [(standard_errors(array, *known[name]), name) for name, array in found.items()]
    errors.append(repeated({name: a for name, a in found.items() if known[name][1]}))
    compared, case = [measured("initial values", *largest(errors))], adapter.case
    if case.devices > 1:
        checksum = adapter.weights_checksum()
        error = abs(adapter.all_reduce(checksum) / case.devices - checksum) / checksum
        compared.append(measured("initial values of ranks", error))
    return compared


def compare_dropout(adapter: Compared, reference: ReferenceFolder) -> List[Dict[str, Any]]:
    """Return errors of dropout's statistics, in standard errors.

    Each set of the reference's weights shows different dropout layers. With several replicas, the
    correlation of their masks is an error too. Masks of training steps show in the losses."""
    import numpy as np

    case, amounts, losses = adapter.case, [], []
    precision = precisions.known()[case.precision]
    finest, errors = precision.bounds["outputs"], []
    sets = len(reference.expected["dropout"])
    steps = dropout.STEPS_OF_RANKS // sets if case.replicas > 1 else dropout.STEPS
    for name, known in reference.expected["dropout"].items():
        changed = reference.arrays(f"dropout-weights-{name}")
        weights = {**reference.arrays("weights"), **changed}
        adapter.load_weights(weights)
        outputs = reference.arrays(f"dropout-outputs-{name}")
        plain, scaled = (
            [outputs[f"{kind}-{number}"] for number in range(len(outputs.keys()) // 2)]
            for kind in ("plain", "scaled")
        )
        found = dropout.sampled(adapter.outputs, plain, scaled, known["passes"])
        amounts.append(found[: dropout.OF_RANKS, dropout.AMOUNT])
        deviations = dropout.deviations(found, known, finest).items()
        errors += [(error, f"{name}, {where}") for where, error in deviations]
        if precision.updates and case.accumulation == 1:
            losses.append([_loss_with(adapter, weights) for _ in range(steps)])
            off = dropout.of_losses(losses[-1], known, precision.bounds["loss"])
            errors.append((off, f"{name}, losses of steps"))
    compared = [measured("dropout", *max(errors, key=lambda pair: (pair[0] != pair[0], pair)))]
    if case.replicas > 1:
        ranks = case.devices // case.replicas  # of a replica, which have the same outputs
        correlated = [
            dropout.of_ranks(
                np.array(values), lambda value: adapter.all_reduce(value) / ranks, case.replicas
            )
            for values in (amounts, losses)
            if values
        ]
        compared.append(measured("dropout of ranks", max(correlated)))
    return compared


def _loss_with(adapter: Compared, weights: Dict[str, Any]) -> float:
    """Return the loss of a training step that starts with ``weights``."""
    adapter.load_weights(weights)
    return adapter.read(adapter.step())


def compare_training(adapter: Compared, reference: ReferenceFolder) -> List[Dict[str, Any]]:
    """Return the errors of the losses, the running statistics, and the first updates.

    Gradients of several batches are averaged, over replicas or micro-steps. The loss is that of the
    replica, the mean over its micro-steps. The last step has another learning rate, where it can.
    For a precision whose updates are not compared, only the first loss and the running statistics
    are."""
    start = reference.arrays("weights")
    case = adapter.case
    precision = precisions.known()[case.precision]
    if adapter.statistics():  # what was compared before has moved them
        adapter.load_weights(dict(start))

    exact = _expected_losses(adapter, reference)
    rounding = reference.rounding(LOSSES, case.precision)
    losses, differences, bits = [], [], []
    for step in range(len(exact) if precision.updates else 1):
        if step == STEPS - 1 and not _slow_down(adapter):
            break
        loss = adapter.read(adapter.step())
        bits.append(_significant_bits(loss))
        error = float(abs(loss - exact[step]) / abs(exact[step]))
        explained = rounding.get(str(step), 0.0)
        if step == 0:
            differences.append(measured("loss", error, rounding=explained))
        else:
            losses.append(measured(LOSSES, error, f"after {step} step(s)", explained))
        if step < len(UPDATES):
            differences += compare_statistics(adapter, reference, step)
        if precision.updates and step < len(UPDATES):
            change = {name: array - start[name] for name, array in adapter.weights().items()}
            update = reference.arrays(f"update-{case.parts}-{step}")
            differences += compare_arrays(
                UPDATES[step],
                change,
                update,
                precision.gradient_floor,
                reference.rounding(UPDATES[step], case.precision),
            )
    if precision.updates:
        differences.append(worst(losses))
        differences.append(measured("losses in half precision", float(max(bits) <= LOSS_BITS)))
    return differences


def _slow_down(adapter: Compared) -> bool:
    """Set the learning rate of the last step; return whether the step that was built can have
    another."""
    if not isinstance(adapter, LearningRateSchedule):
        return False
    try:
        adapter.set_learning_rate(
            LAST_RATE * adapter.model_config["hyperparameters"]["learning_rate"]
        )
    except Unsupported:
        return False
    return True


def _significant_bits(value: float) -> int:
    """Return the number of bits from the first 1 to the last; 0 unless finite."""
    if not math.isfinite(value):
        return 0
    mantissa, _ = math.frexp(value)
    return len(f"{int(abs(mantissa) * 2**53):b}".rstrip("0"))


def _expected_losses(adapter: Compared, reference: ReferenceFolder) -> List[float]:
    """Return the losses of this rank's replica before each step."""
    case = adapter.case
    if case.parts == 1:
        return [float(loss) for loss in reference.expected["losses"]]
    parts = case.parts_of(_replica(adapter))
    return [
        float(sum(losses[parts.start : parts.stop]) / len(parts))
        for losses in reference.expected["averaged_losses"]
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
    rounding = (reference.rounding(OF_STATISTICS[number], case.precision) for number, _ in steps)
    explained = _accumulated(rounding, share)
    conventions = []
    for estimator in ("biased", "unbiased"):
        name = f"statistics-{estimator}-{case.parts}"
        added = (reference.arrays(f"{name}-{number}-{part}") for number, part in steps)
        expected = _accumulated(added, share)
        conventions.append(compare_arrays("running statistics", change, expected, 0.0, explained))
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
    differences = []
    if case.mode == "train":
        enter("initial values")
        differences += compare_initial(adapter, reference)
    enter("load weights")
    adapter.load_weights(dict(reference.arrays("weights")))
    if _drops(adapter):
        enter("dropout")
        return [*differences, *compare_dropout(adapter, reference)]
    parameters = reference.expected["trainable_parameters"]
    differences.append(counted("trainable parameters", adapter.trainable_parameters(), parameters))
    matmuls = adapter.matmuls(forward_only=True)
    if case.layout.replicas == case.devices:  # else no rank computes all of a forward pass
        multiply_adds = reference.expected["multiply_adds"][case.mode]
        total = sum(matmul.multiply_adds for matmul in matmuls)
        differences.append(counted("multiply-adds", total, multiply_adds))
    if OTHER_DTYPES in precisions.known()[case.precision].bounds and adapter.forward_dtypes_run():
        differences.append(other_dtypes(case.precision, matmuls))
    enter("outputs")
    differences += compare_outputs(adapter, reference)
    if case.mode == "train":
        enter("gradients")
        gradients = reference.arrays(f"gradients-{case.parts}")
        floor = precisions.known()[case.precision].gradient_floor
        rounding = reference.rounding("gradients", case.precision)
        differences += compare_arrays("gradients", adapter.gradients(), gradients, floor, rounding)
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
    rounding = {
        quantity: reference.rounding(quantity, adapter.case.precision)
        for quantity in ("outputs", OF_TOKEN)
    }
    return [counts, *generation.compare(adapter, reference.arrays("generated"), rounding)]
