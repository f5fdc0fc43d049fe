"""Line charts of the report: efficiency by number of devices, and learning curves by epoch."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import groupby
from typing import Any

import pandas as pd
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

from ..cases.conditions import CONDITIONS
from ..cases.names import topology_of
from ..tables import measured
from ..tables.declared import converge
from ..tables.formatting import number
from ..tables.results import CaseResult
from ..tables.table import Inputs
from .plots import ChartLine, Look, Plot, Style, interval_text, line_chart, number_ticks
from .selection import (
    axes_of,
    axes_of_other,
    is_known,
    labels,
    left_out,
    panels_left_out,
    rows_of,
    spread,
    training_first,
    without_ratio,
)
from .svg import FONT, INK, MUTED, Parts

#: Most panels and lines of scaling, and of learning.
MAX_SCALING_PANELS, MAX_SCALING_LINES = 6, 10
MAX_LEARNING_PANELS, MAX_LEARNING_LINES = 4, 8
#: Most tooltips of learning curves. Beyond them epochs are skipped, but never a line's last one.
MAX_POINTS = 300
#: Rows of one setting, by number of devices, then nodes.
ScalingLine = ChartLine[Any]
#: Curves of one case: seed, and value by epoch.
SeedCurves = ChartLine[tuple[int, Sequence[float | None]]]


# ---- efficiency by number of devices -------------------------------------------------------------


def scaling(table: pd.DataFrame, look: Look, title: str) -> list[Plot]:
    """Return a plot per model, mode and precision.

    Each setting with a speed-up on several numbers of devices is a line. ``title``: the kind of
    scaling, a colon, and what stays equal when devices are added."""
    batch = "total_batch" if "total_batch" in table else "batch_per_device"
    name, _, same = title.partition(": ")
    found: dict[tuple[str, str, str], dict[tuple[Any, ...], list[Any]]] = defaultdict(dict)
    without: Counter[tuple[str, str, str]] = Counter()
    for row in rows_of(table):
        panel = (row.model, row.mode, row.precision)
        if not is_known(row.speedup):
            without[panel] += 1
            continue
        line = (row.framework, row.framework_version, row.source, row.compiler)
        # Text, because missing values have no order.
        conditions = (str(getattr(row, name)) for name in CONDITIONS)
        key = (*line, *conditions, getattr(row, batch))
        found[panel].setdefault(key, []).append(row)
    full = {
        panel: {key: rows for key, rows in lines.items() if len({r.devices for r in rows}) > 1}
        for panel, lines in found.items()
    }
    full = {panel: lines for panel, lines in full.items() if lines}
    drawn = []
    for panel in sorted(full, key=training_first)[:MAX_SCALING_PANELS]:
        lines = full[panel]
        label = labels([rows[0]._asdict() for rows in lines.values()], batch)
        chosen = spread(sorted(lines), lambda key: key[0], MAX_SCALING_LINES)
        made = [
            ScalingLine(
                label(lines[key][0]._asdict()),
                key[0],
                _on_fewest_nodes(lines[key]),
                axes_of(lines[key][0]._asdict(), without=["devices"]),
            )
            for key in sorted(chosen)
        ]
        drawn.append(
            Plot(
                title=", ".join(panel),
                svg=_draw_scaling(made, look, title),
                description=f"{name} of {', '.join(panel)}: efficiency of {len(made)} settings, "
                f"with {same}. The numbers are in the table below.",
                caption=f"{title}. The grey line is the ideal, a bar the 95 % interval; a point "
                "without a bar has too few repeats. Each number of devices is shown on the fewest "
                "nodes. A slow single device makes a speed-up look good, so compare the "
                "throughputs, too. "
                + left_out(len(made), len(lines), "settings with more than one device count")
                + without_ratio(without[panel])
                + panels_left_out(len(full), MAX_SCALING_PANELS, "below"),
            )
        )
    return drawn


def _on_fewest_nodes(rows: Sequence[Any]) -> list[Any]:
    """Return one row per number of devices, in ascending order."""
    ordered = sorted(rows, key=lambda row: (row.devices, row.nodes))
    return [next(same) for _, same in groupby(ordered, lambda row: row.devices)]


def _draw_scaling(lines: Sequence[ScalingLine], look: Look, title: str) -> Markup:
    """Return the efficiency by number of devices as SVG, with the ideal."""
    name, _, same = title.partition(": ")
    devices = sorted({row.devices for line in lines for row in line.points} | {1})

    def one(axes: Axes, line: ScalingLine, style: Style, parts: Parts) -> None:
        percents = [100 * row.efficiency for row in line.points]
        axes.plot([row.devices for row in line.points], percents, label=line.label, markersize=6,
                  **style)  # fmt: skip
        for row in line.points:
            percent = 100 * row.efficiency
            said = (
                f"{line.label}, {topology_of(row)}: {number(row.speedup)}, {percent:.1f} % of ideal"
            )
            # The single device is compared with itself: its interval is a point.
            if is_known(row.speedup_ci_low) and row.speedup_ci_low != row.speedup_ci_high:
                said += interval_text((row.speedup_ci_low, row.speedup_ci_high))
                axes.vlines(
                    [row.devices], 100 * row.efficiency_ci_low, 100 * row.efficiency_ci_high,
                    color=style["color"], linewidth=3, alpha=0.35, gid=style["gid"],
                )  # fmt: skip
            parts.point(style["gid"], axes, (row.devices, percent), said)

    def finish(axes: Axes) -> None:
        axes.axhline(100, color=MUTED, linewidth=1.4, zorder=0)
        axes.set_xscale("log", base=2)
        axes.set_xticks(devices, [str(count) for count in devices])
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_xlabel(f"devices, {same}")
        axes.set_ylabel("efficiency, % of ideal")
        axes.set_title(name, loc="left", fontsize=FONT, color=INK)
        axes.set_ylim(0, max(105.0, axes.get_ylim()[1]))

    return line_chart(lines, look, one, finish)


# ---- learning curves, one thin line per seed -----------------------------------------------------


def learning(inputs: Inputs, look: Look) -> list[Plot]:
    """Return plots of scores and losses for each model, task and target."""
    grouped: dict[tuple[Any, ...], list[CaseResult]] = defaultdict(list)
    for result in converge.results(inputs):
        for curve in converge.curves(result)[:1]:
            grouped[result.case.model, curve.task, curve.score, curve.target].append(result)
    drawn: list[Plot] = []
    for (model, task, score, target), results in list(grouped.items())[:MAX_LEARNING_PANELS]:
        aim = "without a target" if target is None else f"to {target:g}"
        title = f"by epoch: {model}, {task}, {aim}"
        drawn.append(_learning_panel(f"{score} {title}", score, results, look, target))
        drawn.append(_learning_panel(f"Loss of training {title}", "", results, look, None))
    return drawn


def _learning_panel(
    title: str, score: str, results: Sequence[CaseResult], look: Look, target: float | None
) -> Plot:
    label = measured.labels(results)
    chosen = spread(list(results), lambda result: result.case.framework, MAX_LEARNING_LINES)
    lines = [
        SeedCurves(
            label(result),
            measured.runs_in(result.case),
            [
                (curve.seed, curve.scores if score else curve.losses)
                for curve in converge.curves(result)
            ],
            axes_of_other(result.key.row),
        )
        for result in chosen
    ]
    seeds = sum(len(line.points) for line in lines)
    what = f"{score} of held-out data" if score else "mean loss of the steps of an epoch"
    return Plot(
        title=title[:1].upper() + title[1:],
        svg=_draw_learning(lines, look, score, target),
        description=f"{what} by epoch: {seeds} trainings of {len(lines)} cases. The table "
        "shows how they ended.",
        caption=f"The {what}, a line for each seed."
        + (" The grey line is the target. " if target is not None else " ")
        + left_out(len(lines), len(results), "cases"),
    )


def _draw_learning(
    lines: Sequence[SeedCurves], look: Look, score: str, target: float | None
) -> Markup:
    """Return learning curves as SVG.

    ``score``: name of the score; "" for losses, which have a logarithmic axis."""
    points = sum(len(values) for line in lines for _, values in line.points)
    every = -(-points // MAX_POINTS)

    def one(axes: Axes, line: SeedCurves, style: Style, parts: Parts) -> None:
        for at, (seed, values) in enumerate(line.points):
            present = [(epoch, value) for epoch, value in enumerate(values, 1) if value is not None]
            axes.plot(
                [epoch for epoch, _ in present], [value for _, value in present],
                markersize=3, linewidth=1, alpha=0.75, label=None if at else line.label, **style,
            )  # fmt: skip
            for epoch, value in present:
                if epoch % every == 0 or epoch == len(values):
                    said = f"{line.label}, seed {seed}, epoch {epoch}: {number(value)}"
                    parts.point(style["gid"], axes, (epoch, value), said)

    def finish(axes: Axes) -> None:
        if target is not None:
            axes.axhline(target, color=MUTED, linewidth=1, zorder=0)
        if not score:
            axes.set_yscale("log")
            number_ticks(axes.yaxis, LogLocator(subs=(1, 2, 5), numticks=12))
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_xlabel("epoch")
        axes.set_ylabel(score or "loss (logarithmic axis)")

    return line_chart(lines, look, one, finish)
