"""Table of the variants of suites: each case against the same case in the first variant."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from ...cases.conditions import KEYS, OF_VARIANT
from ...records.fields.flags import OWN
from .. import measured
from ..columns import (
    CASE_COLUMNS,
    COLUMNS,
    NUMBER,
    TEXT,
    THOUSANDTHS,
    WHOLE,
    Column,
    Row,
    interval_cells,
    shared,
)
from ..contests import ON_MACHINE, principal_results
from ..matched import Judged, Matched, judge
from ..ratios import VERDICT
from ..results import CaseResult, flags_of
from ..table import Drawing, Fields, Inputs, Table

#: Fields in which the variants of one case may differ.
_OWN = ("framework_version", *OF_VARIANT, "environment")


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

    Where the suite is unknown, it is the one with the fewest settings of its own."""
    suites: dict[str, list[str]] = defaultdict(list)
    for expected in inputs.expected:
        if expected.case.variant:
            suites[expected.suite].append(expected.case.variant)
    known = {variant: variants[0] for variants in suites.values() for variant in variants}
    runs = [run for result in results for run in result.runs if run.case.variant not in known]
    settings = {
        run.case.variant: (
            sum(
                bool(getattr(run.conditions, name))
                for name in OF_VARIANT
                if name != "suite_variant"
            ),
            len(run.variables),
            run.case.variant,
        )
        for run in runs
    }
    plainest = min(settings, key=lambda name: settings[name], default="")
    return {**dict.fromkeys(settings, plainest), **known}


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
        "result": case,
        ON_MACHINE.name: case.conditions.machine,
        measured.PARAMETERS.name: measured.parameters_text(case.case, case.key.point),
        **{f"base_{name}": own[name] for name in _OWN},
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
    base = {name: row[f"base_{name}"] for name in _OWN}
    return [(base["suite_variant"], base), (row["suite_variant"], {})]


_RATIO = ("speedup", "speedup_ci_low", "speedup_ci_high")
_NOTHING: Row = {name: False if COLUMNS[name].type == "bool" else "" for name in _OWN}
VARIANTS = Table(
    name="variants",
    title="Variants",
    explanation="Each variant of a suite against its first one, everything else equal: the ratio, "
    "above 1 where the variant is better, also of metrics of which less is better. Where there "
    "are enough pairs of runs close in time, ratio, interval and verdict come from the signed "
    "ranks of their ratios, else from the medians and the ranks of all repeats.",
    columns=(
        *CASE_COLUMNS,
        ON_MACHINE,
        measured.PARAMETERS,
        replace(measured.METRIC, hoisted=True),
        Column(
            "base_suite_variant", TEXT, "first variant of the suite", title="against", hoisted=True
        ),
        *(
            replace(COLUMNS[name], name=f"base_{name}", explanation=f"`{name}` of the first "
                    "variant", value=None, hidden=True, follows="", hoisted=False)
            for name in _OWN if name != "suite_variant"
        ),
        Column(
            "base_median", NUMBER, "median of the base, in `unit`",
            form=measured.MEDIAN.form, why=lambda row: "",
        ),
        replace(measured.MEDIAN, flagged=False, why=lambda row: ""),
        *shared("unit"),
        *(replace(COLUMNS[name], form=THOUSANDTHS) for name in _RATIO),
        VERDICT,
        Column("base_repeats", WHOLE, "ok repeats of the base"),
        *shared("repeats"),
        Column("pairs", WHOLE, "pairs that were compared; 0 where each side was a set"),
        *shared("reason", "flags"),
    ),
    rows=rows,
    group="Answers",
    keys=(*KEYS, ON_MACHINE.name, "parameters", "metric", "unit"),
    drawings=(Drawing("ratios", "Variants against the first"),),
    answers=("verdict", "speedup", "speedup_ci_low"),
    order="speedup",
    behind=_behind,
)  # fmt: skip
TABLES = (VARIANTS,)
