"""Plots of throughput, ratios and rooflines, and captions that state what they leave out.

Plots and rows are limited, so that reports stay small for any number of records. Captions state
how many are left out and where to find them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd
from core import axes as case_axes
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator

from ..cases.names import topology_of
from ..config.statuses import FAILURES
from ..records.verified import EXCLUDING
from ..tables import formatting
from ..tables.formatting import number
from ..tables.results import CaseResult, CaseResults
from . import plots
from .plots import BELOW, HIGH, LEFT, RIGHT, ROW, WIDTH, Look, Plot, PlotRow
from .selection import (
    axes_of,
    is_known,
    labels,
    left_out,
    panels_left_out,
    rows_of,
    short,
    spread,
    training_first,
    without_ratio,
)
from .svg import FONT, INK, Parts, legend_of, svg

MAX_PANELS = 6
MAX_ROWS = 40
#: Most points of a roofline, and height of its axes in drawing units.
MAX_POINTS, _AXES = 80, 256
#: Text of a status in place of a figure.
STATUS_WORDS = {name: failure.words for name, failure in FAILURES.items()}
STATUS_WORDS |= {name: name.replace("_", " ") for name in EXCLUDING.values()}


def throughput(cases: CaseResults, look: Look) -> list[Plot]:
    """Return a plot per model and mode with all repeats of each case.

    Cases are grouped so that neighbours differ only in framework and compiler."""
    panels: dict[tuple[str, str], list[CaseResult]] = defaultdict(list)
    for result in cases.values():
        panels[result.case.model, result.case.mode].append(result)
    drawn = []
    for model, mode in sorted(panels, key=training_first)[:MAX_PANELS]:
        results = panels[model, mode]
        label = labels([result.key.row for result in results])
        groups: dict[tuple[Any, ...], list[CaseResult]] = defaultdict(list)
        for result in results:
            case = result.case
            setting = (case.devices, case.nodes, case.precision, case.batch_per_device)
            groups[setting].append(result)
        chosen = _most_shared(groups)
        rows: list[PlotRow] = []
        for group in sorted(chosen):
            case = chosen[group][0].case
            heading = f"{topology_of(case)} · {case.precision} · batch {case.batch_per_device}"
            rows.append(PlotRow(heading))
            named = [(label(result.key.row), result) for result in chosen[group]]
            rows += [
                _throughput_row(result, name)
                for name, result in sorted(named, key=lambda pair: pair[0])
            ]
        count = sum(map(len, chosen.values()))
        units = sorted({result.unit for result in results})
        axis = f"throughput, {' or '.join(units)}"
        drawn.append(
            Plot(
                title=f"{model}, {'training' if mode == 'train' else mode}",
                svg=plots.strips(rows, look, axis),
                description=f"Throughput of {count} cases of {model}, {mode}: a dot for each "
                "repeat, a tick at the median. The numbers are in the table Summary.",
                caption="Each repeat is a dot, the tick and the number are the median, the line "
                f"runs from minimum to maximum. {left_out(count, len(results), 'cases')}"
                + (
                    " The settings that most frameworks share are shown; the table Summary has all."
                    if count < len(results)
                    else ""
                )
                + panels_left_out(len(panels), MAX_PANELS, "Summary"),
            )
        )
    return drawn


def ratios(table: pd.DataFrame, look: Look, name: str) -> list[Plot]:
    """Return the strip plot of the speed-ups of a table; [] without any."""
    rows = rows_of(table)
    with_ratio = [row for row in rows if is_known(row.speedup)]
    if not with_ratio:
        return []
    groups: dict[tuple[Any, ...], list[Any]] = defaultdict(list)
    for row in spread(with_ratio, lambda row: (row.model, row.mode, row.framework), MAX_ROWS):
        groups[row.model, row.mode, row.nodes * row.devices_per_node, row.nodes, row.precision,
               row.batch_per_device].append(row)  # fmt: skip
    drawn: list[PlotRow] = []
    for group in sorted(groups, key=training_first):
        first = groups[group][0]
        setting = (topology_of(first), first.precision, f"batch {first.batch_per_device}")
        drawn.append(PlotRow(" · ".join((f"{first.model}, {first.mode}", *setting))))
        label = labels([row._asdict() for row in groups[group]])
        named = [(label(row._asdict()), row) for row in groups[group]]
        for name_of_row, row in sorted(named, key=lambda pair: pair[0]):
            interval = (row.speedup_ci_low, row.speedup_ci_high)
            drawn.append(
                PlotRow(
                    name_of_row, row.framework, [row.speedup], "",
                    interval if is_known(row.speedup_ci_low) else None,
                    axes_of(row._asdict()),
                )
            )  # fmt: skip
    shown = sum(map(len, groups.values()))
    return [
        Plot(
            title=name,
            svg=plots.strips(drawn, look, "speed-up (1 = no gain)", reference=1.0),
            description=f"{name}: {shown} ratios against the line at 1. The numbers "
            "are in the table below.",
            caption="Ratio of medians of the same devices and batch; right of the line is faster. "
            "A bar is the 95 % interval; a dot without one has too few repeats. "
            + left_out(shown, len(with_ratio), "ratios")
            + without_ratio(len(rows) - len(with_ratio)),
        )
    ]


def _throughput_row(result: CaseResult, label: str) -> PlotRow:
    values, runs = result.values, result.runs
    bad = sorted({run.status for run in runs if run.status != "ok"})
    text = ", ".join(STATUS_WORDS.get(status, status) for status in bad)
    if values and bad:
        label = short(f"{label} ({len(runs) - len(values)} of {len(runs)} {text})")
    return PlotRow(label, result.case.framework, values, text, axes=axes_of(result.key.row))


def _most_shared(
    groups: Mapping[tuple[Any, ...], list[CaseResult]],
) -> dict[tuple[Any, ...], list[CaseResult]]:
    """Return whole groups with at most MAX_ROWS cases in all, those with most frameworks first."""
    chosen: dict[tuple[Any, ...], list[CaseResult]] = {}
    room = MAX_ROWS
    for group in sorted(
        groups, key=lambda g: (-len({result.case.framework for result in groups[g]}), g)
    ):
        if len(groups[group]) <= room or not chosen:
            chosen[group] = groups[group][:room]
            room -= len(chosen[group])
    return chosen


# ---- rooflines: FLOP/s over FLOP per byte, on logarithmic axes -----------------------------------


class RoofLines(NamedTuple):
    """Roofs of one device: ``peak`` in TFLOP/s, ``bandwidth`` in GB/s."""

    peak: float
    bandwidth: float

    @property
    def ridge(self) -> float:
        """Intensity in FLOP per byte from which on the peak is the lower roof."""
        return 1000 * self.peak / self.bandwidth

    def at(self, intensity: float) -> float:
        """Return the TFLOP/s that the roofs allow at this intensity."""
        return min(self.peak, intensity * self.bandwidth / 1000)


def rooflines(table: pd.DataFrame, look: Look) -> list[Plot]:
    """Return a plot per precision and number of devices, which have their own roofs."""
    found: dict[tuple[Any, ...], list[Any]] = defaultdict(list)
    for row in rows_of(table):
        if is_known(row.reached):
            roofs = RoofLines(row.compute_roof_tflops, row.memory_roof_gbytes_per_second)
            where = formatting.condition_label("machine", row.machine)
            cores = formatting.condition_label("cores_per_device", _whole(row.cores_per_device))
            parts = (row.precision, topology_of(row), cores, where)
            found[(*filter(None, parts), roofs)].append(row)
    drawn = []
    for (*names, roofs), rows in list(found.items())[:MAX_PANELS]:
        chosen = spread(rows, lambda row: (row.model, row.framework), MAX_POINTS)
        drawn.append(
            Plot(
                title=f"Roofline: {', '.join(names)}",
                svg=_draw_roofline(chosen, roofs, look),
                description=f"Operations per second over operations per byte of {len(chosen)} "
                f"cases, below the peak of {number(roofs.peak)} TFLOP/s and the bandwidth of "
                f"{number(roofs.bandwidth)} GB/s of a device. The numbers are in the table.",
                caption="Filled markers are training, hollow ones inference, larger ones use a "
                "compiler. The roofs are measured. Frameworks at one setting compute the same, so "
                "they stand above each other, the fastest on top. Bytes are the least that a step "
                "must move: a point may belong further to the left, never to the right. "
                + left_out(len(chosen), len(rows), "cases")
                + panels_left_out(len(found), MAX_PANELS, "below"),
                axes={"precision": rows[0].precision, "devices": topology_of(rows[0])},
            )
        )
    return drawn


def _whole(value: Any) -> int | None:
    return None if pd.isna(value) else int(value)


def _setting_of(row: Any) -> str:
    """Return model, mode and sizes of a row, which share an intensity."""
    parts = [row.model, row.mode, f"batch {row.batch_per_device}"]
    for axis in (case_axes.BY_NAME["sequence_length"], *case_axes.OPTIONAL):
        if axis.form == case_axes.COUNT:
            parts.append(formatting.condition_label(axis.name, _whole(getattr(row, axis.name))))
    return ", ".join(filter(None, parts))


def _draw_roofline(rows: Sequence[Any], roofs: RoofLines, look: Look) -> Markup:
    """Return a roofline plot as SVG."""
    frameworks = list(dict.fromkeys(row.framework for row in rows))
    legend = ROW * (len(frameworks) + 1)
    height = HIGH + legend
    parts = Parts()
    names = [parts.add(axes_of(row._asdict())) for row in rows]

    def drawing(figure: Figure) -> None:
        across = (WIDTH - LEFT - RIGHT) / WIDTH
        axes = figure.add_axes((LEFT / WIDTH, (BELOW + legend) / height, across, _AXES / height))
        known = [*(row.intensity for row in rows), roofs.ridge]
        at = [min(known) / 2.5, roofs.ridge, max(known) * 2.5]
        axes.plot(at, [roofs.at(x) for x in at], color=INK, linewidth=2)
        for row, name in zip(rows, names, strict=True):
            has_compiler = row.compiler not in ("", "none")
            colour = look.colour(row.framework)
            axes.plot(
                [row.intensity], [row.tflops_per_device], linestyle="none", color=colour,
                marker=look.marker(row.framework), markersize=9 if has_compiler else 6,
                markeredgewidth=1.5, alpha=0.85, gid=name,
                markerfacecolor=colour if row.mode == "train" else "none",
            )  # fmt: skip
            label = row.framework + (f" + {row.compiler}" if has_compiler else "")
            parts.point(
                name, axes, (row.intensity, row.tflops_per_device),
                f"{label}, {_setting_of(row)}: {number(row.tflops_per_device)} TFLOP/s, "
                f"{100 * row.reached:.1f} % of what the roofs allow",
            )  # fmt: skip
        axes.set_xlim(at[0], at[-1])
        _scale(axes, [row.tflops_per_device for row in rows], roofs.peak)
        handles = [
            Line2D([], [], color=INK, label=f"{roofs.bandwidth:.3g} GB/s, {roofs.peak:.3g} TFLOP/s")
        ]
        for framework in frameworks:
            own = (n for row, n in zip(rows, names, strict=True) if row.framework == framework)
            handles.append(
                Line2D([], [], linestyle="none", color=look.colour(framework), markersize=6,
                       marker=look.marker(framework), markeredgewidth=0, label=framework,
                       gid=Parts.together(own))
            )  # fmt: skip
        legend_of(figure, handles=handles, loc="lower left", bbox_to_anchor=(0.02, 0),
                  fontsize=FONT - 1, handlelength=1.6, labelspacing=0.45)  # fmt: skip

    return svg(drawing, WIDTH, height, parts)


def _scale(axes: Axes, attained: Sequence[float], peak: float) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    for axis in (axes.xaxis, axes.yaxis):
        plots.number_ticks(axis, LogLocator(subs=(1,), numticks=12))
    axes.set_ylim(min(attained) / 2, 1.6 * max(*attained, peak))
    axes.set_xlabel("FLOP per byte, at most (logarithmic axes)")
    axes.set_ylabel("TFLOP/s of a device")
