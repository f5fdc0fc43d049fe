"""Comparison of two sets of records, case by case: ratio, significance and other differences.

1. Cases with the same keys are matched; the versions of the framework and of a user's own model
   may differ if each side has one.
2. If enough repeats were measured in pairs (:func:`records.run.paired_ratios`), the ratios of the
   pairs are tested (:mod:`statistics.intervals`), which are free of the machine's drift. Enough
   means that they can show a single difference among all these cases
   (:func:`intervals.pairs_needed`).
3. Else each side is a set of repeats: the candidate's median over the base's, with an interval
   (:func:`intervals.ratio_interval`), and a rank sum test. Where less is better, it is the base's
   median over the candidate's, so that above 1 is better in every row.
4. p-values are adjusted for a false discovery rate of 5 %.
5. Verdict: ``faster`` or ``slower`` if the adjusted p-value is at most 5 %; else ``no difference
   shown`` if the interval excludes every difference above the threshold; else ``cannot tell``. The
   interval is not adjusted for the number of cases: it may exclude 1 where the verdict is ``cannot
   tell``."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from .cases.conditions import MODES, Key, series_of_model
from .cases.names import batch_of, topology_of
from .records import record_files
from .records.run import ONE_AFTER_THE_OTHER, Run
from .statistics import descriptive
from .tables import contests, formatting, measured
from .tables.columns import Row, interval_cells
from .tables.declared import fastest
from .tables.ratios import Estimate, Judged, Matched, judge
from .tables.results import CaseResults, flags_of
from .tables.table import Inputs, frame_rows, tables_in

#: Reasons for cases that only one side has.
ALONE = ("not in base", "not in candidate")
TABLE = tables_in(Path(__file__).with_suffix(".yaml"))["compare"]


def compare(base: CaseResults, candidate: CaseResults) -> pd.DataFrame:
    """Return a row for every case of either set; nothing is rounded.
    ``framework_version`` is the base's; a different one of the candidate is among the
    ``differences``. ``pairs`` is 0 if each side was treated as a set."""
    cases = [*match(base, candidate)]
    judged = judge(cases, [("base", "candidate")] * len(cases))
    return TABLE.frame(map(_row, judged))


def summary_text(frame: pd.DataFrame) -> str:
    """Return a line for each case, the number of cases with each verdict, and notes."""
    lines = []
    conditions = formatting.differing_conditions(frame_rows(frame))
    names = [_name(row) for row in frame.itertuples()]
    width = max(map(len, names), default=0)
    row: Any
    for name, row in zip(names, frame.itertuples(), strict=True):
        ratio = "-" if pd.isna(row.ratio) else f"{row.ratio:.3f}"
        if not pd.isna(row.ratio_ci_low):
            ratio += f" [{row.ratio_ci_low:.3f} .. {row.ratio_ci_high:.3f}]"
        ratio += f" {row.pairs} pairs" if row.pairs else ""
        note = f" ({row.reason})" if row.reason else ""
        note += f"  {text}" if (text := conditions(row._asdict())) else ""
        lines.append(f"{name:<{width}} {ratio:<32} {row.verdict}{note}")
    counted = Counter(frame["verdict"])
    lines.append("\n" + ", ".join(f"{counted[name]} {name}" for name in sorted(counted)))
    return "\n".join([*lines, *notes(frame)])


def _name(row: Any) -> str:
    parts = [row.mode, row.metric, row.framework, topology_of(row), row.parameters]
    if row.mode in MODES:
        what = [row.framework, row.model, row.mode, row.precision, row.compiler]
        parts = [*what, topology_of(row), batch_of(row)]
    return " ".join(filter(None, parts))


def notes(frame: pd.DataFrame) -> list[str]:
    """Return a note on the cases with an interval whose two sides were not interleaved, if any."""
    after = frame[frame["ratio_ci_low"].notna() & (frame["order"] == ONE_AFTER_THE_OTHER)]
    if not len(after):
        return []
    middle = descriptive.median(after["ratio"].tolist())
    return [
        f"Measured one after the other ({len(after)} of {len(frame)} cases): what changed on the "
        f"machine in between counts as a difference. Their median ratio is {middle:.3f}. An A/B "
        "test interleaves the runs: variants in config/README.md."
    ]


def match(base: CaseResults, candidate: CaseResults) -> Iterator[Matched]:
    """Yield each case of both sets once, matched with its counterpart in the other set, if any."""
    left = dict(candidate)
    others: dict[Key, list[Key]] = defaultdict(list)
    for key in candidate:
        if key not in base:
            others[_alike(key)].append(key)
    alone: dict[Key, int] = defaultdict(int)
    for key in base:
        alone[_alike(key)] += key not in candidate
    for key, case in base.items():
        if key not in candidate:
            # cases whose keys differ in version or unit match if each side has exactly one of them
            like = others[_alike(key)]
            one = len(like) == 1 and alone[_alike(key)] == 1
            key = like[0] if one else key
        yield Matched(case, left.pop(key, None))
    for case in left.values():
        yield Matched(None, case)


def _alike(key: Key) -> Key:
    return key.without_versions._replace(unit="")


def _row(judged: Judged) -> Row:
    case = judged.matched.either
    return {
        **side_cells(judged.matched, judged.estimate),
        "parameters": measured.parameters_text(case.case, case.key.point),
        "p_adjusted": judged.p_adjusted,
        "verdict": judged.verdict,
        "reason": judged.reason,
    }


def side_cells(matched: Matched, estimate: Estimate | None) -> dict[str, Any]:
    """Return the cells of a case that all tables of base and candidate share."""
    case = matched.either
    models = {side.case.model for side in matched.comparable_sides or ()}
    return {
        **case.key.row,
        # versions of a user's own model are compared under the name that they share
        "model": series_of_model(case.case.model) if len(models) > 1 else case.case.model,
        "metric": case.key.metric,
        "base_median": matched.base and matched.base.compared,
        "candidate_median": matched.candidate and matched.candidate.compared,
        "unit": case.unit,
        "ratio": estimate and estimate.ratio,
        **interval_cells("ratio", estimate.interval if estimate else None),
        "base_repeats": len(matched.base.values) if matched.base else 0,
        "candidate_repeats": len(matched.candidate.values) if matched.candidate else 0,
        "pairs": estimate.pairs if estimate else 0,
        "order": estimate.order if estimate else "",
        "differences": "; ".join(differences(matched)),
        "flags": flags_of(matched.base, matched.candidate),
    }


def differences(matched: Matched) -> Iterator[str]:
    """Yield the differences between both sides besides the code under test."""
    if matched.base is None or matched.candidate is None:
        return
    sides = (matched.base, matched.candidate)
    versions = [side.case.framework_version for side in sides]
    if versions[0] != versions[1]:
        yield f"framework_version {versions[0]} -> {versions[1]}"
    yield from environment_differences(*(environment_of(side.runs) for side in sides))


# ---- environment ---------------------------------------------------------------------------------

#: Parts of a record's environment in which two sets may differ.
ENVIRONMENT = ("python", "packages", "variables", "hardware", "system", "code")
#: Digits of the content of a user's own model, and digest of all that computes a figure.
MODEL_VERSION, COMPUTATION = "model_version", "code.computation"
_DIGEST = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


def environment_of(runs: Sequence[Run]) -> Mapping[str, Any]:
    """Return environment and settings of the first ok run's record, by dotted names.
    For an imported run, return its hardware, if known."""
    run = next((run for run in runs if run.status == "ok"), runs[0])
    if run.record is None:
        return {"hardware": run.hardware} if run.hardware else {}
    try:
        record = record_files.read(run.record)
    except (OSError, ValueError):
        return {}
    parts = {part: record["environment"][part] for part in ENVIRONMENT}
    parts["settings"] = [rank.get("settings") for rank in record["ranks"][:1]]
    parts["given"] = record["settings"].get("variables", {})
    if own_model := record.get("own_model"):
        parts[MODEL_VERSION] = (own_model["sha256"] or "")[:8]
    return dict(_leaves(parts))


def environment_differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    """Yield each difference as text. The version of a user's own model comes first; it replaces the
    digest of the computation. Other digests are shortened."""
    names = {name for name in {*before, *after} if before.get(name) != after.get(name)}
    if MODEL_VERSION in names:
        names.discard(COMPUTATION)
    for name in sorted(names, key=lambda name: (name != MODEL_VERSION, name)):
        # Older records lack the processor, which is not a difference.
        unknown = name.startswith("hardware.processor.") and not (name in before and name in after)
        if not unknown:
            yield f"{name} {_short(before.get(name, 'none'))} -> {_short(after.get(name, 'none'))}"


def _short(value: Any) -> str:
    text = str(value)
    return text[:10] if _DIGEST.fullmatch(text) else text


def _leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the dotted name and value of each leaf: a scalar, or a list without mappings."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(inner, f"{name}.{key}".lstrip("."))
    elif isinstance(value, list) and any(isinstance(inner, dict) for inner in value):
        for inner in value:
            yield from _leaves(inner, name)
    else:
        yield name, value


# ---- agreement -----------------------------------------------------------------------------------


def agreement_text(first: Inputs, second: Inputs) -> str:
    """Say how many orders and intervals of each set the other set confirms; "" for none.

    An order is a setting's fastest framework and a significantly slower one. It repeats if the
    medians of the other set have the same order. An interval holds if it covers the other set's
    median."""
    outcomes = {
        "significant orders repeat": [*_repeats(first, second), *_repeats(second, first)],
        "intervals cover the other median": [*_covers(first, second), *_covers(second, first)],
    }
    return "\n".join(
        f"{sum(held)} of {len(held)} {what} ({sum(held) / len(held):.0%})"
        for what, held in outcomes.items()
        if held
    )


def _repeats(inputs: Inputs, others: Inputs) -> Iterator[bool]:
    """Yield whether each significant order has the same direction in ``others``."""
    ranks = {
        contest.setting: [entrant.case.framework for entrant in contest.entrants]
        for contest in contests.find_contests(others)
    }
    found = contests.find_contests(inputs)
    for contest, slower in zip(found, fastest.slower(found), strict=True):
        names = ranks.get(contest.setting, [])
        for other in slower:
            both = [contest.entrants[0].case.framework, other.case.framework]
            if {*both} <= {*names}:
                yield sorted(both, key=names.index) == both


def _covers(inputs: Inputs, others: Inputs) -> Iterator[bool]:
    """Yield whether the interval of each median covers the median in ``others``."""
    sets = ({**both.cases, **both.others} for both in (inputs, others))
    for matched in match(*sets):
        for own, other in [matched.comparable_sides] if matched.comparable_sides else ():
            if own.interval and other.throughput is not None:
                yield own.interval[0] <= other.throughput <= own.interval[1]
