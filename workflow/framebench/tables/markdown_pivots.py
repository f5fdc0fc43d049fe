"""Scaling tables in DLPerf's form: nodes and devices down, frameworks across.

There is one table per precision and batch size. Each ratio has its throughput, because a slow
single device makes ratios look good."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from . import condition_text
from .columns import Row
from .markdown_cells import MISSING, Footnotes, escape, grid
from .table import Pivot


def render(pivot: Pivot, rows: Sequence[Row], notes: Footnotes) -> Iterator[str]:
    """Yield the lines of the pivots, each below its heading."""
    sources = {row["source"] for row in rows}
    conditions = condition_text.telling(rows)

    def title(row: Row) -> str:
        batch = f"{pivot.heading}={row[pivot.batch]}"
        return f"{row['model']}, {row['mode']}, {row['precision']}, {batch} ({row['unit']})"

    def series(row: Row) -> str:
        words = [row["framework"], row["framework_version"]]
        words += [row["source"]] if len(sources) > 1 else []
        words += [row["compiler"]] if row["compiler"] != "none" else []
        words += [f"({text})"] if (text := conditions(row)) else []
        return escape(" ".join(word for word in words if word))

    parts: dict[str, list[Row]] = {}
    for row in rows:
        parts.setdefault(title(row), []).append(row)
    for heading, part in sorted(parts.items()):
        cells = {(series(row), row["nodes"], row["devices_per_node"]): row for row in part}
        columns = sorted({name for name, _, _ in cells})
        topologies = sorted({(nodes, devices) for _, nodes, devices in cells})
        if topologies == [(1, 1)]:
            continue  # nothing scales; the table of all cases has it
        yield f"## {escape(heading)}"
        yield ""
        yield from grid(
            ["node num", "device num", *columns],
            (
                [str(n), str(n * d), *(_pair(cells.get((c, n, d)), notes) for c in columns)]
                for n, d in topologies
            ),
        )
        yield ""


def _pair(row: Row | None, notes: Footnotes) -> str:
    if row is None:
        return "not run"
    mark = notes.mark(row["reason"])
    if row["throughput_median"] is None:
        return MISSING + mark
    ratio = MISSING if row["speedup"] is None else f"{row['speedup']:.2f}"
    marks = "".join(f" *{one}*" for one in row["marks"].split())
    return f"{row['throughput_median']:.2f} ({ratio}{mark}){marks}"
