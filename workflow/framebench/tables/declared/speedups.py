"""Tables of cases relative to a baseline: precisions, compilers, weak scaling (equal batch per
device), strong scaling (equal total batch), and variants of suites.

The two kinds of scaling are never mixed in a table or a plot."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import pandas as pd
from core import precisions
from core.parallelism import DATA

from ...cases.conditions import OF_VARIANT, Key
from ...config import catalog
from ...records.flags import OWN
from ...records.run import Run
from ...statistics import descriptive, intervals
from .. import measured
from ..columns import COLUMNS, OWN_OF_VARIANT, Row, interval_cells
from ..contests import ON_MACHINE, principal_results
from ..ratios import Judged, Matched, Sides, judge, set_verdicts
from ..results import UNCOMPILED, CaseResult, flags_of, with_cells
from ..roofs import expected_all_reduces
from ..table import Inputs, declared_table


class CaseBaseline(NamedTuple):
    """Baseline of a case. ``name`` and ``at`` (its setting) name it if a ratio is missing."""

    key: Key
    name: str
    at: str = ""


def ratio_table(
    cases: pd.DataFrame,
    inputs: Inputs,
    baseline: Callable[[CaseResult], CaseBaseline],
    is_scaling: bool = False,
) -> pd.DataFrame:
    """Return ``cases``, rows of ``inputs.frame``, with the ratio of each throughput to that of its
    baseline: ``speedup`` and its interval, both throughputs, ``baseline_runs``, ``reason``,
    ``flags`` and ``verdict``, which is adjusted for all rows. With ``is_scaling`` the verdict
    compares the case with its baseline times the number of devices."""
    rows: list[Row] = []
    sides: list[Sides | None] = []
    for number in cases.index:
        case = inputs.results[number]
        base = baseline(case)
        other = inputs.cases.get(base.key)
        reason = _why_no_ratio(case, other, base)
        speedup = ends = both = None
        if other and case.throughput is not None and other.throughput and not reason:
            speedup = case.throughput / other.throughput
            ends = (speedup, speedup)
            if other is not case:
                ends = intervals.ratio_interval(other.values, case.values)
                factor = case.case.devices if is_scaling else 1
                both = Sides([factor * value for value in other.values], case.values)
        sides.append(both)
        rows.append({
            "throughput": case.throughput,
            "throughput_baseline": other and other.throughput,
            "speedup": speedup,
            **interval_cells("speedup", ends),
            "baseline_runs": other.uncompiled if other else "",
            "reason": reason,
            "flags": flags_of(case, other),
        })  # fmt: skip
    names = ["throughput", "throughput_baseline", "speedup", *interval_cells("speedup", None)]
    made = pd.DataFrame(rows, cases.index, [*names, "baseline_runs", "reason", "flags"])
    return cases.assign(**made.astype(dict.fromkeys(names, "float64")), verdict=set_verdicts(sides))


def _why_no_ratio(case: CaseResult, other: CaseResult | None, base: CaseBaseline) -> str:
    """Return why a case has no ratio to its baseline ``other``; "" if it has one."""
    if case.compared is None:
        return case.why_not_compared
    if other is None:
        return f"no {base.name} run{base.at}"
    if other.compared is None:
        return f"{base.name} is {other.why_not_compared}"
    usual = catalog.framework_declaration(other.case.framework).get("trained_with")
    if usual and other.uncompiled and other.case.compiler != case.case.compiler:
        return f"no ratio: it runs {other.uncompiled} without {usual}, as nobody does"
    return ""


# ---- precisions and compilers -------------------------------------------------------------------


def _precisions(inputs: Inputs) -> pd.DataFrame:
    """Return the cases in a precision with a baseline, with the ratio of their medians."""

    def baseline(result: CaseResult) -> CaseBaseline:
        name = precisions.baseline(result.case.precision)
        at = f" at batch {result.case.batch_per_device}"
        return CaseBaseline(result.key.at(precision=name), str(name), at)

    cases = inputs.frame[inputs.frame["precision"].map(precisions.baseline).notna()]
    return ratio_table(cases, inputs, baseline)


def _compilers(inputs: Inputs) -> pd.DataFrame:
    """Return the compiled cases, with the ratio to the uncompiled case.

    Frameworks that are always trained with a compiler have no ratio. Imported cases with unknown
    compiler have no row."""
    cases = inputs.frame[~inputs.frame["compiler"].isin([UNCOMPILED, ""])]
    return ratio_table(
        cases, inputs, lambda result: CaseBaseline(result.key.at(compiler=UNCOMPILED), "uncompiled")
    )


# ---- scaling ------------------------------------------------------------------------------------


def _weak(inputs: Inputs) -> pd.DataFrame:
    """Return the data-parallel cases, relative to one device with equal batch per device."""
    is_parallel = [result.case.replicas == result.case.devices for result in inputs.results]
    cases = inputs.frame.loc[is_parallel]
    return _efficiencies(cases, inputs, lambda result: CaseBaseline(result.key.on_one, "1n1g"))


def _strong(inputs: Inputs) -> pd.DataFrame:
    """Return the cases of strong-scaling series, relative to one device.

    The baseline has the same total batch and number of micro-steps. Cases with the same baseline
    form a series if the baseline was run and they have different numbers of devices."""
    bases = [_base_of_total(result.key) for result in inputs.results]
    devices: dict[Key, set[int]] = defaultdict(set)
    for base, result in zip(bases, inputs.results, strict=True):
        devices[base].add(result.case.devices)

    def place(number: int) -> tuple[Any, ...]:
        case = inputs.results[number].case
        return (bases[number].order, case.devices, case.nodes)

    numbers = [number for number, base in enumerate(bases)
               if base in inputs.cases and len(devices[base]) > 1]  # fmt: skip
    numbers.sort(key=place)
    totals = [bases[number].case.samples_per_step for number in numbers]
    table = inputs.frame.loc[numbers].assign(total_batch=totals)
    return _efficiencies(
        table, inputs, lambda result: CaseBaseline(_base_of_total(result.key), "1n1g")
    )


def _base_of_total(key: Key) -> Key:
    """Return the key of one device with the same total batch."""
    return key.on_one.at(batch_per_device=key.case.batch_per_device * key.case.replicas)


def _efficiencies(
    cases: pd.DataFrame, inputs: Inputs, baseline: Callable[[CaseResult], CaseBaseline]
) -> pd.DataFrame:
    """Return speed-ups, efficiencies and times of communication."""
    table = ratio_table(cases, inputs, baseline, is_scaling=True)
    for name in ("speedup", "speedup_ci_low", "speedup_ci_high"):
        table[name.replace("speedup", "efficiency")] = table[name] / table["devices"]
    rows = zip(table.index, table["flags"], strict=True)
    return with_cells(
        table, [_communication(inputs.results[number], flags, inputs) for number, flags in rows]
    )


def _communication(result: CaseResult, flags: str, inputs: Inputs) -> Row:
    """Return the measured stand-alone and the expected time of communication, as fractions of a
    training step: medians over repeats.

    The step time is the mean over the timed region, because the host cannot time overlapping steps
    one by one. The row's ``flags`` are extended by those of the measured collective."""
    timed = [
        (run.gradient_all_reduce, run.case.samples_per_step / run.throughput)
        for run in result.ok
        if run.case.mode == "train" and run.gradient_all_reduce and run.throughput
    ]
    alone = [descriptive.median(gradients.seconds) / step for gradients, step in timed]
    expected, collective = None, None
    is_data_parallel = timed and result.case.parallelism == DATA
    sizes = timed[0][0].sizes if is_data_parallel else ()
    found = expected_all_reduces(inputs, result.ok[0], sizes) if sizes else None
    if found and result.throughput:
        seconds, collective = found
        expected = seconds * result.throughput / result.case.samples_per_step
    return {
        "expected_communication": expected,
        "flags": " ".join(sorted({*flags.split(), *flags_of(collective).split()})),
        "communication_alone": descriptive.median(alone) if alone else None,
        **interval_cells(
            "communication_alone", intervals.median_interval(alone) if alone else None
        ),
        "gradient_messages": timed[0][0].messages if timed else None,
    }


# ---- variants: each case against the same case in the first variant ------------------------------


def _variants(inputs: Inputs) -> Iterator[Row]:
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
        Matched(_base_variant(bases[base, _without_variant(other)], other), other)
        for other, (base, _) in zip(others, names, strict=True)
    ]
    for other, judged, (base, _) in zip(others, judge(cases, names), names, strict=True):
        yield _variant(other, judged, base)


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
    """Return what variants of a case have in common. Their models may differ if users' own."""
    key = result.key
    model = OWN if OWN in result.flags else key.case.model
    return (
        key._replace(
            case=key.case._replace(variant="", framework_version="", model=model),
            conditions=replace(key.conditions.without_variant, environment=""),
        ),
        result.runs[0].machine,
    )


def _base_variant(bases: Sequence[CaseResult], case: CaseResult) -> CaseResult | None:
    """Return the base with the model and framework version of ``case``, or the only base; None if
    several are left."""
    of_model = [base for base in bases if base.case.model == case.case.model] or bases
    version = case.case.framework_version
    found = [result for result in of_model if result.case.framework_version == version] or of_model
    return found[0] if len(found) == 1 else None


def _variant(case: CaseResult, judged: Judged, base_name: str) -> Row:
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


_NOTHING: Row = {name: False if COLUMNS[name].type == "bool" else "" for name in OWN_OF_VARIANT}
PRECISIONS = declared_table(
    "precision_speedup",
    _precisions,
    behind=lambda row: [
        (str(name), {"precision": name})
        for name in (precisions.baseline(row["precision"]), row["precision"])
    ],
)
COMPILERS = declared_table(
    "compiler_speedup",
    _compilers,
    behind=lambda row: [(str(name), {"compiler": name}) for name in (UNCOMPILED, row["compiler"])],
)
WEAK = declared_table("weak_scaling", _weak)
STRONG = declared_table("strong_scaling", _strong)
VARIANTS = declared_table(
    "variants",
    _variants,
    behind=lambda row: [
        (row["base_suite_variant"], {name: row[f"base_{name}"] for name in OWN_OF_VARIANT}),
        (row["suite_variant"], {}),
    ],
)
TABLES = (PRECISIONS, COMPILERS, WEAK, STRONG, VARIANTS)
