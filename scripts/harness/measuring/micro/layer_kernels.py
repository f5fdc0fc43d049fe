"""Time the forward and backward kernels of a model's layers, shape by shape.

Standard library and numpy.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Sequence

from harness.adapter import Unsupported
from harness.kind import Context, Kind, Metric, Workload, point
from harness.measuring import blocks
from harness.measuring.checks import check_matmuls
from harness.measuring.verification import rounding
from harness.operations import ForwardBackward, LayerOperations

FORWARD, BACKWARD = "forward", "backward"
#: Operations of a pass relative to the forward pass.
COST = {FORWARD: 1, BACKWARD: 2}


class LayerShape(NamedTuple):
    """One shape of a layer.

    ``at``: its point of a run. ``times``: how often the model has it. ``operations``:
    floating-point operations of a forward pass."""

    at: Mapping[str, Any]
    times: int
    operations: int


def metrics(shapes: Sequence[LayerShape]) -> Dict[str, Metric]:
    """Return the metrics of all shapes together, weighted by their number in the model, and of each
    alone. The slowest device counts."""

    def milliseconds(direction: str) -> Callable[[Mapping[str, Any]], float]:
        return lambda rank: 1e3 * _model_seconds(rank, shapes, direction)

    total = sum(3 * shape.times * shape.operations for shape in shapes)
    named = {
        "model_rate": Metric(
            "TFLOP/s", "higher", "min",
            lambda rank: 1e-12 * total / sum(_model_seconds(rank, shapes, part) for part in COST),
        ),
        **{
            f"model_{direction}_time": Metric("ms", "lower", "max", milliseconds(direction))
            for direction in COST
        },
    }  # fmt: skip
    for shape in shapes:
        for direction in COST:
            named.update(_shape_metrics(shape, direction))
    return named


def _shape_metrics(shape: LayerShape, direction: str) -> Dict[str, Metric]:
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


def _seconds(rank: Mapping[str, Any], shape: LayerShape, direction: str) -> float:
    """Return the seconds of one pass in the median block."""
    return blocks.operation_seconds(rank, {**shape.at, "pass": direction})


def _model_seconds(rank: Mapping[str, Any], shapes: Sequence[LayerShape], direction: str) -> float:
    return sum(shape.times * _seconds(rank, shape, direction) for shape in shapes)


def measure(
    context: Context,
    shapes: Sequence[LayerShape],
    make: Callable[[int], ForwardBackward],
    check: Callable[[int, List[Any], str], float],
) -> None:
    """Time all ``shapes`` and store their blocks.

    ``make``: returns the kernels of a shape by its number. ``check``: returns the error of results
    and gradients in numpy, given the dtype; raises Mismatch."""
    dtypes: Dict[str, int] = {}
    with blocks.recorded_blocks(context) as timed:
        for number, shape in enumerate(shapes):
            context.report.enter(f"shape {number + 1} of {len(shapes)}")
            kernels = make(number)
            dtype = rounding.ran_in(context, kernels.forward.dtype)
            dtypes[dtype] = dtypes.get(dtype, 0) + 1
            for direction, kernel in zip(COST, kernels):
                taken = blocks.measure(context, kernel)
                timed.append({"at": {**shape.at, "pass": direction}, **taken})
            results = [kernels.forward.result(), *kernels.backward.result()]
            error = check(number, results, dtype)
            for block in timed[-len(COST) :]:
                block["error"] = error
        context.fields["matmul_dtypes"] = check_matmuls(context.workload.case.precision, dtypes)


class ModelKernels(Kind):
    """Benchmark of the forward and backward kernels of one type of layer, each distinct shape
    alone."""

    needs = LayerOperations
    independent_ranks = True
    parameters = blocks.parameters("a pass of a shape")
    #: Module of this package with ``operands``, ``check``, ``at`` and ``operations`` of the layer.
    layers: Any
    #: Reason for models without such layers.
    lacking: str

    @abstractmethod
    def shapes(self, workload: Workload) -> Mapping[Any, int]:
        """Return the distinct shapes of a model, and how often it has each."""

    def metrics(self, workload: Workload) -> Dict[str, Metric]:
        return metrics(self._layer_shapes(workload))

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
            kernels: ForwardBackward = adapter.forward_backward(shapes[number], arrays)
            return kernels

        def check(number: int, results: List[Any], dtype: str) -> float:
            error: float = layers.check(shapes[number], arrays, results, dtype, random)
            return error

        measure(context, self._layer_shapes(workload), make, check)

    def _layer_shapes(self, workload: Workload) -> List[LayerShape]:
        layers = self.layers
        return [
            LayerShape(layers.at(shape, times), times, layers.operations(shape))
            for shape, times in self.shapes(workload).items()
        ]
