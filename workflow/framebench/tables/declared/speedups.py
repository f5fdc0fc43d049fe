"""Tables of speed-ups: precisions against their baselines, compilers against none."""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from core import precisions

from ...config import catalog
from ..columns import (
    COUNT,
    NUMBER,
    RATE,
    RESULT_COLUMNS,
    TEXT,
    Column,
    Row,
    shared,
    why_no_ratio_interval,
)
from ..ratios import VERDICT, ratio_table
from ..results import UNCOMPILED, CaseResult, over_runs
from ..table import Drawing, Fields, Inputs, Table

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = (
    *RESULT_COLUMNS,
    Column(
        "throughput_baseline",
        NUMBER,
        "median of the same case in the baseline of its precision, or without a compiler",
        RATE,
        title="baseline",
    ),
    Column(
        "throughput",
        NUMBER,
        "median of the case",
        RATE,
        attrgetter("throughput"),
        figure=True,
    ),
    *shared("unit", "speedup", "speedup_ci_low", "speedup_ci_high", "reason", "flags"),
)
BASELINE_RUNS = Column(
    "baseline_runs",
    TEXT,
    "how the framework runs without the compiler: `op by op`, `eager`, or as a `graph`",
    title="baseline runs",
)


def of_precisions(inputs: Inputs) -> pd.DataFrame:
    """Return the cases in a precision with a baseline, with the ratio of their medians."""
    baselines = inputs.frame["precision"].map(precisions.baseline)
    cases = inputs.frame[baselines.notna()]
    return ratio_table(
        cases,
        inputs.frame,
        lambda key: key.at(precision=precisions.baseline(key.case.precision)),
        [*baselines.dropna()],
        [f" at batch {key.case.batch_per_device}" for key in cases["key"]],
    )


def of_compilers(inputs: Inputs) -> pd.DataFrame:
    """Return the compiled cases, with the ratio to the uncompiled case.

    Frameworks that are always trained with a compiler have no ratio. Imported cases with unknown
    compiler have no row."""
    cases = inputs.frame[~inputs.frame["compiler"].isin([UNCOMPILED, ""])]
    table = ratio_table(
        cases,
        inputs.frame,
        lambda key: key.at(compiler=UNCOMPILED),
        "uncompiled",
        refused=_why_refused,
    )
    columns = (table[name] for name in ("result", "base", "speedup_ci_low"))
    paid: list[Any] = [
        steps_to_pay(case, base) if low is not None and low > 1 else None
        for case, base, low in zip(*columns, strict=True)
    ]
    return table.assign(
        baseline_runs=[base.uncompiled if base else "" for base in table["base"]],
        steps_to_pay=paid,
    )


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
_start_seconds = over_runs(lambda run: run.phases and run.phases.build + run.phases.first_step)


def _why_not_paid(row: Row) -> str:
    """Return why steps_to_pay is missing; "" if the ratio is missing too."""
    if row["speedup"] is None:
        return ""
    if row["speedup_ci_low"] is None:
        return why_no_ratio_interval("speedup")(row)
    if row["speedup_ci_high"] < 1:
        return "never: it is slower"
    return "no gain is shown" if row["speedup_ci_low"] <= 1 else "not recorded"


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


PRECISIONS = Table(
    name="precision_speedup",
    title="Speed-up by precision",
    explanation="Each precision against its baseline, at the same batch size per device. Ratios "
    "come from unrounded medians.",
    columns=(*COLUMNS, VERDICT),
    rows=of_precisions,
    group="Speed-ups",
    heading="Precisions",
    drawings=(Drawing("ratios", "Precision against its baseline"),),
    always=True,
    sectioned=True,
    behind=_both_precisions,
    answers=("verdict", "speedup", "throughput"),
    order="speedup",
)
STEPS_TO_PAY = Column(
    "steps_to_pay",
    COUNT,
    "steps until the compiler has gained what building and the first step took longer with it",
    title="paid after steps",
    why=_why_not_paid,
    about="A compiler has paid after so many steps as gain what building the model and its first "
    "step took longer with it. That is shown where the interval of the speed-up lies above 1.",
)
COMPILERS = Table(
    name="compiler_speedup",
    title="Speed-up by the framework's compiler",
    explanation="The framework's graph compiler against no compiler, everything else equal. What "
    "that is differs: a compiler gains more over operations run one by one than over a graph that "
    "is optimized already, so ratios of frameworks whose baseline runs otherwise do not compare. "
    "Ratios come from unrounded medians.",
    columns=(*COLUMNS, BASELINE_RUNS, STEPS_TO_PAY, VERDICT),
    rows=of_compilers,
    group="Speed-ups",
    heading="Compilers",
    drawings=(Drawing("ratios", "Compiled against not compiled"),),
    always=True,
    sectioned=True,
    behind=lambda row: [(str(name), {"compiler": name}) for name in (UNCOMPILED, row["compiler"])],
    answers=("verdict", "speedup", "throughput"),
    order="speedup",
)
TABLES = (PRECISIONS, COMPILERS)
