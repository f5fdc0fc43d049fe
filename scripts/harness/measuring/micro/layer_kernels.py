"""Forward and backward passes of a model's operations, timed shape by shape.

Standard library and numpy.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Sequence

from harness.adapter import Unsupported
from harness.kind import Context, Kind, Metric, Workload, point
from harness.measuring import blocks
from harness.measuring.checks import check_matmuls
from harness.operations import ForwardBackward, LayerOperations

FORWARD, BACKWARD = "forward", "backward"
#: Operations of a pass, over those of the forward pass.
COST = {FORWARD: 1, BACKWARD: 2}


class Shaped(NamedTuple):
    """One shape of an operation. ``at``: the point of a run that it is; ``times``: how often the
    model has it; ``operations``: floating-point operations of a forward pass."""

    at: Mapping[str, Any]
    times: int
    operations: int


def metrics(shapes: Sequence[Shaped]) -> Dict[str, Metric]:
    """Of all shapes, each as often as the model has it, and of each alone. Of several devices the
    slowest counts."""

    def milliseconds(direction: str) -> Callable[[Mapping[str, Any]], float]:
        return lambda rank: 1e3 * _of_model(rank, shapes, direction)

    total = sum(3 * one.times * one.operations for one in shapes)
    found = {
        "model_rate": Metric(
            "TFLOP/s", "higher", "min",
            lambda rank: 1e-12 * total / sum(_of_model(rank, shapes, one) for one in COST),
        ),
        **{
            f"model_{direction}_time": Metric("ms", "lower", "max", milliseconds(direction))
            for direction in COST
        },
    }  # fmt: skip
    for shape in shapes:
        for direction in COST:
            found.update(_of_shape(shape, direction))
    return found


def _of_shape(shape: Shaped, direction: str) -> Dict[str, Metric]:
    work = COST[direction] * shape.operations

    def rate(rank: Mapping[str, Any]) -> float:
        return 1e-12 * work / _seconds(rank, shape, direction)

    def microseconds(rank: Mapping[str, Any]) -> float:
        return 1e6 * _seconds(rank, shape, direction)

    return dict(
        [
            point(f"{direction}_rate", shape.at, Metric("TFLOP/s", "higher", "min", rate)),
            point(f"{direction}_time", shape.at, Metric("us", "lower", "max", microseconds)),
        ]
    )


def _seconds(rank: Mapping[str, Any], shape: Shaped, direction: str) -> float:
    """Of one pass in the median block."""
    return blocks.operation_seconds(rank, {**shape.at, "pass": direction})


def _of_model(rank: Mapping[str, Any], shapes: Sequence[Shaped], direction: str) -> float:
    return sum(one.times * _seconds(rank, one, direction) for one in shapes)


def measure(
    context: Context,
    shapes: Sequence[Shaped],
    make: Callable[[int], ForwardBackward],
    check: Callable[[int, List[Any], str], float],
) -> None:
    """Leaves the blocks of all ``shapes``. ``make``: the passes of one, by its number; ``check``:
    of its result and gradients, for numpy, and the dtype of the result; raises Mismatch."""
    dtypes: Dict[str, int] = {}
    with blocks.recorded_blocks(context) as found:
        for number, shape in enumerate(shapes):
            context.report.enter(f"shape {number + 1} of {len(shapes)}")
            made = make(number)
            dtypes[made.forward.dtype] = dtypes.get(made.forward.dtype, 0) + 1
            for direction, ran in zip(COST, made):
                taken = blocks.measure(context, ran)
                found.append({"at": {**shape.at, "pass": direction}, **taken})
            results = [made.forward.result(), *made.backward.result()]
            error = check(number, results, made.forward.dtype)
            for block in found[-len(COST) :]:
                block["error"] = error
        context.fields["products"] = check_matmuls(context.workload.case.precision, dtypes)


class ModelKernels(Kind):
    """ForwardBackward of one sort of a model's layers, each distinct one alone."""

    needs = LayerOperations
    independent_ranks = True
    parameters = blocks.parameters("a pass of a shape")
    #: The module beside this one with ``operands``, ``check``, ``at`` and ``operations`` of them.
    layers: Any
    #: What is said of a model that has none.
    lacking: str

    @abstractmethod
    def shapes(self, workload: Workload) -> Mapping[Any, int]:
        """The distinct ones of a model, and how often it has each."""

    def metrics(self, workload: Workload) -> Dict[str, Metric]:
        return metrics(self._shaped(workload))

    def measure(self, context: Context) -> None:
        import numpy as np

        workload, adapter, layers = context.workload, context.adapter, self.layers
        shapes = list(self.shapes(workload))
        if not shapes:
            raise Unsupported(self.lacking.format(workload.case.model))
        random = np.random.RandomState(adapter.rank_context.seed)
        arrays: List[Any] = []

        def make(number: int) -> ForwardBackward:
            arrays[:] = layers.operands(shapes[number], random)
            made: ForwardBackward = adapter.forward_backward(shapes[number], arrays)
            return made

        def check(number: int, results: List[Any], dtype: str) -> float:
            error: float = layers.check(shapes[number], arrays, results, dtype, random)
            return error

        measure(context, self._shaped(workload), make, check)

    def _shaped(self, workload: Workload) -> List[Shaped]:
        layers = self.layers
        return [
            Shaped(layers.at(shape, times), times, layers.operations(shape))
            for shape, times in self.shapes(workload).items()
        ]
