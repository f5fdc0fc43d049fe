"""The repeats of a case, judged: what tables, checks and report are made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..cases.conditions import Case, Conditions, Key
from ..records.run import Run

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
        return next(one.better for one in self.runs[0].metrics if one.name == self.key.metric)

    @property
    def ok(self) -> tuple[Run, ...]:
        return tuple(run for run in self.runs if run.status == "ok")


#: All that tables, checks and report are made of: runs are grouped and judged once for them.
CaseResults = Mapping[Key, CaseResult]


def marks_of(*cases: CaseResult | None) -> str:
    """All marks of these cases, each once."""
    return " ".join(sorted(frozenset().union(*(case.marks for case in cases if case))))
