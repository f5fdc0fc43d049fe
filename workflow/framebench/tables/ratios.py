"""Ratios of throughputs with verdicts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import pandas as pd

from ..cases.conditions import Key
from ..statistics import descriptive, intervals
from ..statistics.verdicts import verdict
from .columns import Row, interval_cells
from .results import CaseResult, flags_of
from .table import Inputs


class Sides(NamedTuple):
    """Figures of the repeats of a baseline and of a case.

    ``choices``: number of cases that the case was chosen from by these figures."""

    base: Sequence[float]
    values: Sequence[float]
    choices: int = 1


def ratio_table(
    cases: pd.DataFrame,
    inputs: Inputs,
    base: Callable[[Key], Key],
    name: str | Sequence[str],
    at: str | Sequence[str] = "",
    times: int | Sequence[int] = 1,
    refused: Callable[[CaseResult], str] = lambda base: "",
) -> pd.DataFrame:
    """Return ``cases`` with the ratio of each throughput to that of its baseline.

    Parameters
    ----------
    cases : some of ``inputs.frame``.
    base : returns the key of the baseline of a case.
    name, at : name of the baseline, and setting at which it is expected, for reasons.
    times : factor of the baseline's figures for verdicts.
    refused : returns why a case must not be a baseline; "" if it may.

    Returns
    -------
    ``cases`` with the columns ``throughput_baseline``, ``baseline_runs``, ``speedup`` and its
    interval, ``reason``, ``flags`` and ``verdict``, which is adjusted for all rows.
    """
    expected = pd.DataFrame({"name": name, "at": at, "times": times}, index=cases.index)
    rows: list[Row] = []
    sides: list[Sides | None] = []
    for number, (named, setting, factor) in zip(
        cases.index, expected.itertuples(index=False, name=None), strict=True
    ):
        case = inputs.results[number]
        other = inputs.cases.get(base(case.key))
        reason = _why_no_ratio(case, other, named, setting, refused)
        speedup, ends = None, None
        if other and case.throughput is not None and other.throughput and not reason:
            speedup = case.throughput / other.throughput
            is_itself = other is case
            ends = (
                (speedup, speedup)
                if is_itself
                else intervals.ratio_interval(other.values, case.values)
            )
        scaled = [factor * value for value in other.values] if other else []
        is_compared = other is not case and not reason
        sides.append(Sides(scaled, case.values) if is_compared else None)
        rows.append({
            "throughput_baseline": other and other.throughput,
            "baseline_runs": other.uncompiled if other else "",
            "speedup": speedup,
            **interval_cells("speedup", ends),
            "reason": reason,
            "flags": flags_of(case, other),
        })  # fmt: skip
    names = ["throughput_baseline", "speedup", *interval_cells("speedup", None)]
    made = pd.DataFrame(rows, cases.index, [*names, "baseline_runs", "reason", "flags"])
    return cases.assign(**made.astype(dict.fromkeys(names, "float64")), verdict=verdicts(sides))


def _why_no_ratio(
    case: CaseResult,
    base: CaseResult | None,
    name: str,
    at: str,
    refused: Callable[[CaseResult], str],
) -> str:
    """Return why a case has no ratio to its baseline; "" if it has one."""
    if case.compared is None:
        return case.why_not_compared
    if base is None:
        return f"no {name} run{at}"
    if base.compared is None:
        return f"{name} is {base.why_not_compared}"
    return refused(base)


def verdicts(sides: Sequence[Sides | None]) -> list[str]:
    """Return the verdict on each comparison, adjusted for all of them.

    It is "" without a comparison or with too few repeats for an interval. The p-value of a case
    chosen from several is multiplied by their number (Bonferroni)."""
    tested = {
        index: (interval, min(1.0, both.choices * intervals.rank_test(both.base, both.values)))
        for index, both in enumerate(sides)
        if both and (interval := intervals.ratio_interval(both.base, both.values))
    }
    adjusted = dict(zip(tested, intervals.adjusted([p for _, p in tested.values()]), strict=True))

    def text(index: int, both: Sides | None) -> str:
        if both is None or index not in tested:
            return ""
        ratio = descriptive.median(both.values) / descriptive.median(both.base)
        return verdict(ratio, tested[index][0], adjusted[index])

    return [text(index, both) for index, both in enumerate(sides)]


def possible(interval: Sequence[float]) -> str:
    """Return the range that an interval leaves open, for undecided verdicts."""
    low, high = interval
    return (
        f"anything from {low - 1:+.1%} to {high - 1:+.1%} is possible: more repeats, or less noise"
    )
