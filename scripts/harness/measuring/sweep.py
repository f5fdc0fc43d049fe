"""Micro-benchmarks that time something at each point of a grid, in blocks; in particular forward
and backward kernels of a model's layers, shape by shape."""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from typing import (
    Any,
    Callable,
    Dict,
    Generic,
    Iterable,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    Sequence,
    Tuple,
    TypeVar,
)

from harness.adapter import Unsupported
from harness.capabilities import MicroBenchmarks
from harness.kind import Context, Kind, Metric, Workload, point
from harness.measuring import blocks, rounding
from harness.measuring.checks import check_matmuls
from harness.measuring.operands import check_error, check_shape

Block = Mapping[str, Any]
#: Operations of a pass relative to the forward pass.
COST = {"forward": 1, "backward": 2}
Shape = TypeVar("Shape")


class GridPoint(NamedTuple):
    """Point of a run. ``at``: coordinates by name, for the record; ``subject``: the same point, as
    the benchmark's own object."""

    at: Mapping[str, Any]
    subject: Any


def per_second(amount: float) -> Callable[[Block], float]:
    """Return a function from a block to its rate, where each operation has this ``amount``."""
    return lambda block: amount / blocks.median_seconds(block)


def scaled(factor: float) -> Callable[[Block], float]:
    """Return a function from a block to the seconds of one operation times ``factor``."""
    return lambda block: factor * blocks.median_seconds(block)


def bandwidth(block: Block) -> float:
    """Return the rate of a block that states its ``bytes``, in GB/s (10^9 bytes)."""
    return float(1e-9 * block["bytes"] / blocks.median_seconds(block))


def mean(values: Sequence[float]) -> float:
    """Return the mean of the figures of all points."""
    return sum(values) / len(values)


class Sweep(Kind):
    """Micro-benchmark of a grid: a subclass declares the grid, the operations at a point, and their
    figures."""

    independent_ranks = True
    #: Axes of single operations, in the dtype of the case's precision.
    axes: Sequence[str] = ("framework", "nodes", "devices_per_node", "precision")
    #: Figures of a whole run: name, name of the point figure, and a function of a rank's values at
    #: all points.
    summaries: Sequence[Tuple[str, str, Callable[[List[float]], float]]] = ()
    #: False where names of figures do not include the point, because each figure has only one.
    names_points = True

    @abstractmethod
    def grid(self, workload: Workload) -> Sequence[GridPoint]:
        """Return the points in the order in which they are measured."""

    @abstractmethod
    def figures(self, workload: Workload, subject: Any) -> Dict[str, Metric]:
        """Return the figures of a point by name; each ``rank_value`` takes a rank's block at this
        point. ``at``: names the block, where a point has several."""

    @abstractmethod
    def run(self, context: Context, subject: Any) -> Iterable[Block]:
        """Prepare a point, time it and check its results; yield its blocks: ``operations`` of each,
        ``seconds``, and ``part`` where it has several. Raises as :meth:`measure`."""

    def metrics(self, workload: Workload) -> Dict[str, Metric]:
        named: Dict[str, Metric] = {}
        of_name: Dict[str, List[Metric]] = {}
        for at, subject in self.grid(workload):
            for name, figure in self.figures(workload, subject).items():
                rank_value = partial(_value, {**at, **figure.at}, figure.rank_value)
                metric = figure._replace(rank_value=rank_value, at={})
                of_name.setdefault(name, []).append(metric)
                named.update([point(name, at, metric) if self.names_points else (name, metric)])
        whole = {
            name: of_name[of][0]._replace(rank_value=partial(_over_points, of_name[of], total))
            for name, of, total in self.summaries
        }
        return {**whole, **named}

    def measure(self, context: Context) -> None:
        if not self.independent_ranks and context.rank_context.world_size == 1:
            raise Unsupported("one device has no other to communicate with")
        with blocks.recorded_blocks(context) as timed:
            for at, subject in self.grid(context.workload):
                where = ", ".join(f"{name} {value}" for name, value in at.items())
                context.report.enter(where or "timed window")
                for block in self.run(context, subject):
                    entry = dict(block)
                    timed.append({"at": {**at, **entry.pop("part", {})}, **entry})


def _value(
    at: Mapping[str, Any], value: Callable[[Block], float], rank: Mapping[str, Any]
) -> float:
    return value(blocks.block_at(rank, at))


def _over_points(
    metrics: Sequence[Metric], total: Callable[[List[float]], float], rank: Mapping[str, Any]
) -> float:
    return total([metric.rank_value(rank) for metric in metrics])


class ModelKernels(Sweep, Generic[Shape]):
    """Benchmark of the forward and backward kernels of one type of layer, each distinct shape
    alone."""

    needs = MicroBenchmarks
    parameters = blocks.parameters("a pass of a shape")
    #: Reason for models without such layers.
    lacking: str
    #: Names of the result and of the gradient of each operand.
    results: Sequence[str]

    @abstractmethod
    def shapes(self, workload: Workload) -> Mapping[Shape, int]:
        """Return the distinct layer shapes of a model, with the number of layers of each."""

    @abstractmethod
    def at(self, shape: Shape) -> Dict[str, Any]:
        """Return the extents of a shape by name, for the record."""

    @abstractmethod
    def operations(self, shape: Shape) -> int:
        """Return the floating-point operations of the forward pass; the backward pass has twice as
        many."""

    @abstractmethod
    def operands(self, shape: Shape, random: Any) -> Sequence[Any]:
        """Return float32 operands, and last the gradient of the result."""

    @abstractmethod
    def compared(
        self, shape: Shape, arrays: Sequence[Any], results: Sequence[Any], random: Any
    ) -> Tuple[Sequence[Any], Sequence[Any]]:
        """Return parts of the result and of each gradient, and the same parts in float64."""

    def check_results(
        self,
        shape: Shape,
        arrays: Sequence[Any],
        results: Sequence[Any],
        dtype: str,
        random: Any,
    ) -> float:
        """Return the largest error of ``results`` against float64: the result, and the gradients of
        the operands. Raises Mismatch where it exceeds rounding, and for another shape."""
        where = ", ".join(f"{name} {value}" for name, value in self.at(shape).items())
        names = [f"{name} of {self.name} at {where}" for name in self.results]
        for array, like, name in zip(results, (arrays[-1], *arrays[:-1]), names):
            check_shape(array, like.shape, name)
        parts, expected = self.compared(shape, arrays, results, random)
        return max(
            check_error(part, exact, dtype, name)
            for part, exact, name in zip(parts, expected, names)
        )

    def grid(self, workload: Workload) -> List[GridPoint]:
        return [
            GridPoint({**self.at(shape), "times": times}, shape)
            for shape, times in self.shapes(workload).items()
        ]

    def figures(self, workload: Workload, subject: Any) -> Dict[str, Metric]:
        named = {}
        for direction, cost in COST.items():
            part = {"pass": direction}
            rate = per_second(1e-12 * cost * self.operations(subject))
            named[f"{direction}_rate"] = Metric("TFLOP/s", "higher", "min", rate, at=part)
            named[f"{direction}_time"] = Metric("us", "lower", "max", scaled(1e6), at=part)
        return named

    def metrics(self, workload: Workload) -> Dict[str, Metric]:
        """Return the metrics of all shapes together, weighted by their number in the model, and of
        each shape alone. The slowest device counts."""
        points = self.grid(workload)
        total = sum(COST.values()) * sum(
            at["times"] * self.operations(shape) for at, shape in points
        )

        def seconds(rank: Mapping[str, Any], *directions: str) -> float:
            each = (
                at["times"]
                * blocks.median_seconds(blocks.block_at(rank, {**at, "pass": direction}))
                for at, _ in points
                for direction in directions
            )
            return float(sum(each))

        def milliseconds(direction: str, rank: Mapping[str, Any]) -> float:
            return 1e3 * seconds(rank, direction)

        named = {
            "model_rate": Metric(
                "TFLOP/s", "higher", "min", lambda rank: 1e-12 * total / seconds(rank, *COST)
            )
        }
        for direction in COST:
            rank_value = partial(milliseconds, direction)
            named[f"model_{direction}_time"] = Metric("ms", "lower", "max", rank_value)
        return {**named, **super().metrics(workload)}

    def measure(self, context: Context) -> None:
        workload = context.workload
        if not self.shapes(workload):
            raise Unsupported(self.lacking.format(workload.case.model))
        self._dtypes: Dict[str, int] = {}
        super().measure(context)
        context.fields["matmul_dtypes"] = check_matmuls(workload.case.precision, self._dtypes)

    def run(self, context: Context, subject: Any) -> Iterator[Block]:
        random = blocks.random_of(context)
        arrays = self.operands(subject, random)
        kernels = context.adapter.primitives().forward_backward(subject, arrays)
        dtype = rounding.ran_in(context, kernels.forward.dtype)
        self._dtypes[dtype] = self._dtypes.get(dtype, 0) + 1
        taken = [blocks.measure(context, kernel) for kernel in kernels]
        results = [kernels.forward.result(), *kernels.backward.result()]
        error = self.check_results(subject, arrays, results, dtype, random)
        for direction, timing in zip(COST, taken):
            yield {"part": {"pass": direction}, **timing, "error": error}
