"""Table of the variants of suites: each case against the same case in the first variant."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from ...cases.conditions import OF_VARIANT
from ...records.flags import OWN
from ...records.run import Run
from .. import measured
from ..columns import COLUMNS, OWN_OF_VARIANT, Row, interval_cells
from ..contests import ON_MACHINE, principal_results
from ..ratios import Judged, Matched, judge
from ..results import CaseResult, flags_of
from ..table import Fields, Inputs, declared_table


def rows(inputs: Inputs) -> Iterator[Row]:
    """Yield a row per case of a variant other than the first of its suite.

    The verdicts are adjusted for all of these cases."""
    results = [
        result for result in principal_results(inputs.cases, inputs.others) if result.case.variant
    ]
    first = _first_variants(inputs, results)
    bases: dict[Any, list[CaseResult]] = defaultdict(list)
    for result in results:
        if first[result.case.variant] == result.case.variant:
            bases[result.case.variant, _without_variant(result)].append(result)
    others = [result for result in results if first[result.case.variant] != result.case.variant]
    names = [(first[other.case.variant], other.case.variant) for other in others]
    cases = [
        Matched(_base(bases[base, _without_variant(other)], other), other)
        for other, (base, _) in zip(others, names, strict=True)
    ]
    for other, judged, (base, _) in zip(others, judge(cases, names), names, strict=True):
        yield _row(other, judged, base)


def _first_variants(inputs: Inputs, results: Sequence[CaseResult]) -> dict[str, str]:
    """Return the first variant of the suite that each variant belongs to.

    Where the suite is unknown, it is the variant with the fewest own settings."""
    suites: dict[str, list[str]] = defaultdict(list)
    for expected in inputs.expected:
        if expected.case.variant:
            suites[expected.suite].append(expected.case.variant)
    known = {variant: variants[0] for variants in suites.values() for variant in variants}
    runs = [run for result in results for run in result.runs if run.case.variant not in known]

    def settings(run: Run) -> tuple[int, int, str]:
        names = (name for name in OF_VARIANT if name != "suite_variant")
        own = sum(bool(getattr(run.conditions, name)) for name in names)
        return own, len(run.variables), run.case.variant

    plainest = min(map(settings, runs), default=(0, 0, ""))[-1]
    return {**{run.case.variant: plainest for run in runs}, **known}


def _without_variant(result: CaseResult) -> tuple[Any, ...]:
    """Return what variants of a case have in common. Models of a user's own may differ."""
    key = result.key
    model = OWN if OWN in result.flags else key.case.model
    return (
        key._replace(
            case=key.case._replace(variant="", framework_version="", model=model),
            conditions=replace(key.conditions.without_variant, environment=""),
        ),
        result.runs[0].machine,
    )


def _base(bases: Sequence[CaseResult], case: CaseResult) -> CaseResult | None:
    """Return the base with the model and framework version of ``case``, or the only base; None if
    several are left."""
    of_model = [base for base in bases if base.case.model == case.case.model] or bases
    version = case.case.framework_version
    found = [result for result in of_model if result.case.framework_version == version] or of_model
    return found[0] if len(found) == 1 else None


def _row(case: CaseResult, judged: Judged, base_name: str) -> Row:
    base, estimate = judged.matched.base, judged.estimate
    own = base.key.row if base else {**case.key.row, **_NOTHING, "suite_variant": base_name}
    return {
        **case.key.row,
        ON_MACHINE: case.conditions.machine,
        "parameters": measured.parameters_text(case.case, case.key.point),
        "metric": case.key.metric,
        "median": case.throughput,
        "unit": case.unit,
        "repeats": len(case.values) or len(case.runs),
        **{f"base_{name}": own[name] for name in OWN_OF_VARIANT},
        "base_median": base and base.throughput,
        "speedup": estimate and estimate.ratio,
        **interval_cells("speedup", estimate.interval if estimate else None),
        "base_repeats": len(base.values) if base else 0,
        "pairs": estimate.pairs if estimate else 0,
        "verdict": judged.verdict,
        "reason": judged.reason,
        "flags": flags_of(base, case),
    }


def _behind(row: Row) -> list[tuple[str, Fields]]:
    base = {name: row[f"base_{name}"] for name in OWN_OF_VARIANT}
    return [(base["suite_variant"], base), (row["suite_variant"], {})]


_NOTHING: Row = {name: False if COLUMNS[name].type == "bool" else "" for name in OWN_OF_VARIANT}
VARIANTS = declared_table("variants", rows, behind=_behind)
TABLES = (VARIANTS,)
