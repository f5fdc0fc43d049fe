"""The Markdown of weak and of strong scaling: nodes and devices down, frameworks across, and then
every case with its efficiency."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pandas as pd

from . import condition_words, scaling
from .markdown_cells import MISSING, Cell, Footnotes, Row, escape, grid, marked, number
from .markdown_sections import grid_of, grouped, interval, labels, speedup, task, unit


def render(kind: scaling.Kind, rows: Sequence[Row], notes: Footnotes) -> Iterator[str]:
    """All behind the heading and the explanation."""
    yield from _pivots(kind, rows, notes)
    yield "## Every case, with its efficiency"
    yield ""
    columns: list[tuple[str, Cell]] = [("Model", lambda row: escape(task(row))), *labels(rows)]
    if kind.batch == "total_batch":
        columns.append(("Total bsz", lambda row: str(row["total_batch"])))
    columns += [
        ("Throughput", lambda row: number(row["throughput_median"])),
        ("Speed-up", lambda row: speedup(row, notes)),
        ("95 % interval", lambda row: interval(row, "speedup")),
        ("Efficiency", lambda row: number(row["efficiency"])),
        ("95 % interval", lambda row: interval(row, "efficiency")),
    ]
    told = any(not pd.isna(row[name]) for row in rows for name in scaling.COMMUNICATION)
    columns += _communication(notes) if told else []
    yield from grid_of(columns, rows)
    yield ""
    if told:
        yield scaling.COMMUNICATION_EXPLANATION
        yield ""


def _communication(notes: Footnotes) -> list[tuple[str, Cell]]:
    share, rate = scaling.COMMUNICATION

    def cell(row: Row, column: str, text: str) -> str:
        if not pd.isna(row[column]):
            return text
        failed = pd.isna(row["throughput_median"])
        return MISSING + notes.mark(row["reason"] if failed else scaling.why_none(row))

    return [
        ("Communication, estimated", lambda row: cell(row, share, f"{100 * row[share]:.1f} %")),
        ("All-reduce (GB/s)", lambda row: cell(row, rate, number(row[rate]))),
    ]


def _pivots(kind: scaling.Kind, rows: Sequence[Row], notes: Footnotes) -> Iterator[str]:
    """DLPerf's form, a table for each precision and batch size. Throughput stands beside every
    ratio, because a slow single device makes the ratio look good."""
    sources = {row["source"] for row in rows}
    conditions = condition_words.telling(rows)
    size = "total bsz" if kind.batch == "total_batch" else "bsz"

    def title(row: Row) -> str:
        batch = f"{size}={row[kind.batch]}"
        return f"{row['model']}, {row['mode']}, {row['precision']}, {batch}{unit(row)}"

    def series(row: Row) -> str:
        words = [row["framework"], row["framework_version"]]
        words += [row["source"]] if len(sources) > 1 else []
        words += [row["compiler"]] if row["compiler"] != "none" else []
        words += [f"({text})"] if (text := conditions(row)) else []
        return escape(" ".join(word for word in words if word))

    for heading, part in grouped(rows, title):
        found = {(series(row), row["nodes"], row["devices_per_node"]): row for row in part}
        columns = sorted({name for name, _, _ in found})
        places = sorted({(nodes, devices) for _, nodes, devices in found})
        if places == [(1, 1)]:
            continue  # nothing scales here; the table of all cases has it
        yield f"## {escape(heading)}"
        yield ""
        yield from grid(
            ["node num", "device num", *columns],
            (
                [str(n), str(n * d), *(_pair(found.get((c, n, d)), notes) for c in columns)]
                for n, d in places
            ),
        )
        yield ""


def _pair(row: Row | None, notes: Footnotes) -> str:
    if row is None:
        return "not run"
    mark = notes.mark(row["reason"])
    if pd.isna(row["throughput_median"]):
        return MISSING + mark
    return f"{number(row['throughput_median'])} ({number(row['speedup'])}{mark}){marked(row)}"
