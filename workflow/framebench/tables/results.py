"""The repeats of a case, judged: what tables, checks and report are made of."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from core import precisions

from ..cases.conditions import OURS, Case, Conditions, Key
from ..config import catalog
from ..records.run import Run

UNCOMPILED = "none"
NOT_RECORDED = "dtype not recorded"

if TYPE_CHECKING:  # scipy takes its time, and a plan only asks for the names of tables
    from ..statistics.intervals import Interval


@dataclass(frozen=True)
class CaseResult:
    """All repeats of one case. ``values`` are the throughputs of its ok repeats, ``throughput``
    their median, ``interval`` that of the median; None where there is none. ``remarks`` say in
    words what is odd about the repeats."""

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
        """higher or lower."""
        named = (one for one in self.runs[0].metrics if one.name == self.key.metric)
        return next(one.better for one in named)

    @property
    def row(self) -> dict[str, Any]:
        """The values of RESULT_COLUMNS, by column: the case, and how its framework ran it."""
        own = {"product_dtypes": self._product_dtypes, "uncompiled": self.uncompiled}
        return self.key.row | own

    @property
    def _product_dtypes(self) -> str:
        """Of our runs in a precision that is not one dtype; "" for all others."""
        known = precisions.known().get(self.case.precision)
        if known is None or len(known.dtypes) == 1 or not (self._is_ours and self.ok):
            return ""
        observed = dict.fromkeys(dtype for run in self.ok for dtype in run.product_dtypes)
        return ", ".join(observed) or NOT_RECORDED

    @property
    def uncompiled(self) -> str:
        """How a case without a compiler ran that this project's adapters did; else ""."""
        ours = self._is_ours and self.case.compiler == UNCOMPILED
        return str(catalog.facts_of(self.case.framework).get("none_is", "")) if ours else ""

    @property
    def _is_ours(self) -> bool:
        """Whether this project's adapters ran it: also where a file of ours says so that another
        format was for, without the records."""
        return self.case.source == OURS

    @property
    def peak_device_memory(self) -> int | None:
        """Bytes, the most that any rank of any ok repeat held on its device."""
        return max(
            (run.peak_device_memory for run in self.ok if run.peak_device_memory), default=None
        )

    @property
    def allocated_memory(self) -> int | None:
        """Bytes that tensors hold between steps, the most of any rank's device."""
        return max((run.allocated_memory for run in self.ok if run.allocated_memory), default=None)

    @property
    def peak_reserved_memory(self) -> int | None:
        """Bytes, the most that any rank's allocator had taken of its device."""
        reserved = (run.peak_reserved_memory for run in self.ok if run.peak_reserved_memory)
        return max(reserved, default=None)

    @property
    def peak_host_memory(self) -> int | None:
        """Bytes, the most that any rank of any ok repeat held on the host."""
        return max((run.peak_host_memory for run in self.ok if run.peak_host_memory), default=None)

    @property
    def ok(self) -> tuple[Run, ...]:
        return tuple(run for run in self.runs if run.status == "ok")


#: All that tables, checks and report are made of: runs are grouped and judged once for them.
CaseResults = Mapping[Key, CaseResult]


def marks_of(*cases: CaseResult | None) -> str:
    """All marks of these cases, each once."""
    return " ".join(sorted(frozenset().union(*(case.marks for case in cases if case))))


def marks_of_all(figures: Iterable[str]) -> list[str]:
    """Of the marks of each figure those that every one of several carries: beside all of them they
    say nothing of any."""
    marks = [set(one.split()) for one in figures]
    return sorted(set.intersection(*marks)) if len(marks) > 1 else []


def other_marks(figure: str, everywhere: Collection[str]) -> str:
    """The marks of a figure but for those that stand ``everywhere``."""
    return " ".join(mark for mark in figure.split() if mark not in everywhere)
