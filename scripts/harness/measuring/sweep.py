"""Micro-benchmarks that time something at each point of a grid, in blocks.

Standard library only; Python 3.7 to 3.13.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from typing import Any, Callable, Dict, Iterable, List, Mapping, NamedTuple, Sequence, Tuple

from harness.adapter import Unsupported
from harness.kind import Context, Kind, Metric, Workload, point
from harness.measuring import blocks

Block = Mapping[str, Any]


class GridPoint(NamedTuple):
    """Point of a run. ``at``: numbers or words by name, for the record; ``subject``: their meaning,
    for the benchmark."""

    at: Mapping[str, Any]
    subject: Any


def per_second(amount: float) -> Callable[[Block], float]:
    """Return the function from a block of operations of an ``amount`` to its rate."""
    return lambda block: amount / blocks.median_seconds(block)


def scaled(factor: float) -> Callable[[Block], float]:
    """Return the function from a block to the time of an operation in another unit."""
    return lambda block: factor * blocks.median_seconds(block)


def bandwidth(block: Block) -> float:
    """Return the rate of a block that states its ``bytes``, in GB/s (10^9 bytes)."""
    return float(1e-9 * block["bytes"] / blocks.median_seconds(block))


def mean(values: Sequence[float]) -> float:
    """Return the mean of the figures of all points."""
    return sum(values) / len(values)


def last(values: Sequence[float]) -> float:
    """Return the figure of the last point."""
    return values[-1]


class Sweep(Kind):
    """Micro-benchmark of a grid: a subclass declares the grid, the operations at a point, and their
    figures."""

    independent_ranks = True
    #: Figures of a whole run: name, name of the point figure, and a function of a rank's values at
    #: all points.
    summaries: Sequence[Tuple[str, str, Callable[[List[float]], float]]] = ()
    #: False where names of figures do not include the point, because each belongs to only one.
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
