"""Repeats of a case with their judgement, the input of tables, checks and report."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from core import precisions
from core.case import Case

from ..cases.conditions import OURS, Conditions, Key
from ..config import catalog
from ..records.run import Run

UNCOMPILED = "none"
NOT_RECORDED = "dtype not recorded"

if TYPE_CHECKING:  # slow to import, and plans need only table names
    from ..statistics.intervals import Interval


@dataclass(frozen=True)
class CaseResult:
    """All repeats of one case.

    ``values``: throughputs of the successful repeats. ``throughput``: their median; ``interval``:
    its 95 % interval; None if unavailable. ``remarks``: anomalies of the repeats as text."""

    key: Key
    runs: tuple[Run, ...]
    status: str
    reason: str
    values: tuple[float, ...]
    throughput: float | None
    interval: Interval | None
    marks: frozenset[str]
    remarks: tuple[str, ...]

    @property
    def case(self) -> Case:
        return self.key.case

    @property
    def conditions(self) -> Conditions:
        return self.key.conditions

    @property
    def unit(self) -> str:
        return self.key.unit

    @property
    def better(self) -> str:
        """Direction of the metric: higher or lower."""
        named = (one for one in self.runs[0].metrics if one.name == self.key.metric)
        return next(one.better for one in named)

    @property
    def product_dtypes(self) -> str:
        """Observed matmul dtypes of our runs in precisions of several dtypes; otherwise ""."""
        known = precisions.known().get(self.case.precision)
        if known is None or len(known.dtypes) == 1 or not (self._is_ours and self.ok):
            return ""
        observed = dict.fromkeys(dtype for run in self.ok for dtype in run.product_dtypes)
        return ", ".join(observed) or NOT_RECORDED

    @property
    def uncompiled(self) -> str:
        """Execution of our cases without a compiler, such as eager; otherwise ""."""
        ours = self._is_ours and self.case.compiler == UNCOMPILED
        return str(catalog.facts_of(self.case.framework).get("none_is", "")) if ours else ""

    @property
    def _is_ours(self) -> bool:
        """Return whether this project's adapters ran the case.

        Files exported by this project count as well, even without records."""
        return self.case.source == OURS

    @property
    def peak_device_memory(self) -> int | None:
        """Highest peak of device memory of any rank and successful repeat, in bytes."""
        return max(
            (run.peak_device_memory for run in self.ok if run.peak_device_memory), default=None
        )

    @property
    def allocated_memory(self) -> int | None:
        """Highest memory held by tensors between steps on any rank's device, in bytes."""
        return max((run.allocated_memory for run in self.ok if run.allocated_memory), default=None)

    @property
    def peak_reserved_memory(self) -> int | None:
        """Highest device memory reserved by any rank's allocator, in bytes."""
        reserved = (run.peak_reserved_memory for run in self.ok if run.peak_reserved_memory)
        return max(reserved, default=None)

    @property
    def peak_host_memory(self) -> int | None:
        """Highest peak of host memory of any rank and successful repeat, in bytes."""
        return max((run.peak_host_memory for run in self.ok if run.peak_host_memory), default=None)

    @property
    def ok(self) -> tuple[Run, ...]:
        return tuple(run for run in self.runs if run.status == "ok")


#: Judged cases by key; runs are grouped and judged once.
CaseResults = Mapping[Key, CaseResult]


def minimum(case: CaseResult) -> float | None:
    """Return the smallest value of a repeat; None without one."""
    return min(case.values, default=None)


def maximum(case: CaseResult) -> float | None:
    """Return the largest value of a repeat; None without one."""
    return max(case.values, default=None)


def spread(case: CaseResult) -> float | None:
    """Return (maximum - minimum) / median; None for fewer than two repeats."""
    from ..statistics import shape  # slow to import, and plans make no rows

    return shape.spread(case.values)


def marks_of(*cases: CaseResult | None) -> str:
    """Return the flags of the given cases as text, without duplicates."""
    return " ".join(sorted(frozenset().union(*(case.marks for case in cases if case))))


def marks_of_all(figures: Iterable[str]) -> list[str]:
    """Return the flags that all of several figures have; [] for a single figure."""
    marks = [set(one.split()) for one in figures]
    return sorted(set.intersection(*marks)) if len(marks) > 1 else []


def other_marks(figure: str, everywhere: Collection[str]) -> str:
    """Return the flags of a figure except those in ``everywhere``."""
    return " ".join(mark for mark in figure.split() if mark not in everywhere)
