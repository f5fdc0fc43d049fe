"""Runs grouped into cases: all repeats of one point of the matrix, what became of them, and whether
the figures they give can be trusted."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from . import intervals, statistics, steady
from .parity import Marks
from .run import Run, order

KEYS = (
    "framework",
    "framework_version",
    "source",
    "model",
    "mode",
    "precision",
    "compiler",
    "variant",
    "nodes",
    "devices_per_node",
    "batch_per_device",
)

#: A median is noisy whose interval (with too few repeats for one: whose range) is wider than this
#: part of it, from end to end.
NOISY = 0.05

# Which failure to name where several are equally frequent: the most telling first.
_TELLING = ("oom", "unsupported", "timeout", "failed")
_WORDS = {"oom": "out of memory", "unsupported": "unsupported", "timeout": "timed out"}

Key = tuple[Any, ...]
Place = tuple[Key, str]
"""Keys and unit: images/s and sentences/s have no common median."""


@dataclass(frozen=True)
class Case:
    """All repeats of one case. ``values`` are the throughputs of its ok repeats, ``throughput``
    their median, ``interval`` that of the median; None where there is none."""

    key: Key
    unit: str
    runs: tuple[Run, ...]
    status: str
    reason: str
    values: tuple[float, ...]
    throughput: float | None
    interval: intervals.Interval | None
    marks: frozenset[str]

    def at(self, **other: Any) -> Place:
        """Where the case stands that differs from this one in the given keys only."""
        return tuple(other.get(k, v) for k, v in zip(KEYS, self.key, strict=True)), self.unit

    def get(self, key: str) -> Any:
        return self.key[KEYS.index(key)]

    @property
    def ok(self) -> tuple[Run, ...]:
        return tuple(run for run in self.runs if run.status == "ok")


def group(runs: Sequence[Run], marks: Marks) -> dict[Place, Case]:
    """The cases of any runs in any order, in the order of their runs."""
    groups: dict[Place, list[Run]] = defaultdict(list)
    for run in sorted(runs, key=order):
        groups[tuple(getattr(run, key) for key in KEYS), run.unit].append(run)
    return {place: _case(*place, tuple(some), marks) for place, some in groups.items()}


def marks_of(*cases: Case | None) -> str:
    """All marks of these cases, each once."""
    return " ".join(sorted(frozenset().union(*(case.marks for case in cases if case))))


def _case(key: Key, unit: str, runs: tuple[Run, ...], marks: Marks) -> Case:
    ok = [run for run in runs if run.status == "ok"]
    values = tuple(run.throughput for run in ok if run.throughput is not None)
    failures = [run for run in runs if run.status != "ok"]
    if values:
        reason = ""
        if failures:
            reason = f"{_told(failures, len(runs))}; median of the other {len(values)}"
        interval = intervals.median_interval(values)
        middle = statistics.median(values)
        found = {marks.of(run) for run in runs} | _trust(values, middle, interval)
        found |= {doubt.mark for run in ok for doubt in run.doubts}
        # of an imported run the steps are not known
        if any(0 < len(run.step_seconds) < steady.fewest_steps() for run in ok):
            found.add("few")
        return Case(
            key, unit, runs, "ok", reason, values, middle, interval, frozenset(found - {""})
        )
    counted = Counter(run.status for run in failures)
    status = max(counted, key=lambda name: (counted[name], -_TELLING.index(name)))
    same = [run for run in failures if run.status == status]
    reason = _commonest(same) if len(counted) == 1 else _told(failures, len(runs))
    return Case(key, unit, runs, status, reason, (), None, None, frozenset())


def _trust(values: Sequence[float], middle: float, interval: intervals.Interval | None) -> set[str]:
    """Marks that the repeats alone tell."""
    low, high = interval or (min(values), max(values))
    marks = {"noisy"} if high - low > NOISY * middle else set()
    return marks if interval else marks | {"few"}


def _told(failures: Sequence[Run], total: int) -> str:
    """ "2 of 7 repeats out of memory: ..; 1 failed: .." """
    parts: list[str] = []
    for status in _TELLING:
        same = [run for run in failures if run.status == status]
        if same:
            of = "" if parts else f" of {total} repeats"
            parts.append(f"{len(same)}{of} {_WORDS.get(status, status)}: {_commonest(same)}")
    return "; ".join(parts)


def _commonest(runs: Sequence[Run]) -> str:
    counted = Counter(run.reason for run in runs)
    return max(sorted(counted), key=lambda reason: counted[reason])
