"""From runs to tables: medians, weak scaling, speed-ups and latencies as data frames and files.

Nothing is rounded here; a missing number is missing (NaN in the frame, an empty cell in the
CSV), never zero, and `reason` or `note` says why.
"""

from __future__ import annotations

import io
import os
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from . import markdown, statistics
from .parity import Marks
from .run import Run, order

KEYS = (
    "framework",
    "framework_version",
    "source",
    "model",
    "mode",
    "precision",
    "compiler",
    "variant",
    "nodes",
    "devices_per_node",
    "batch_per_device",
)
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
)
# A row for every case of the summary.
WEAK_SCALING_COLUMNS = (
    *KEYS,
    "devices",
    "throughput_median",
    "unit",
    "speedup",
    "efficiency",
    "reason",
    "marks",
)
# A row for every case with precision amp.
AMP_SPEEDUP_COLUMNS = (
    *(key for key in KEYS if key != "precision"),
    "throughput_fp32",
    "throughput_amp",
    "unit",
    "speedup",
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
PERCENTILES = {"p50_ms": 0.5, "p90_ms": 0.9, "p95_ms": 0.95, "p99_ms": 0.99}

# Which failure to name where several are equally frequent: the most telling first.
_TELLING = ("oom", "unsupported", "timeout", "failed")
_WORDS = {"oom": "out of memory", "unsupported": "unsupported", "timeout": "timed out"}

Key = tuple[Any, ...]


@dataclass(frozen=True)
class _Case:
    """All repeats of one case. `throughput` is the median over its ok repeats, or None."""

    key: Key
    unit: str
    runs: tuple[Run, ...]
    status: str
    reason: str
    throughput: float | None
    marks: frozenset[str]

    def at(self, **other: Any) -> tuple[Key, str]:
        """Where the case stands that differs from this one in the given keys only."""
        return tuple(other.get(k, v) for k, v in zip(KEYS, self.key, strict=True)), self.unit

    def get(self, key: str) -> Any:
        return self.key[KEYS.index(key)]


def build(runs: Sequence[Run], marks: Marks | None = None) -> dict[str, pd.DataFrame]:
    """All tables, by name, from any runs in any order.

    1. Runs with the same keys and unit are the repeats of a case.
    2. summary: median, extremes and confidence interval over its ok repeats.
    3. weak_scaling: its median / the median of 1n1g with the same other keys.
    4. amp_speedup, compiler_speedup: its median / that of fp32, or of compiler none.
    5. latency: mean and percentiles over the steps of all ok repeats of an inference case.
    6. A figure has the marks of all runs behind it: a ratio those of both cases.
    """
    cases = _cases(runs, marks or Marks())
    return {
        "summary": _frame(SUMMARY_COLUMNS, map(_summary_row, cases.values())),
        "weak_scaling": _frame(
            WEAK_SCALING_COLUMNS, (_weak_scaling_row(case, cases) for case in cases.values())
        ),
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
    """NAME.csv (RFC 4180, full precision, line feeds) and NAME.md for each table in `folder`.

    Each file is complete or untouched. Raises OSError for a target that cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name, table in tables.items():
        buffer = io.StringIO()
        table.to_csv(buffer, index=False, lineterminator="\n", na_rep="")
        _write_whole(folder / f"{name}.csv", buffer.getvalue())
        _write_whole(folder / f"{name}.md", markdown.render(name, table))


def _write_whole(target: Path, text: str) -> None:
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o644)  # mkstemp gives the owner alone access
        os.replace(name, target)
    except BaseException:
        os.unlink(name)
        raise


def _key(run: Run) -> Key:
    return tuple(getattr(run, key) for key in KEYS)


def _cases(runs: Sequence[Run], marks: Marks) -> dict[tuple[Key, str], _Case]:
    # The unit is part of it: images/s and sentences/s have no common median.
    groups: dict[tuple[Key, str], list[Run]] = defaultdict(list)
    for run in sorted(runs, key=order):
        groups[_key(run), run.unit].append(run)
    return {
        place: _case(*place, tuple(group), frozenset(filter(None, map(marks.of, group))))
        for place, group in groups.items()
    }


def _case(key: Key, unit: str, runs: tuple[Run, ...], marks: frozenset[str]) -> _Case:
    values = _throughputs(runs)
    failures = [run for run in runs if run.status != "ok"]
    if values:
        reason = ""
        if failures:
            reason = f"{_told(failures, len(runs))}; median of the other {len(values)}"
        return _Case(key, unit, runs, "ok", reason, statistics.median(values), marks)
    counted = Counter(run.status for run in failures)
    status = max(counted, key=lambda name: (counted[name], -_TELLING.index(name)))
    same = [run for run in failures if run.status == status]
    reason = _commonest(same) if len(counted) == 1 else _told(failures, len(runs))
    return _Case(key, unit, runs, status, reason, None, marks)


def _marks(*cases: _Case | None) -> str:
    """All marks of these cases, each once."""
    return " ".join(sorted(frozenset().union(*(case.marks for case in cases if case))))


def _throughputs(runs: Sequence[Run]) -> list[float]:
    return [r.throughput for r in runs if r.status == "ok" and r.throughput is not None]


def _told(failures: Sequence[Run], total: int) -> str:
    """ "2 of 7 repeats out of memory: ..; 1 failed: .." """
    parts: list[str] = []
    for status in _TELLING:
        same = [run for run in failures if run.status == status]
        if same:
            of = "" if parts else f" of {total} repeats"
            parts.append(f"{len(same)}{of} {_WORDS.get(status, status)}: {_commonest(same)}")
    return "; ".join(parts)


def _commonest(runs: Sequence[Run]) -> str:
    counted = Counter(run.reason for run in runs)
    return max(sorted(counted), key=lambda reason: counted[reason])


def _summary_row(case: _Case) -> list[Any]:
    values = _throughputs(case.runs)
    interval = statistics.median_confidence_interval(values) if values else None
    low, high = interval or (None, None)
    return [
        *case.key,
        case.status,
        case.reason,
        len(values) if values else len(case.runs),
        case.throughput,
        min(values, default=None),
        max(values, default=None),
        low,
        high,
        case.unit,
        _marks(case),
    ]


def _ratio(case: _Case, base: _Case | None, name: str, at: str = "") -> tuple[float | None, str]:
    """Median over median, neither rounded, or None and the words for why there is no ratio."""
    if case.throughput is None:
        return None, f"{case.status}: {case.reason}"
    if base is None:
        return None, f"no {name} run{at}"
    if base.throughput is None:
        return None, f"{name} is {base.status}: {base.reason}"
    return case.throughput / base.throughput, ""


def _weak_scaling_row(case: _Case, cases: Mapping[tuple[Key, str], _Case]) -> list[Any]:
    devices = case.get("nodes") * case.get("devices_per_node")
    base = cases.get(case.at(nodes=1, devices_per_node=1))
    speedup, reason = _ratio(case, base, "1n1g")
    efficiency = None if speedup is None else speedup / devices
    marks = _marks(case, base)
    return [*case.key, devices, case.throughput, case.unit, speedup, efficiency, reason, marks]


def _amp_row(case: _Case, cases: Mapping[tuple[Key, str], _Case]) -> list[Any]:
    base = cases.get(case.at(precision="fp32"))
    speedup, reason = _ratio(case, base, "fp32", f" at batch {case.get('batch_per_device')}")
    keys = [value for key, value in zip(KEYS, case.key, strict=True) if key != "precision"]
    throughputs = [base and base.throughput, case.throughput]
    return [*keys, *throughputs, case.unit, speedup, reason, _marks(case, base)]


def _compiler_row(case: _Case, cases: Mapping[tuple[Key, str], _Case]) -> list[Any]:
    base = cases.get(case.at(compiler="none"))
    speedup, reason = _ratio(case, base, "uncompiled")
    throughputs = [base and base.throughput, case.throughput]
    return [*case.key, *throughputs, case.unit, speedup, reason, _marks(case, base)]


def _latency_row(case: _Case) -> list[Any]:
    """Percentiles of pooled steps: a user waits for a step, whichever repeat it was in."""
    steps = [1000 * s for run in case.runs if run.status == "ok" for s in run.step_seconds]
    found = {name: statistics.percentile(steps, p) for name, p in PERCENTILES.items()}
    if case.status != "ok":
        note = f"{case.status}: {case.reason}"
    elif not steps:
        note = "no step times in these records"
    else:
        needed = [
            f"{name.removesuffix('_ms')} needs {statistics.samples_needed(PERCENTILES[name])}"
            for name, value in found.items()
            if value is None
        ]
        note = f"{len(steps)} samples: {', '.join(needed)}" if needed else ""
    average = statistics.mean(steps) if steps else None
    return [*case.key, case.status, len(steps), average, *found.values(), note, _marks(case)]


_INTEGERS = ("nodes", "devices_per_node", "batch_per_device", "devices", "repeats", "samples")


def _type(column: str) -> str:
    if column in _INTEGERS:
        return "int64"
    if column in ("speedup", "efficiency") or column.startswith("throughput"):
        return "float64"
    return "float64" if column.endswith("_ms") else "str"


def _frame(columns: Sequence[str], rows: Iterable[list[Any]]) -> pd.DataFrame:
    """A frame with the same types whether it has rows or not."""
    table = pd.DataFrame(list(rows), columns=list(columns), dtype=object)
    return table.astype({name: _type(name) for name in columns})
