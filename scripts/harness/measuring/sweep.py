"""Micro-benchmarks that time something at each point of a grid, in blocks.

Standard library only; Python 3.7 to 3.13.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from typing import Any, Callable, Dict, Iterable, List, Mapping, NamedTuple, Sequence, Tuple

from harness.kind import Context, Kind, Metric, Workload, point
from harness.measuring import blocks

Block = Dict[str, Any]


class GridPoint(NamedTuple):
    """Point of a run. ``at``: numbers or words by name, for the record; ``subject``: what they
    say, for the benchmark."""

    at: Mapping[str, Any]
    subject: Any


class PointFigure(NamedTuple):
    """Figure of a point. ``value``: function of the seconds of an operation in the median block;
    ``part``: names the block among those of the point."""

    unit: str
    better: str
    combine: str
    value: Callable[[float], float]
    part: Mapping[str, str] = {}


def per_second(amount: float) -> Callable[[float], float]:
    """Return the function from the seconds of an ``amount`` to its rate."""
    return lambda seconds: amount / seconds


def scaled(factor: float) -> Callable[[float], float]:
    """Return the function from seconds to another unit of time."""
    return lambda seconds: factor * seconds


def mean(values: Sequence[float]) -> float:
    """Return the mean of the figures of all points."""
    return sum(values) / len(values)


def last(values: Sequence[float]) -> float:
    """Return the figure of the last point."""
    return values[-1]


class Sweep(Kind):
    """Micro-benchmark of a grid: a subclass declares the grid, what is run at a point, and the
    figures there."""

    independent_ranks = True
    #: Figures of a whole run: name, name of a figure of the points, and function of a rank's values
    #: at all of them.
    summaries: Sequence[Tuple[str, str, Callable[[List[float]], float]]] = ()

    @abstractmethod
    def grid(self, workload: Workload) -> Sequence[GridPoint]:
        """Return the points in the order in which they are measured."""

    @abstractmethod
    def figures(self, workload: Workload, subject: Any) -> Dict[str, PointFigure]:
        """Return the figures of a point by name."""

    @abstractmethod
    def run(self, context: Context, subject: Any) -> Iterable[Block]:
        """Prepare a point, time it and check its results; yield its blocks: ``operations`` of each,
        ``seconds``, and ``part`` where it has several. Raises as :meth:`measure`."""

    def metrics(self, workload: Workload) -> Dict[str, Metric]:
        named: Dict[str, Metric] = {}
        of_name: Dict[str, List[Metric]] = {}
        for at, subject in self.grid(workload):
            for name, figure in self.figures(workload, subject).items():
                of_rank = partial(_value, {**at, **figure.part}, figure.value)
                metric = Metric(figure.unit, figure.better, figure.combine, of_rank)
                of_name.setdefault(name, []).append(metric)
                named.update([point(name, at, metric)])
        whole = {
            name: of_name[of][0]._replace(of_rank=partial(_over_points, of_name[of], total))
            for name, of, total in self.summaries
        }
        return {**whole, **named}

    def measure(self, context: Context) -> None:
        with blocks.recorded_blocks(context) as timed:
            for at, subject in self.grid(context.workload):
                context.report.enter(", ".join(f"{name} {value}" for name, value in at.items()))
                for block in self.run(context, subject):
                    timed.append({"at": {**at, **block.pop("part", {})}, **block})


def _value(
    at: Mapping[str, Any], value: Callable[[float], float], rank: Mapping[str, Any]
) -> float:
    return value(blocks.operation_seconds(rank, at))


def _over_points(
    metrics: Sequence[Metric], total: Callable[[List[float]], float], rank: Mapping[str, Any]
) -> float:
    return total([metric.of_rank(rank) for metric in metrics])
