"""From runs to tables: medians, scaling, speed-ups and latencies as data frames and files.

Nothing is rounded here; a missing number is missing (NaN in the frame, an empty cell in the
CSV), never zero, and `reason` or `note` says why.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
from pandas.api.types import is_numeric_dtype

from ..cases.conditions import KEYS
from ..config import precisions
from ..files.text import no_formula
from ..files.whole_files import write_whole
from ..statistics import descriptive, intervals, shape
from . import markdown, scaling
from .cases import CaseResult, CaseResults, marks_of
from .columns import frame
from .ratios import ratio

SUMMARY_COLUMNS = (
    *KEYS,
    "status",
    "reason",
    "repeats",
    "throughput_median",
    "throughput_min",
    "throughput_max",
    "throughput_ci_low",
    "throughput_ci_high",
    "unit",
    "marks",
    "throughput_spread",
    "repeats_needed",
    "remarks",
)
#: Of the interval that :func:`intervals.repeats_for_width` tells the repeats for: from end to end,
#: as a part of the median.
WIDTH = 0.01
# A row for every case of a precision that is compared with another.
AMP_SPEEDUP_COLUMNS = (
    *(key for key in KEYS if key != "precision"),
    "throughput_fp32",
    "throughput_amp",
    "unit",
    "speedup",
    "speedup_ci_low",
    "speedup_ci_high",
    "reason",
    "marks",
)
# A row for every case with a compiler.
COMPILER_SPEEDUP_COLUMNS = (
    *KEYS,
    "throughput_none",
    "throughput_compiled",
    "unit",
    "speedup",
    "speedup_ci_low",
    "speedup_ci_high",
    "reason",
    "marks",
)
# A row for every inference case; milliseconds of one step, which is one batch on every device.
LATENCY_COLUMNS = (
    *KEYS,
    "status",
    "samples",
    "mean_ms",
    "p50_ms",
    "p90_ms",
    "p95_ms",
    "p99_ms",
    "note",
    "marks",
)
PERCENTILES = ("p50_ms", "p90_ms", "p95_ms", "p99_ms")
TAILS = (("p90_ms", 0.9), ("p95_ms", 0.95), ("p99_ms", 0.99))


def build(cases: CaseResults) -> dict[str, pd.DataFrame]:
    """All tables, by name.

    1. Runs with the same keys and unit are the repeats of a case (see :func:`cases.group`).
    2. summary: median, extremes, interval and spread, (max - min) / median, over its ok repeats;
       how many repeats an interval of WIDTH takes; what is odd about them.
    3. weak_scaling, strong_scaling: its median / the median of 1n1g with the same other keys, or
       with the same total batch instead of the same batch per device.
    4. amp_speedup, compiler_speedup: its median / that of the baseline of its precision,
       or of compiler none.
    5. Each ratio with its interval.
    6. latency: mean and percentiles over the steps of all ok repeats of an inference case.
    7. A figure has the marks of all runs behind it: a ratio those of both cases.
    """
    return {
        "summary": frame(SUMMARY_COLUMNS, map(_summary_row, cases.values())),
        "weak_scaling": frame(scaling.WEAK_COLUMNS, scaling.weak(cases)),
        "strong_scaling": frame(scaling.STRONG_COLUMNS, scaling.strong(cases)),
        "amp_speedup": frame(
            AMP_SPEEDUP_COLUMNS,
            (
                _amp_row(result, cases, baseline)
                for result in cases.values()
                if (baseline := precisions.baseline(result.case.precision))
            ),
        ),
        "compiler_speedup": frame(
            COMPILER_SPEEDUP_COLUMNS,
            (_compiler_row(r, cases) for r in cases.values() if r.case.compiler != "none"),
        ),
        "latency": frame(
            LATENCY_COLUMNS,
            (_latency_row(result) for result in cases.values() if result.case.mode == "inference"),
        ),
    }


def write(tables: Mapping[str, pd.DataFrame], folder: Path) -> None:
    """NAME.csv and NAME.md for each table in `folder`.

    Each file is complete or untouched. Raises OSError for a target that cannot be written.
    """
    for path, text in files(tables, folder).items():
        write_whole(path, text)


def files(tables: Mapping[str, pd.DataFrame], folder: Path) -> dict[Path, str]:
    """What :func:`write` writes."""
    made = {}
    for name, table in tables.items():
        made[folder / f"{name}.csv"] = csv_text(table)
        made[folder / f"{name}.md"] = markdown.render(name, table)
    return made


def csv_text(table: pd.DataFrame) -> str:
    """A table as CSV: RFC 4180, full precision, line feeds, and no text that is a formula."""
    texts = {
        str(name): column.map(_cell)
        for name, column in table.items()
        if not is_numeric_dtype(column)
    }
    return str(table.assign(**texts).to_csv(index=False, lineterminator="\n", na_rep=""))


def _cell(value: Any) -> Any:
    return no_formula(value) if isinstance(value, str) else value


def _summary_row(result: CaseResult) -> list[Any]:
    low, high = result.interval or (None, None)
    return [
        *result.key.cells,
        result.status,
        result.reason,
        len(result.values) or len(result.runs),
        result.throughput,
        min(result.values, default=None),
        max(result.values, default=None),
        low,
        high,
        result.unit,
        marks_of(result),
        shape.spread(result.values),
        intervals.repeats_for_width(result.values, WIDTH),
        "; ".join(result.remarks),
    ]


def _amp_row(result: CaseResult, cases: CaseResults, baseline: str) -> list[Any]:
    base = cases.get(result.key.at(precision=baseline))
    figures = ratio(result, base, baseline, f" at batch {result.case.batch_per_device}")
    keys = [value for key, value in zip(KEYS, result.key.cells, strict=True) if key != "precision"]
    throughputs = [base and base.throughput, result.throughput]
    return [*keys, *throughputs, result.unit, *figures, marks_of(result, base)]


def _compiler_row(result: CaseResult, cases: CaseResults) -> list[Any]:
    base = cases.get(result.key.at(compiler="none"))
    figures = ratio(result, base, "uncompiled")
    throughputs = [base and base.throughput, result.throughput]
    return [*result.key.cells, *throughputs, result.unit, *figures, marks_of(result, base)]


def _latency_row(result: CaseResult) -> list[Any]:
    """Steps of one repeat resemble each other more than those of others do: pooled they would count
    as more than they are. So each repeat has percentiles, and the steps that they need."""
    repeats = [[1000 * s for s in run.step_seconds] for run in result.ok if run.step_seconds]
    fewest = min(map(len, repeats), default=0)

    def of_repeats(figure: Callable[[list[float]], float | None]) -> float | None:
        figures = [figure(steps) for steps in repeats]
        known = [one for one in figures if one is not None]
        return descriptive.median(known) if known and len(known) == len(figures) else None

    found = {name: of_repeats(partial(descriptive.percentile, fraction=p)) for name, p in TAILS}
    if result.status != "ok":
        note = f"{result.status}: {result.reason}"
    elif not repeats:
        note = "no step times in these records"
    else:
        needed = [
            f"{name.removesuffix('_ms')} needs {descriptive.samples_needed(p)}"
            for name, p in TAILS
            if found[name] is None
        ]
        note = f"{fewest} steps in a repeat: {', '.join(needed)}" if needed else ""
    middles = of_repeats(descriptive.mean), of_repeats(descriptive.median)
    count = sum(map(len, repeats))
    return [
        *result.key.cells,
        result.status,
        count,
        *middles,
        *found.values(),
        note,
        marks_of(result),
    ]
