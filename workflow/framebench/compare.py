"""Two sets of records, case by case: how much faster or slower, how sure that is, and what else is
not the same.

1. Cases with the same keys are matched; the framework's version may differ where each side has one.
2. ratio: candidate's median over base's, with an interval (:func:`intervals.ratio_interval`).
3. A rank sum test per case; p-values adjusted so that of all differences called 5 % are false.
4. Verdict: ``faster`` or ``slower`` where the adjusted p-value is at most 5 %; else ``no difference
   shown`` where the interval excludes every difference above the threshold; else ``cannot tell``.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from . import intervals, statistics
from .cases import KEYS, Case, Key, group, marks_of
from .parity import Marks
from .records import load_record
from .run import RecordsError, Run

COLUMNS = (
    *KEYS,
    "base_median",
    "candidate_median",
    "unit",
    "ratio",
    "ratio_ci_low",
    "ratio_ci_high",
    "p_adjusted",
    "verdict",
    "base_repeats",
    "candidate_repeats",
    "reason",
    "differences",
    "marks",
)
LEVEL = 0.05  # of all differences called, this part is false on average
THRESHOLD = 0.05  # a difference that must be excluded before none is said to be shown
FASTER, SLOWER = "faster", "slower"
NO_DIFFERENCE, CANNOT_TELL = "no difference shown", "cannot tell"

#: The parts of a record's environment in which two sets may differ.
ENVIRONMENT = ("python", "packages", "variables", "hardware", "system", "code")
VERSION = KEYS.index("framework_version")


@dataclass(frozen=True)
class Pair:
    """The same case in both sets; None where a set does not have it."""

    base: Case | None
    candidate: Case | None

    @property
    def both(self) -> tuple[Case, Case] | None:
        """Both, where both have a throughput."""
        if self.base is None or self.candidate is None:
            return None
        found = self.base.throughput is not None and self.candidate.throughput is not None
        return (self.base, self.candidate) if found else None

    @property
    def ratio(self) -> float | None:
        """Candidate's median over base's."""
        if self.both is None:
            return None
        base, candidate = self.both
        return statistics.median(candidate.values) / statistics.median(base.values)


def compare(
    base: Sequence[Run],
    candidate: Sequence[Run],
    marks: tuple[Marks, Marks] = (Marks(), Marks()),
    threshold: float = THRESHOLD,
) -> pd.DataFrame:
    """A row for every case of either set, COLUMNS; nothing is rounded. ``threshold``: a part.

    ``framework_version`` is the base's; another one of the candidate's is among the
    ``differences``."""
    pairs = list(match(group(base, marks[0]), group(candidate, marks[1])))
    tested = [pair for pair in pairs if _interval(pair) is not None]
    p_values = [
        intervals.rank_test(both[0].values, both[1].values)
        for both in (pair.both for pair in tested)
        if both
    ]
    adjusted = dict(zip(map(id, tested), intervals.adjusted(p_values), strict=True))
    rows = [_row(pair, adjusted.get(id(pair)), threshold) for pair in pairs]
    frame = pd.DataFrame(rows, columns=list(COLUMNS), dtype=object)
    numbers = ("base_median", "candidate_median", "ratio", "ratio_ci_low", "ratio_ci_high",
               "p_adjusted")  # fmt: skip
    counts = ("nodes", "devices_per_node", "batch_per_device", "base_repeats",
              "candidate_repeats")  # fmt: skip
    types = {**dict.fromkeys(numbers, "float64"), **dict.fromkeys(counts, "int64")}
    return frame.astype({name: types.get(name, "str") for name in COLUMNS})


def summary_text(frame: pd.DataFrame) -> str:
    """A line for each case, and how many have each verdict."""
    lines = []
    row: Any
    for row in frame.itertuples():
        case = (
            f"{row.framework:<11} {row.model:<14} {row.mode:<9} {row.precision:<4} "
            f"{row.compiler:<9} {row.nodes}n{row.devices_per_node}g b{row.batch_per_device:<4}"
        )
        ratio = "-" if pd.isna(row.ratio) else f"{row.ratio:.3f}"
        if not pd.isna(row.ratio_ci_low):
            ratio += f" [{row.ratio_ci_low:.3f} .. {row.ratio_ci_high:.3f}]"
        note = f" ({row.reason})" if row.reason else ""
        lines.append(f"{case} {ratio:<24} {row.verdict}{note}")
    counted = Counter(frame["verdict"])
    lines.append("\n" + ", ".join(f"{counted[name]} {name}" for name in sorted(counted)))
    return "\n".join(lines)


def regressions(frame: pd.DataFrame, threshold: float) -> pd.DataFrame:
    """The rows of :func:`compare` that are shown to be slower by more than ``threshold``, and the
    cases that the candidate no longer runs."""
    slower = (frame["verdict"] == SLOWER) & (frame["ratio"] < 1 - threshold)
    lost = frame["base_median"].notna() & frame["candidate_median"].isna()
    return frame[slower | lost]


def match(
    base: Mapping[tuple[Key, str], Case], candidate: Mapping[tuple[Key, str], Case]
) -> Iterator[Pair]:
    """Every case of either set once: with its like, or alone."""
    left = dict(candidate)
    others: dict[Any, list[Any]] = defaultdict(list)
    for place in candidate:
        if place not in base:
            others[_without_version(place)].append(place)
    alone: dict[Any, int] = defaultdict(int)
    for place in base:
        alone[_without_version(place)] += place not in candidate
    for place, case in base.items():
        if place not in candidate:
            # another version, where each side has exactly one
            like = others[_without_version(place)]
            one = len(like) == 1 and alone[_without_version(place)] == 1
            place = like[0] if one else place
        yield Pair(case, left.pop(place, None))
    for case in left.values():
        yield Pair(None, case)


def _without_version(place: tuple[Key, str]) -> Any:
    key, unit = place
    return (*key[:VERSION], *key[VERSION + 1 :], unit)


def _interval(pair: Pair) -> intervals.Interval | None:
    if pair.both is None:
        return None
    base, candidate = pair.both
    return intervals.ratio_interval(base.values, candidate.values)


def _row(pair: Pair, p_adjusted: float | None, threshold: float) -> list[Any]:
    case = pair.base or pair.candidate
    assert case is not None
    interval = _interval(pair)
    verdict, reason = _verdict(pair, interval, p_adjusted, threshold)
    return [
        *case.key,
        pair.base and pair.base.throughput,
        pair.candidate and pair.candidate.throughput,
        case.unit,
        pair.ratio,
        *(interval or (None, None)),
        p_adjusted,
        verdict,
        len(pair.base.values) if pair.base else 0,
        len(pair.candidate.values) if pair.candidate else 0,
        reason,
        "; ".join(_differences(pair)),
        marks_of(pair.base, pair.candidate),
    ]


def _verdict(
    pair: Pair,
    interval: intervals.Interval | None,
    p_adjusted: float | None,
    threshold: float,
) -> tuple[str, str]:
    """The verdict, and where there is none why."""
    for name, case in (("base", pair.base), ("candidate", pair.candidate)):
        if case is None:
            return CANNOT_TELL, f"not in {name}"
        if case.throughput is None:
            return CANNOT_TELL, f"{name} is {case.status}: {case.reason}"
    ratio = pair.ratio
    if interval is None or p_adjusted is None or ratio is None:
        needed = intervals.repeats_for_comparison()
        return CANNOT_TELL, f"needs {needed} repeats on both sides"
    if p_adjusted <= LEVEL:
        return (FASTER if ratio > 1 else SLOWER), ""
    low, high = interval
    if low > 1 - threshold and high < 1 + threshold:
        return NO_DIFFERENCE, ""
    return CANNOT_TELL, (
        f"anything from {low - 1:+.1%} to {high - 1:+.1%} is possible: more repeats, or less noise"
    )


def _differences(pair: Pair) -> Iterator[str]:
    """What besides the code under test is not the same on both sides."""
    if pair.base is None or pair.candidate is None:
        return
    versions = (pair.base.key[VERSION], pair.candidate.key[VERSION])
    if versions[0] != versions[1]:
        yield f"framework_version {versions[0]} -> {versions[1]}"
    one, other = (_environment(case.runs) for case in (pair.base, pair.candidate))
    for name in sorted({*one, *other}):
        if one.get(name) != other.get(name):
            yield f"{name} {one.get(name, 'none')} -> {other.get(name, 'none')}"


def _environment(runs: Sequence[Run]) -> Mapping[str, Any]:
    """Facts of the first run's record, flat; of an imported run what it has."""
    run = next((run for run in runs if run.status == "ok"), runs[0])
    if run.record is None:
        return {"hardware": run.hardware} if run.hardware else {}
    try:
        record = load_record(run.record)
    except RecordsError:
        return {}
    parts = {part: record["environment"][part] for part in ENVIRONMENT}
    parts["settings"] = [rank.get("settings") for rank in record["ranks"][:1]]
    parts["given"] = record["settings"].get("variables", {})
    return {name: value for part in parts for name, value in _flat(part, parts[part])}


def _flat(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _flat(f"{name}.{key}", inner)
    elif isinstance(value, list) and any(isinstance(inner, dict) for inner in value):
        for inner in value:
            yield from _flat(name, inner)
    else:
        yield name, value
