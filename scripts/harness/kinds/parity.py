"""How far a framework is from the reference: the errors only; their bounds are the driver's.

Compared with what ``scripts/reference`` left in a folder. Standard library and numpy.
"""

from __future__ import annotations

import json
import os
from typing import Any, Callable, Dict, List, Mapping, Sequence

from harness import precisions
from harness.adapter import Case, Numerics, Operators
from harness.kind import AXES, Context, Kind, Parameter, Subject, one_of
from harness.measuring import model
from harness.measuring.checks import check_same_weights, compiler_proof

STEPS = 5  # optimizer steps whose losses are compared

RANKS = 2  # that the reference has batches for

MASKS = 8  # random masks of dropout that are averaged over


class Compared(Operators, Numerics):
    """An adapter as a comparison sees it."""


class Parity(Kind):
    """Errors of outputs, losses and gradients; it has no metric."""

    parameters = (
        Parameter("mode", one_of("train", "inference"), "", "which computation is compared"),
        Parameter("scale", str, "", "full, or what makes the model smaller", "full"),
        Parameter(
            "reference",
            os.path.abspath,
            "",
            "a folder of scripts/reference, to compare with",
        ),
    )

    needs = Numerics
    axes = AXES

    def mode(self, parameters: Mapping[str, Any]) -> str:
        return str(parameters["mode"])

    def measure(self, context: Context) -> None:
        adapter, fields = context.adapter, context.fields
        reference = Comparison(context.subject.parameters["reference"])
        model.build(context, reference.batch(context.place.rank, adapter.case))
        fields["parity"] = compare(adapter, reference, context.report.enter)
        fields["compiled"] = compiler_proof(adapter)
        fields["weights_checksum"] = adapter.weights_checksum()

    def check(self, subject: Subject, ranks: Sequence[Mapping[str, Any]]) -> None:
        if subject.parameters["mode"] == "train":
            check_same_weights(ranks)


class Comparison:
    """A folder of the reference."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        with open(os.path.join(folder, "expected.json"), encoding="utf-8") as file:
            self.expected: Dict[str, Any] = json.load(file)

    def arrays(self, name: str) -> Mapping[str, Any]:
        """The arrays of ``NAME.npz`` by their names, each read when it is asked for."""
        import numpy as np

        found: Mapping[str, Any] = np.load(os.path.join(self._folder, name + ".npz"))
        return found

    def batch(self, rank: int, case: Case) -> Dict[str, Any]:
        """What a rank computes with: batches that are of as many ranks elsewhere are those of its
        micro-steps. Raises ValueError where there are too few."""
        import numpy as np

        count = case.accumulation
        if case.devices * count > RANKS:
            raise ValueError(
                f"{case.devices} devices with {count} micro-steps each: the reference has "
                f"{RANKS} batches"
            )
        parts = [self.arrays(f"batch-{rank * count + number}") for number in range(count)]
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def relative(actual: Any, expected: Any, floor: float = 0.0) -> float:
    """Euclidean norm of the difference over that of ``expected``, or ``floor`` if that is more.
    Raises ValueError where the shapes differ."""
    import numpy as np

    if actual.shape != expected.shape:
        raise ValueError(f"shape {actual.shape}, not {expected.shape}")
    exact = np.asarray(expected, np.float64)
    distance = float(np.linalg.norm((np.asarray(actual, np.float64) - exact).ravel()))
    return distance / max(float(np.linalg.norm(exact.ravel())), floor, 1e-300)


def _measured(quantity: str, error: float, where: str = "") -> Dict[str, Any]:
    return {"quantity": quantity, "error": error, "where": where}


def _counted(quantity: str, count: int, expected: int) -> Dict[str, Any]:
    return _measured(quantity, abs(count - expected) / expected, str(count))


def compare_arrays(
    quantity: str, actual: Mapping[str, Any], expected: Mapping[str, Any], floor: float
) -> List[Dict[str, Any]]:
    """The largest relative error of one array, and that of all together (``QUANTITY, total``).
    An array is measured against at least the part ``floor`` of its share, by number of elements, of
    the norm of all: a gradient that is zero but for rounding (that of the keys' bias: softmax does
    not see it) has no relative error. In a half precision, rounding alone is a hundredth of the
    larger terms that a small gradient is the difference of.
    Raises KeyError where the names differ."""
    import numpy as np

    if set(actual) != set(expected):
        differing = sorted(set(actual) ^ set(expected))
        raise KeyError(f"{quantity}: of the shared names differ {differing[:5]}")
    squares = sizes = differences = 0.0
    norms = {}
    for name in actual:
        exact = np.asarray(expected[name], np.float64)
        norms[name] = float(np.linalg.norm(exact.ravel()))
        squares += norms[name] ** 2
        sizes += exact.size
    worst, where = 0.0, ""
    for name, array in actual.items():
        share = floor * (squares * array.size / sizes) ** 0.5
        error = relative(array, expected[name], share)
        differences += (error * max(norms[name], share)) ** 2
        if not error <= worst:  # a NaN is the worst of all
            worst, where = error, name
    total = (differences / max(squares, 1e-300)) ** 0.5
    return [_measured(quantity, worst, where), _measured(quantity + ", total", total)]


def compare_outputs(adapter: Compared, reference: Comparison) -> List[Dict[str, Any]]:
    expected = reference.arrays("outputs")
    rank = adapter.place.rank * adapter.case.accumulation
    errors = [
        (relative(array, expected[f"{adapter.case.mode}-{rank}-{number}"]), f"output {number}")
        for number, array in enumerate(adapter.outputs())
    ]
    error, where = max(errors, key=lambda pair: (pair[0] != pair[0], pair[0]))
    return [_measured("outputs", error, where)]


def compare_dropout(adapter: Compared, reference: Comparison) -> List[Dict[str, Any]]:
    """How far the outputs with dropout are from those without (root mean square over several
    masks), against how far they should be."""
    expected = reference.arrays("outputs")[f"train-{adapter.place.rank}-0"]
    squares = [relative(adapter.outputs()[0], expected) ** 2 for _ in range(MASKS)]
    found = (sum(squares) / MASKS) ** 0.5
    return [_measured("dropout", abs(found / reference.expected["dropout_distance"] - 1))]


def compare_training(adapter: Compared, reference: Comparison) -> List[Dict[str, Any]]:
    """Losses over the optimizer's steps, and what the first of them changed: of a precision whose
    updates say nothing the first loss, and the running statistics."""
    weights = reference.arrays("weights")
    precision = precisions.load(adapter.case.precision)
    if adapter.statistics():  # what was compared before has moved them
        adapter.load_weights(dict(weights))
    exact = reference.expected["losses"]

    def error(step: int) -> float:
        loss = adapter.read(adapter.step())
        return float(abs(loss - exact[step]) / abs(exact[step]))

    found = [_measured("loss", error(0))]
    if precision.updates:
        change = {name: array - weights[name] for name, array in adapter.weights().items()}
        floor = precision.gradient_floor
        found += compare_arrays("first update", change, reference.arrays("update"), floor)
    found += compare_statistics(adapter, reference)
    if precision.updates:
        errors = {step: error(step) for step in range(1, STEPS + 1)}
        worst = max(errors, key=lambda step: (errors[step] != errors[step], errors[step]))
        found.append(_measured("losses", errors[worst], f"after {worst} step(s)"))
    return found


def compare_statistics(adapter: Compared, reference: Comparison) -> List[Dict[str, Any]]:
    """What the first step has changed in the running statistics. Whether the variance is kept
    biased or not is the framework's choice, the same for all of them."""
    after, weights = adapter.statistics(), reference.arrays("weights")
    if not after:
        return []
    change = {name: array - weights[name] for name, array in after.items()}
    conventions = [
        compare_arrays("running statistics", change, reference.arrays(f"statistics-{one}"), 0.0)
        for one in ("biased", "unbiased")
    ]
    return min(conventions, key=lambda errors: float(errors[-1]["error"]))


def compare(
    adapter: Compared, reference: Comparison, enter: Callable[[str], None]
) -> List[Dict[str, Any]]:
    """All that can be compared in this case; the adapter has just been built. ``enter`` is told
    what begins. The mean over micro-steps is held against that over as many ranks; whoever has
    either is compared until the gradients."""
    place, case = adapter.place, adapter.case
    batches = place.world_size * case.accumulation
    enter("load weights")
    adapter.load_weights(dict(reference.arrays("weights")))
    if adapter.facts["hyperparameters"].get("dropout"):
        enter("dropout")
        return compare_dropout(adapter, reference)
    parameters = reference.expected["trainable_parameters"]
    multiply_adds = reference.expected["multiply_adds"][case.mode]
    found = [
        _counted("trainable parameters", adapter.trainable_parameters(), parameters),
        _counted("multiply-adds", adapter.forward_multiply_adds(), multiply_adds),
    ]
    enter("outputs")
    found += compare_outputs(adapter, reference)
    if case.mode == "train":
        enter("gradients")
        gradients = reference.arrays(f"gradients-{batches}")
        floor = precisions.load(case.precision).gradient_floor
        found += compare_arrays("gradients", adapter.gradients(), gradients, floor)
    if case.mode == "train" and batches == 1:
        enter("training")
        found += compare_training(adapter, reference)
    return found
