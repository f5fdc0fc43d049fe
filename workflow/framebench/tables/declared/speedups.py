"""Tables of speed-ups: precisions against their baselines, compilers against none."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd
from core import precisions

from ...cases.conditions import Key
from ...config import catalog
from ..columns import Row
from ..ratios import ratio_table
from ..results import UNCOMPILED, CaseResult, over_runs
from ..table import Fields, Inputs, declared_table


def of_precisions(inputs: Inputs) -> pd.DataFrame:
    """Return the cases in a precision with a baseline, with the ratio of their medians."""

    def named(result: CaseResult) -> tuple[str, str]:
        case = result.case
        return str(precisions.baseline(case.precision)), f" at batch {case.batch_per_device}"

    table = ratio_table(
        inputs.frame[inputs.frame["precision"].map(precisions.baseline).notna()],
        inputs,
        lambda key: key.at(precision=precisions.baseline(key.case.precision)),
        named,
    )
    return table.assign(throughput=table["throughput_median"])


def of_compilers(inputs: Inputs) -> pd.DataFrame:
    """Return the compiled cases, with the ratio to the uncompiled case.

    Frameworks that are always trained with a compiler have no ratio. Imported cases with unknown
    compiler have no row."""
    cases = inputs.frame[~inputs.frame["compiler"].isin([UNCOMPILED, ""])]
    table = ratio_table(
        cases, inputs, _uncompiled, lambda _: ("uncompiled", ""), refused=_why_refused
    )
    paid: list[int | None] = []
    for at, low in zip(table.index, table["speedup_ci_low"], strict=True):
        case = inputs.results[at]
        base = inputs.cases.get(_uncompiled(case.key))
        paid.append(steps_to_pay(case, base) if base and low > 1 else None)
    paid_after = pd.array(paid, dtype="Int64")
    return table.assign(throughput=table["throughput_median"], steps_to_pay=paid_after)


def _uncompiled(key: Key) -> Key:
    return key.at(compiler=UNCOMPILED)


def steps_to_pay(result: CaseResult, base: CaseResult) -> int | None:
    """Return the number of steps after which a compiler has repaid its start-up time.

    1. Start-up time: building the model and the first step, because some compile ahead of time;
       compiled minus uncompiled, medians over repeats.
    2. Gain per step: difference of step times, total batch / throughput.

    None if not recorded or if ``result`` is not faster."""
    compiled, plain = _start_seconds(result), _start_seconds(base)
    if compiled is None or plain is None or not (result.throughput and base.throughput):
        return None
    gain = result.case.samples_per_step * (1 / base.throughput - 1 / result.throughput)
    return max(0, math.ceil((compiled - plain) / gain)) if gain > 0 else None


#: Median seconds of build and first step.
_start_seconds = over_runs(lambda run: run.start_seconds)


def _why_refused(base: CaseResult) -> str:
    """Return why an uncompiled case is no baseline; "" if it is one."""
    usual = (
        catalog.framework_declaration(base.case.framework).get("trained_with")
        if base.uncompiled
        else None
    )
    return f"no ratio: it runs {base.uncompiled} without {usual}, as nobody does" if usual else ""


def _both_precisions(row: Row) -> Sequence[tuple[str, Fields]]:
    baseline = precisions.baseline(row["precision"])
    return [(str(name), {"precision": name}) for name in (baseline, row["precision"])]


PRECISIONS = declared_table("precision_speedup", of_precisions, behind=_both_precisions)
COMPILERS = declared_table(
    "compiler_speedup",
    of_compilers,
    behind=lambda row: [(str(name), {"compiler": name}) for name in (UNCOMPILED, row["compiler"])],
)
TABLES = (PRECISIONS, COMPILERS)
