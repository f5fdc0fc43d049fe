"""Memory by batch size: attempts of each search for the largest batch."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from ...cases.names import topology
from ...records.searches import DECIDING, SUBJECT
from ...tables import formatting
from ...tables.formatting import number
from .. import line_charts
from ..parts import Parts
from ..plots import NARROW, WIDTH, Look, Plot
from ..selection import axes_of
from ..svg import MUTED

MAX_PANELS = 6
MAX_LINES = 10


@dataclass(frozen=True)
class BatchPoint:
    """A batch size that was tried. ``gib``: peak memory; None if unknown."""

    batch: int
    gib: float | None
    fits: bool


#: Points of one search, by rising batch size.
MemoryCurve = line_charts.ChartLine[BatchPoint]


def panels(attempts: pd.DataFrame, look: Look) -> list[Plot]:
    """Return a plot per model, mode and accelerator.

    Memory is the device's or, on a CPU, the host's."""
    grouped: dict[tuple[str, str, str], dict[tuple[Any, ...], list[Any]]] = defaultdict(dict)
    for row in attempts.to_dict("records"):
        known = {str(name): value for name, value in row.items()}
        panel = (known["model"], known["mode"], known["accelerator"])
        search = tuple(str(known[key]) for key in SUBJECT)
        grouped[panel].setdefault(search, []).append(known)
    drawn = []
    for panel in sorted(grouped)[:MAX_PANELS]:
        model, mode, accelerator = panel
        column = "host_memory_gib" if accelerator == "cpu" else "device_memory_gib"
        some = [grouped[panel][search] for search in sorted(grouped[panel])]
        curves = [_curve(rows, column) for rows in some[:MAX_LINES]]
        limits = [row["memory_limit_gib"] for rows in some[:MAX_LINES] for row in rows]
        bounds = [limit for limit in limits if not pd.isna(limit)] if accelerator == "cpu" else []
        whose = "all processes together" if accelerator == "cpu" else "the fullest device"
        left_out = len(some) - len(some[:MAX_LINES])
        drawn.append(
            Plot(
                title=f"Memory by batch: {model}, {mode}",
                svg=draw(curves, look, bounds, WIDTH),
                narrow=draw(curves, look, bounds, NARROW),
                description=f"Peak memory of {len(curves)} searches for the largest batch of "
                f"{model}, {mode}. The numbers stand in the tables below.",
                caption=f"Peak memory of {whose}, for every batch that was tried. A cross did not "
                "fit or did not end well; one at the upper edge left no figure."
                + (" Grey is the limit." if bounds else "")
                + (f" Left out: {left_out} of {len(some)} searches." if left_out else "")
                + (
                    f" {len(grouped) - MAX_PANELS} more panels."
                    if len(grouped) > MAX_PANELS
                    else ""
                ),
            )
        )
    return drawn


def _curve(rows: Sequence[dict[str, Any]], column: str) -> MemoryCurve:
    first = rows[0]
    parts = [first["framework"], first["precision"]]
    parts += [first["compiler"]] if first["compiler"] != "none" else []
    parts += [topology(first["nodes"], first["devices_per_node"])]
    # The panel names the accelerator; cores per device do not change memory.
    others = [name for name in DECIDING if name not in ("accelerator", "cores_per_device")]
    parts += filter(None, (formatting.condition_label(name, first[name]) for name in others))
    points = [
        BatchPoint(
            int(row["batch_per_device"]),
            None if pd.isna(row[column]) else float(row[column]),
            row["status"] == "ok",
        )
        for row in rows
    ]
    rising = sorted(points, key=lambda point: point.batch)
    return MemoryCurve(" ".join(parts), first["framework"], rising, axes_of(first))


def draw(curves: Sequence[MemoryCurve], look: Look, limits: Sequence[float], width: int) -> Markup:
    """Return memory in GiB by batch size as SVG.

    ``limits``: memory limits of the attempts in GiB, which vary slightly with other processes'
    memory."""

    def one(axes: Axes, curve: MemoryCurve, style: line_charts.Style, parts: Parts) -> None:
        fits = [
            (point.batch, point.gib)
            for point in curve.points
            if point.fits and point.gib is not None
        ]
        over = [(point.batch, point.gib) for point in curve.points if not point.fits and point.gib]
        unknown = [point.batch for point in curve.points if point.gib is None]
        axes.plot([batch for batch, _ in fits], [gib for _, gib in fits], label=curve.label,
                  markersize=6, **style)  # fmt: skip
        cross = {**style, "linestyle": "none", "marker": "x", "markersize": 7,
                 "markeredgewidth": 1.8}  # fmt: skip
        axes.plot([batch for batch, _ in over], [gib for _, gib in over], **cross)
        edge = axes.get_xaxis_transform()  # unknown memory: the cross is at the upper edge
        axes.plot(unknown, [1.0] * len(unknown), transform=edge, clip_on=False, **cross)
        for point in curve.points:
            held = "not known" if point.gib is None else f"{number(point.gib)} GiB"
            held += "" if point.fits else ", does not fit"
            place = (point.batch, 1.0 if point.gib is None else point.gib)
            said = f"{curve.label}, batch {point.batch}: {held}"
            parts.point(style["gid"], axes, place, said, edge if point.gib is None else None)

    def finish(axes: Axes) -> None:
        for limit in sorted({min(limits), max(limits)} if limits else ()):
            axes.axhline(limit, color=MUTED, linewidth=1.4, zorder=0)
        axes.set_xlim(left=0)
        axes.xaxis.set_major_locator(MaxNLocator(8, integer=True))
        axes.yaxis.set_major_locator(MaxNLocator(5))
        axes.set_ylim(bottom=0)
        axes.set_xlabel("batch per device")
        axes.set_ylabel("GiB")

    return line_charts.draw(curves, look, width, one, finish)
