"""Tables of cases relative to a baseline: precisions, compilers, weak scaling (equal batch per
device) and strong scaling (equal total batch).

The two kinds of scaling are never mixed in a table or a plot."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pandas as pd
from core import precisions
from core.parallelism import DATA

from ...cases.conditions import Key
from ...config import catalog
from ...statistics import descriptive, intervals
from ..columns import Row, interval_cells
from ..ratios import Sides, set_verdicts
from ..results import UNCOMPILED, CaseResult, flags_of, with_cells
from ..roofs import expected_all_reduces
from ..table import Fields, Inputs, declared_table


class CaseBaseline(NamedTuple):
    """Baseline of a case. ``name``; ``at``: setting at which it is expected; both for reasons."""

    key: Key
    name: str
    at: str = ""


def ratio_table(
    cases: pd.DataFrame,
    inputs: Inputs,
    baseline: Callable[[CaseResult], CaseBaseline],
    is_scaling: bool = False,
) -> pd.DataFrame:
    """Return ``cases``, some of ``inputs.frame``, with the ratio of each throughput to that of its
    baseline.

    Returns
    -------
    ``cases`` with the columns ``throughput``, ``throughput_baseline``, ``baseline_runs``,
    ``speedup`` and its interval, ``reason``, ``flags`` and ``verdict``, which is adjusted for all
    rows. With ``is_scaling`` it is on the ratio to as many baselines as the case has devices.
    """
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


def precision_speedups(inputs: Inputs) -> pd.DataFrame:
    """Return the cases in a precision with a baseline, with the ratio of their medians."""

    def baseline(result: CaseResult) -> CaseBaseline:
        name = precisions.baseline(result.case.precision)
        at = f" at batch {result.case.batch_per_device}"
        return CaseBaseline(result.key.at(precision=name), str(name), at)

    cases = inputs.frame[inputs.frame["precision"].map(precisions.baseline).notna()]
    return ratio_table(cases, inputs, baseline)


def compiler_speedups(inputs: Inputs) -> pd.DataFrame:
    """Return the compiled cases, with the ratio to the uncompiled case.

    Frameworks that are always trained with a compiler have no ratio. Imported cases with unknown
    compiler have no row."""
    cases = inputs.frame[~inputs.frame["compiler"].isin([UNCOMPILED, ""])]
    return ratio_table(
        cases, inputs, lambda result: CaseBaseline(result.key.at(compiler=UNCOMPILED), "uncompiled")
    )


def _both_precisions(row: Row) -> Sequence[tuple[str, Fields]]:
    baseline = precisions.baseline(row["precision"])
    return [(str(name), {"precision": name}) for name in (baseline, row["precision"])]


# ---- scaling ------------------------------------------------------------------------------------


def weak(inputs: Inputs) -> pd.DataFrame:
    """Return the data-parallel cases, relative to one device with equal batch per device."""
    is_parallel = [result.case.replicas == result.case.devices for result in inputs.results]
    cases = inputs.frame.loc[is_parallel]
    return _efficiencies(cases, inputs, lambda result: CaseBaseline(result.key.on_one, "1n1g"))


def strong(inputs: Inputs) -> pd.DataFrame:
    """Return the cases of strong-scaling series, relative to one device.

    Cases with the same one-device baseline, with their total batch in as many micro-steps, form a
    series if the baseline was run and they have different numbers of devices."""
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

    Steps are those of the whole timed region: individual step times are unknown to the host if
    steps overlap. ``flags``: flags of the row, including those of the measured collective."""
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


PRECISIONS = declared_table("precision_speedup", precision_speedups, behind=_both_precisions)
COMPILERS = declared_table(
    "compiler_speedup",
    compiler_speedups,
    behind=lambda row: [(str(name), {"compiler": name}) for name in (UNCOMPILED, row["compiler"])],
)
WEAK = declared_table("weak_scaling", weak)
STRONG = declared_table("strong_scaling", strong)
TABLES = (PRECISIONS, COMPILERS, WEAK, STRONG)
