"""From runs to tables: medians, scaling, speed-ups and latencies as data frames and files.

Nothing is rounded here; a missing number is missing (NaN in the frame, an empty cell in the
CSV), never zero, and `reason` or `note` says why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
from pandas.api.types import is_numeric_dtype

from ..files.text import no_formula
from ..files.whole_files import write_whole
from ..records.proofs import Marks
from ..records.run import Run
from ..statistics import descriptive, intervals, shape
from . import markdown, scaling
from .cases import KEYS, Case, Place, group, marks_of
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
# A row for every case with precision amp.
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


def build(runs: Sequence[Run], marks: Marks | None = None) -> dict[str, pd.DataFrame]:
    """All tables, by name, from any runs in any order.

    1. Runs with the same keys and unit are the repeats of a case.
    2. summary: median, extremes, interval and spread, (max - min) / median, over its ok repeats;
       how many repeats an interval of WIDTH takes; what is odd about them.
    3. weak_scaling, strong_scaling: its median / the median of 1n1g with the same other keys, or
       with the same total batch instead of the same batch per device.
    4. amp_speedup, compiler_speedup: its median / that of fp32, or of compiler none.
    5. Each ratio with its interval.
    6. latency: mean and percentiles over the steps of all ok repeats of an inference case.
    7. A figure has the marks of all runs behind it: a ratio those of both cases. Without ``marks``
       nothing is said of proofs.
    """
    cases = group(runs, marks)
    return {
        "summary": _frame(SUMMARY_COLUMNS, map(_summary_row, cases.values())),
        "weak_scaling": _frame(scaling.WEAK_COLUMNS, scaling.weak(cases)),
        "strong_scaling": _frame(scaling.STRONG_COLUMNS, scaling.strong(cases)),
        "amp_speedup": _frame(
            AMP_SPEEDUP_COLUMNS,
            (_amp_row(case, cases) for case in cases.values() if case.get("precision") == "amp"),
        ),
        "compiler_speedup": _frame(
            COMPILER_SPEEDUP_COLUMNS,
            (_compiler_row(c, cases) for c in cases.values() if c.get("compiler") != "none"),
        ),
        "latency": _frame(
            LATENCY_COLUMNS,
            (_latency_row(case) for case in cases.values() if case.get("mode") == "inference"),
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


def _summary_row(case: Case) -> list[Any]:
    low, high = case.interval or (None, None)
    return [
        *case.key,
        case.status,
        case.reason,
        len(case.values) or len(case.runs),
        case.throughput,
        min(case.values, default=None),
        max(case.values, default=None),
        low,
        high,
        case.unit,
        marks_of(case),
        shape.spread(case.values),
        intervals.repeats_for_width(case.values, WIDTH),
        "; ".join(case.remarks),
    ]


def _amp_row(case: Case, cases: Mapping[Place, Case]) -> list[Any]:
    base = cases.get(case.at(precision="fp32"))
    found = ratio(case, base, "fp32", f" at batch {case.get('batch_per_device')}")
    keys = [value for key, value in zip(KEYS, case.key, strict=True) if key != "precision"]
    throughputs = [base and base.throughput, case.throughput]
    return [*keys, *throughputs, case.unit, *found, marks_of(case, base)]


def _compiler_row(case: Case, cases: Mapping[Place, Case]) -> list[Any]:
    base = cases.get(case.at(compiler="none"))
    found = ratio(case, base, "uncompiled")
    throughputs = [base and base.throughput, case.throughput]
    return [*case.key, *throughputs, case.unit, *found, marks_of(case, base)]


def _latency_row(case: Case) -> list[Any]:
    """Steps of one repeat resemble each other more than those of others do: pooled they would count
    as more than they are. So each repeat has percentiles, and the steps that they need."""
    repeats = [[1000 * s for s in run.step_seconds] for run in case.ok if run.step_seconds]
    fewest = min(map(len, repeats), default=0)

    def of_repeats(figure: Callable[[list[float]], float | None]) -> float | None:
        figures = [figure(steps) for steps in repeats]
        known = [one for one in figures if one is not None]
        return descriptive.median(known) if known and len(known) == len(figures) else None

    found = {name: of_repeats(partial(descriptive.percentile, fraction=p)) for name, p in TAILS}
    if case.status != "ok":
        note = f"{case.status}: {case.reason}"
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
    return [*case.key, case.status, count, *middles, *found.values(), note, marks_of(case)]


_INTEGERS = ("nodes", "devices_per_node", "batch_per_device", "devices", "total_batch", "repeats",
             "samples")  # fmt: skip
_FLOATS = ("throughput", "speedup", "efficiency", *scaling.COMMUNICATION)


def _type(column: str) -> str:
    if column in _INTEGERS:
        return "int64"
    if column == "repeats_needed":  # not known of fewer than two repeats
        return "Int64"
    return "float64" if column.startswith(_FLOATS) or column.endswith("_ms") else "str"


def _frame(columns: Sequence[str], rows: Iterable[list[Any]]) -> pd.DataFrame:
    """A frame with the same types whether it has rows or not."""
    table = pd.DataFrame(list(rows), columns=list(columns), dtype=object)
    return table.astype({name: _type(name) for name in columns})
