"""Data frames as tables for people: what all rows share moves to the caption, numbers of a column
get the same decimals, a missing number is a dash with its reason in words, never a zero."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from ..cases.conditions import CONDITIONS, KEYS
from ..cases.names import topology
from ..records.step_parts import PARTS
from ..statistics import intervals
from ..tables import condition_words, parity_table, scaling

MAX_ROWS = 600
DASH = "\N{EN DASH}"
LONG = 28  # characters of a cell that may break into lines

TITLES = {
    **condition_words.TITLES,
    "framework_version": "version",
    "devices_per_node": "devices",
    "batch_per_device": "batch per device",
    "throughput_median": "median",
    "throughput_fp32": "fp32",
    "throughput_amp": "amp",
    "throughput_none": "not compiled",
    "throughput_compiled": "compiled",
    "speedup": "speed-up",
    "total_batch": "total batch",
    "efficiency": "efficiency %",
    "communication_estimate": "communication, estimated %",
    "all_reduce_gbytes_per_second": "all-reduce GB/s",
    "mean_ms": "mean ms",
    "p50_ms": "p50 ms",
    "p90_ms": "p90 ms",
    "p95_ms": "p95 ms",
    "p99_ms": "p99 ms",
    "half_unit": "half unit",
    "throughput_spread": "spread %",
    "repeats_needed": "repeats for 1 %",
    "sum_over_step": "sum / step",
    "split_steps": "steps",
    **{f"{part}_ms": f"{part.replace('_', '-')} ms" for part in PARTS},
    **{f"{part}_share": "%" for part in PARTS},
    "tflops_per_device": "TFLOP/s per device",
    "peak_tflops": "peak TFLOP/s",
    "peak_by": "peak reached by",
    "datasheet_tflops": "datasheet TFLOP/s",
    "mfu": "MFU %",
    "energy_joules_per_sample": "J per sample",
    "peak_device_memory_bytes": "device GiB",
    "peak_host_memory_bytes": "host GiB",
    "device_memory_gib": "device GiB",
    "host_memory_gib": "host GiB",
    "memory_limit_gib": "limit GiB",
}
#: What a column is multiplied by where it is not shown as it is.
FACTORS = {
    "efficiency": 100.0,
    "efficiency_ci_low": 100.0,
    "communication_estimate": 100.0,
    "throughput_spread": 100.0,
    "mfu": 100.0,
    **{f"{part}_share": 100.0 for part in PARTS},
    "peak_device_memory_bytes": 2.0**-30,
    "peak_host_memory_bytes": 2.0**-30,
}
NOTES = ("reason", "remarks", "note", "differences", "how")
LONG_NOTE = 160  # characters, from which on a note is given room so that its row stays low
#: Two bounds that read as one cell: (low, high) -> title.
RANGES = {
    ("throughput_min", "throughput_max"): f"min {DASH} max",
    ("throughput_ci_low", "throughput_ci_high"): "95 % interval",
    ("speedup_ci_low", "speedup_ci_high"): "95 % interval",
    ("efficiency_ci_low", "efficiency_ci_high"): "interval %",
    ("ratio_ci_low", "ratio_ci_high"): "95 % interval",
}
#: Columns worth a place only where rows differ in them.
HOISTED = ("framework_version", "source", "model", "mode", "precision", "compiler", "unit",
           "status", "batch_per_device", "total_batch", "peak_by", "data", "order")  # fmt: skip
#: Columns that need no place where another one decides them.
FOLLOWING = (("framework_version", "framework"), ("source", "framework"), ("unit", "model"),
             ("peak_by", "precision"), *((name, "model") for name in CONDITIONS))  # fmt: skip
#: Columns that another one already shows.
HIDDEN = ("nodes", "devices", "throughput_max", "throughput_ci_high", "speedup_ci_high",
          "efficiency_ci_high", "ratio_ci_high", "marks")  # fmt: skip
#: Figures that carry the marks of their row.
MARKED = (
    "throughput_median",
    "mfu",
    "sum_over_step",
    "speedup",
    "ratio",
    "mean_ms",
    "p50_ms",
    "p90_ms",
    "p95_ms",
    "p99_ms",
)


#: Verdicts of certificates and comparisons, and the status whose look they have.
VERDICTS = {
    "passed": "ok",
    "failed": "failed",
    "unsupported": "unsupported",
    "faster": "ok",
    "slower": "failed",
    "no difference shown": "unsupported",
    "cannot tell": "unsupported",
}


@dataclass(frozen=True)
class Cell:
    """``sort``: what the cell sorts by where that is not its text. ``kind``: its CSS class."""

    text: str
    kind: str = ""
    sort: str | None = None
    note: str = ""


@dataclass(frozen=True)
class Link:
    """To a record; ``label`` says for a screen reader which one ``text`` means."""

    text: str
    href: str
    label: str


@dataclass(frozen=True)
class Table:
    """``rows`` are (cells, links); ``shared`` are (title, value) pairs true of every row."""

    name: str
    title: str
    columns: Sequence[tuple[str, str]]
    rows: Sequence[tuple[Sequence[Cell], Sequence[tuple[str, Sequence[Link]]]]]
    shared: Sequence[tuple[str, str]] = ()
    left_out: str = ""
    linked: bool = False
    notes: int = 0  # how many of the last columns are notes


def of_frame(
    name: str,
    title: str,
    frame: pd.DataFrame,
    links: Callable[[Mapping[str, Any]], Sequence[tuple[str, Sequence[Link]]]] | None = None,
) -> Table:
    """``links`` gives, for a row, the records behind it: (what they are, links)."""
    shown = frame.head(MAX_ROWS)
    columns = [str(column) for column in frame.columns]
    values = {column: [_plain(value) for value in shown[column]] for column in columns}
    shared, dropped = _shared(values, len(shown))
    visible = [
        column
        for column in columns
        if column not in dropped and column not in HIDDEN and column not in NOTES
        and not _blank(shown[column])
    ]  # fmt: skip
    notes = [column for column in columns if column in NOTES and not _blank(shown[column])]
    visible += notes
    cells = [_cells(column, values) for column in visible]
    records = shown.to_dict("records")
    rows = [
        (row, links({str(key): value for key, value in record.items()}) if links else ())
        for row, record in zip(zip(*cells, strict=True), records, strict=True)
    ]
    left_out = (
        f"Left out: {len(frame) - len(shown)} of {len(frame)} rows; all are in tables/{name}.csv."
        if len(frame) > len(shown)
        else ""
    )
    return Table(
        name=name,
        title=title,
        columns=[(_title(column, columns), _kind(column, values[column])) for column in visible],
        rows=rows,
        shared=shared,
        left_out=left_out,
        linked=links is not None,
        notes=len(notes),
    )


def _shared(values: Mapping[str, list[Any]], count: int) -> tuple[list[tuple[str, str]], set[str]]:
    """What holds for all rows, and the columns that this makes needless. Conditions become text,
    in place."""
    shared: list[tuple[str, str]] = []
    dropped: set[str] = set()
    for column in CONDITIONS:
        if column in values:
            values[column][:] = map(condition_words.text, values[column])
            if len(set(values[column])) == 1:
                dropped.add(column)
                shared += [(TITLES[column], values[column][0])] * bool(values[column][0])
    if count < 2:
        return shared, dropped
    for column in HOISTED:
        found = set(values.get(column, ()))
        if len(found) == 1 and not found & {None, ""}:
            shared.append((TITLES.get(column, column), str(values[column][0])))
            dropped.add(column)
    for column, by in FOLLOWING:
        if column in values and column not in dropped and _follows(values, column, by):
            pairs = dict(zip(values[by], values[column], strict=True))
            said = ", ".join(f"{name} {value}" for name, value in pairs.items() if value)
            shared.append((f"{TITLES.get(column, column)} of each {by}", said))
            dropped.add(column)
    return shared, dropped


def _follows(values: Mapping[str, list[Any]], column: str, by: str) -> bool:
    """Whether ``by`` says it all: one value of ``column`` for each of its values."""
    if by not in values:
        return False
    pairs = set(zip(values[by], values[column], strict=True))
    return len(pairs) == len({name for name, _ in pairs})


def _cells(column: str, values: Mapping[str, list[Any]]) -> list[Cell]:
    mine = values[column]
    if column == "devices_per_node":
        nodes = values.get("nodes", [1] * len(mine))
        return [
            Cell(DASH, "number missing", "", "not known")
            if n in (None, "") or d in (None, "")
            else Cell(topology(n, d), "", str(int(n) * int(d) * 10_000 + int(n)))
            for n, d in zip(nodes, mine, strict=True)
        ]
    for (low, high), _ in RANGES.items():
        if column == low and high in values:
            factor = FACTORS.get(column, 1.0)
            digits = 1 if factor > 1 else _digits([*mine, *values[high]])
            return [
                Cell(
                    f"{a * factor:.{digits}f} {DASH} {b * factor:.{digits}f}",
                    "number",
                    repr(float(a)),
                )
                if a is not None and b is not None
                else _missing(values, place, _needed(values, place, low))
                for place, (a, b) in enumerate(zip(mine, values[high], strict=True))
            ]
    if column == "status":
        return [Cell(str(value), f"status {value}") for value in mine]
    if column == "agrees":
        words = {True: "yes", False: "no"}
        return [Cell(DASH if v is None else words.get(bool(v), str(v)),
                     "status failed" if v is not None and not v else "") for v in mine]  # fmt: skip
    if column == "printed":  # as it was printed, even where that is no number
        return [Cell(str(value), "number", _sort_key(value)) for value in mine]
    if column in NOTES:
        texts = [str(value or "") for value in mine]
        return [Cell(text, "note long" if len(text) > LONG_NOTE else "note") for text in texts]
    if column in parity_table.SHOWN:
        return [
            _missing(values, place)
            if value is None
            else Cell(f"{value:.1e}", "number", repr(value))
            for place, value in enumerate(mine)
        ]
    if column == "verdict":
        return [Cell(str(value), f"status {VERDICTS[str(value)]}") for value in mine]
    marks = values.get("marks", [""] * len(mine)) if column in MARKED else [""] * len(mine)
    if _is_number(mine):
        factor = FACTORS.get(column, 1.0)
        whole = factor == 1 and all(value is None or isinstance(value, int) for value in mine)
        digits = 0 if whole else 1 if factor > 1 else 2 if factor < 1 else _digits(mine)
        return [
            (_untold if column in scaling.COMMUNICATION else _missing)(values, place)
            if value is None
            else Cell(
                f"{value * factor:.{digits}f}",
                "number",
                None if whole else repr(value),
                marks[place] or "",
            )
            for place, value in enumerate(mine)
        ]
    texts = [DASH if value is None else str(value) for value in mine]
    kind = "case" if max(map(len, texts)) > LONG else ""
    return [Cell(text, kind) for text in texts]


def _missing(values: Mapping[str, list[Any]], place: int, repeats: int = 0) -> Cell:
    """A dash, and words where neither the status nor a note of the row says why: how many
    ``repeats`` it takes."""
    noted = any(values[column][place] for column in NOTES if column in values)
    status = values["status"][place] if "status" in values else "ok"
    if status != "ok" or (noted and not repeats):
        return Cell(DASH, "number missing", "")
    return Cell(DASH, "number missing", "", f"needs {repeats} repeats" if repeats else "not known")


def _needed(values: Mapping[str, list[Any]], place: int, low: str) -> int:
    """The repeats that an interval which is not there takes; 0 where it lacks its figure too.
    ``low``: the column of its lower end."""
    figure, is_interval, _ = low.partition("_ci_low")
    if not is_interval:
        return 0
    if figure == "throughput":
        return intervals.repeats_for_interval()
    return 0 if values[figure][place] is None else intervals.repeats_for_comparison()


def _untold(values: Mapping[str, list[Any]], place: int) -> Cell:
    """A dash where a figure of communication is missing, and why. A note of the row is about its
    ratio, but where there is no throughput either."""
    known = values["throughput_median"][place] is not None
    row = {key: values[key][place] for key in ("devices", "mode")}
    return Cell(DASH, "number missing", "", scaling.why_none(row) if known else "")


def _digits(values: Sequence[Any]) -> int:
    """Decimals for a column: two, and more only where the smallest value would lose its digits."""
    smallest = min((abs(float(value)) for value in values if value), default=1.0)
    if not 0 < smallest < 1:
        return 2
    return min(6, 2 - math.floor(math.log10(smallest)))


def _title(column: str, columns: Sequence[str]) -> str:
    for (low, high), title in RANGES.items():
        if column == low and high in columns:
            return title
    return TITLES.get(column, column.replace("_", " "))


def _kind(column: str, values: Sequence[Any]) -> str:
    """``number`` aligns right and sorts by value."""
    if column in ("devices_per_node", "printed") or any(column == low for low, _ in RANGES):
        return "number"
    if column in NOTES:
        return "note"
    return "number" if _is_number(values) else ""


def _sort_key(value: Any) -> str:
    try:
        return repr(float(value))
    except ValueError:
        return ""


def _is_number(values: Sequence[Any]) -> bool:
    """Whether all that is known is a number; true where nothing is, as columns of text without
    any text are not shown."""
    return all(
        isinstance(value, (int, float)) and not isinstance(value, bool)
        for value in values
        if value is not None
    )


def _blank(column: pd.Series[Any]) -> bool:
    """A column of text without any text. One of numbers without a number is not: each of its
    cells says why."""
    return not pd.api.types.is_numeric_dtype(column) and not any(
        bool(value) for value in column if not pd.isna(value)
    )


def _plain(value: Any) -> Any:
    """Python's own type, with None for every kind of missing."""
    value = value.item() if hasattr(value, "item") else value
    if value is None or value is pd.NA or value is pd.NaT:
        return None
    return None if isinstance(value, float) and not math.isfinite(value) else value


def key_of(row: Mapping[str, Any], **other: Any) -> tuple[Any, ...]:
    """The cells KEYS of a row, with some of its keys replaced."""
    return tuple(_plain({**row, **other}.get(key)) for key in KEYS)
