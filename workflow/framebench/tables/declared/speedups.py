"""Tables of speed-ups: precisions against their baselines, compilers against none."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from core import precisions

from ...cases.conditions import Key
from ...config import catalog
from ..columns import Row
from ..ratios import ratio_table
from ..results import UNCOMPILED, CaseResult
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
    return table.assign(throughput=table["throughput_median"])


def _uncompiled(key: Key) -> Key:
    return key.at(compiler=UNCOMPILED)


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
