"""Time the forward and backward kernels of a model's layers, shape by shape.

Standard library and numpy.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from typing import Any, Callable, Dict, Iterator, List, Mapping, Sequence

from harness.adapter import Unsupported
from harness.kind import Context, Metric, Workload
from harness.measuring import blocks
from harness.measuring.checks import check_matmuls
from harness.measuring.sweep import Block, GridPoint, PointFigure, Sweep, per_second, scaled
from harness.measuring.verification import rounding
from harness.operations import LayerOperations

#: Operations of a pass relative to the forward pass.
COST = {"forward": 1, "backward": 2}


class ModelKernels(Sweep):
    """Benchmark of the forward and backward kernels of one type of layer, each distinct shape
    alone."""

    needs = LayerOperations
    parameters = blocks.parameters("a pass of a shape")
    #: Functions of a layer's shape: its operations forward, float32 operands, the point of a run
    #: that has it so many times, and the check of a framework's results.
    operations: Callable[[Any], int]
    operands: Callable[[Any, Any], Sequence[Any]]
    at: Callable[[Any, int], Mapping[str, Any]]
    check_results: Callable[[Any, Sequence[Any], Sequence[Any], str, Any], float]
    #: Reason for models without such layers.
    lacking: str

    @abstractmethod
    def shapes(self, workload: Workload) -> Mapping[Any, int]:
        """Return the distinct shapes of a model, and how often it has each."""

    def grid(self, workload: Workload) -> List[GridPoint]:
        shapes = self.shapes(workload)
        return [GridPoint(self.at(shape, times), shape) for shape, times in shapes.items()]

    def figures(self, workload: Workload, subject: Any) -> Dict[str, PointFigure]:
        named = {}
        for direction, cost in COST.items():
            part = {"pass": direction}
            rate = per_second(1e-12 * cost * self.operations(subject))
            named[f"{direction}_rate"] = PointFigure("TFLOP/s", "higher", "min", rate, part)
            named[f"{direction}_time"] = PointFigure("us", "lower", "max", scaled(1e6), part)
        return named

    def metrics(self, workload: Workload) -> Dict[str, Metric]:
        """Return the metrics of all shapes together, weighted by their number in the model, and of
        each alone. The slowest device counts."""
        points = self.grid(workload)
        total: float = sum(
            sum(COST.values()) * at["times"] * self.operations(shape) for at, shape in points
        )

        def seconds(*directions: str, rank: Mapping[str, Any]) -> float:
            each = (
                at["times"]
                * blocks.median_seconds(blocks.block_at(rank, {**at, "pass": direction}))
                for at, _ in points
                for direction in directions
            )
            return float(sum(each))

        def rate(rank: Mapping[str, Any]) -> float:
            return 1e-12 * total / seconds(*COST, rank=rank)

        def milliseconds(direction: str, rank: Mapping[str, Any]) -> float:
            return 1e3 * seconds(direction, rank=rank)

        named = {"model_rate": Metric("TFLOP/s", "higher", "min", rate)}
        for direction in COST:
            of_rank = partial(milliseconds, direction)
            named[f"model_{direction}_time"] = Metric("ms", "lower", "max", of_rank)
        return {**named, **super().metrics(workload)}

    def measure(self, context: Context) -> None:
        import numpy as np

        workload = context.workload
        if not self.shapes(workload):
            raise Unsupported(self.lacking.format(workload.case.model))
        self._random = np.random.RandomState(context.adapter.rank_context.seed)
        self._dtypes: Dict[str, int] = {}
        super().measure(context)
        context.fields["matmul_dtypes"] = check_matmuls(workload.case.precision, self._dtypes)

    def run(self, context: Context, subject: Any) -> Iterator[Block]:
        arrays = self.operands(subject, self._random)
        kernels = context.adapter.forward_backward(subject, arrays)
        dtype = rounding.ran_in(context, kernels.forward.dtype)
        self._dtypes[dtype] = self._dtypes.get(dtype, 0) + 1
        taken = [blocks.measure(context, kernel) for kernel in kernels]
        results = [kernels.forward.result(), *kernels.backward.result()]
        error = self.check_results(subject, arrays, results, dtype, self._random)
        for direction, timing in zip(COST, taken):
            yield {"part": {"pass": direction}, **timing, "error": error}
