"""Speed-ups: every precision against its baseline, every compiler against none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ...config import precisions
from ..columns import CASE_COLUMNS, NUMBER, RATE, Column, Row, shared
from ..ratios import ratio
from ..results import CaseResult, marks_of
from ..table import Fields, Inputs, Table

UNCOMPILED = "none"

COLUMNS = (
    *CASE_COLUMNS,
    Column(
        "throughput_baseline",
        NUMBER,
        "median of the same case in the baseline of its precision, or without a compiler",
        RATE,
        title="baseline",
        check="throughput",
    ),
    Column("throughput", NUMBER, "median of the case", RATE, check="throughput"),
    *shared("unit", "speedup", "speedup_ci_low", "speedup_ci_high", "reason", "marks"),
)


def of_precisions(inputs: Inputs) -> Iterator[list[Any]]:
    """A row for every case of a precision that has a baseline, with its median over that one's."""
    for result in inputs.cases.values():
        if baseline := precisions.baseline(result.case.precision):
            base = inputs.cases.get(result.key.at(precision=baseline))
            yield _row(result, base, baseline, f" at batch {result.case.batch_per_device}")


def of_compilers(inputs: Inputs) -> Iterator[list[Any]]:
    """A row for every case with a compiler, with its median over that without."""
    for result in inputs.cases.values():
        if result.case.compiler != UNCOMPILED:
            base = inputs.cases.get(result.key.at(compiler=UNCOMPILED))
            yield _row(result, base, "uncompiled")


def _row(result: CaseResult, base: CaseResult | None, name: str, at: str = "") -> list[Any]:
    """``name`` is what the baseline is called, ``at`` where it would have been."""
    throughputs = [base and base.throughput, result.throughput]
    ratios = ratio(result, base, name, at)
    return [*result.key.cells, *throughputs, result.unit, *ratios, marks_of(result, base)]


def _both_precisions(row: Row) -> Sequence[tuple[str, Fields]]:
    baseline = precisions.baseline(row["precision"])
    return [(str(name), {"precision": name}) for name in (baseline, row["precision"])]


def _both_compilers(row: Row) -> Sequence[tuple[str, Fields]]:
    return [(str(name), {"compiler": name}) for name in (UNCOMPILED, row["compiler"])]


PRECISIONS = Table(
    name="precision_speedup",
    title="Speed-up by precision",
    explanation="Each precision against its baseline, at the same batch size per device. Ratios "
    "come from unrounded medians.",
    columns=COLUMNS,
    rows=of_precisions,
    group="Speed-ups",
    heading="Precisions",
    always=True,
    sectioned=True,
    behind=_both_precisions,
)
COMPILERS = Table(
    name="compiler_speedup",
    title="Speed-up by the framework's compiler",
    explanation="The framework's graph compiler against no compiler, everything else equal. "
    "Ratios come from unrounded medians.",
    columns=COLUMNS,
    rows=of_compilers,
    group="Speed-ups",
    heading="Compilers",
    always=True,
    sectioned=True,
    behind=_both_compilers,
)
TABLES = (PRECISIONS, COMPILERS)
