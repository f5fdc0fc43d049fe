"""What was learned, epoch by epoch: scores of held-out data and losses of training, a thin line for
each seed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from ..records.curves import Curve
from ..tables import measured
from ..tables.declared import converge
from ..tables.results import CaseResult
from ..tables.table import Inputs
from .plots import DASHES, NARROW, ROW, WIDTH, Look, Plot
from .selection import left_out, spread
from .svg import FONT, MUTED, svg

MAX_PANELS = 4
MAX_LINES = 8

#: What of a curve is drawn over its epochs.
Values = Callable[[Curve], Sequence[float | None]]


class Line(NamedTuple):
    """The seeds of one case."""

    label: str
    framework: str
    curves: Sequence[Sequence[float | None]]


def panels(inputs: Inputs, look: Look) -> list[Plot]:
    """For each model, task and target the scores, and behind them the losses of training."""
    grouped: dict[tuple[Any, ...], list[CaseResult]] = defaultdict(list)
    for result in converge.results(inputs):
        for curve in converge.curves(result)[:1]:
            grouped[result.case.model, curve.task, curve.score, curve.target].append(result)
    drawn: list[Plot] = []
    for (model, task, score, target), results in list(grouped.items())[:MAX_PANELS]:
        aim = "without a target" if target is None else f"to {target:g}"
        of = f"{model}, {task}, {aim}"
        drawn.append(_panel(f"{score} by epoch: {of}", score, results, look, target=target))
        drawn.append(_panel(f"Loss of training by epoch: {of}", "", results, look))
    return drawn


def _panel(
    title: str, score: str, results: Sequence[CaseResult], look: Look, target: float | None = None
) -> Plot:
    label = measured.labels(results)
    chosen = spread(list(results), lambda result: result.case.framework, MAX_LINES)
    lines = [
        Line(
            label(result),
            measured.runs_in(result.case),
            [curve.scores if score else curve.losses for curve in converge.curves(result)],
        )
        for result in chosen
    ]
    seeds = sum(len(line.curves) for line in lines)
    what = f"{score} of held-out data" if score else "mean loss of the steps of an epoch"
    return Plot(
        title=title[:1].upper() + title[1:],
        svg=draw(lines, look, score, target, WIDTH),
        narrow=draw(lines, look, score, target, NARROW),
        description=f"{what} by epoch: {seeds} trainings of {len(lines)} cases. How they ended "
        "stands in the table.",
        caption=f"The {what}, a line for each seed."
        + (" Grey is the target. " if target is not None else " ")
        + left_out(len(lines), len(results), "cases"),
    )


def draw(lines: Sequence[Line], look: Look, score: str, target: float | None, width: int) -> Markup:
    """``score``: its name; "" for losses, which have a logarithmic axis."""
    columns = 2 if width == WIDTH else 1
    legend = ROW * -(-len(lines) // columns)
    height = 300 + legend

    def drawing(figure: Figure) -> None:
        left, right = 64, 14
        axes = figure.add_axes(
            (left / width, (52 + legend) / height, (width - left - right) / width, 232 / height)
        )
        seen: dict[str, int] = {}
        for line in lines:
            dash = DASHES[seen.setdefault(line.framework, 0) % len(DASHES)]
            seen[line.framework] += 1
            for number, curve in enumerate(line.curves):
                _line(axes, line, curve, look, dash, first=number == 0)
        if target is not None:
            axes.axhline(target, color=MUTED, linewidth=1, zorder=0)
        if not score:
            axes.set_yscale("log")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_xlabel("epoch")
        axes.set_ylabel(score or "loss (logarithmic axis)")
        figure.legend(
            loc="lower left", bbox_to_anchor=(0.02, 0), ncols=columns, fontsize=FONT - 1,
            handlelength=2.6, columnspacing=2, labelspacing=0.45,
        )  # fmt: skip

    return svg(drawing, width, height)


def _line(
    axes: Axes, line: Line, curve: Sequence[float | None], look: Look, dash: Any, first: bool
) -> None:
    points = [(epoch, value) for epoch, value in enumerate(curve, 1) if value is not None]
    axes.plot(
        [epoch for epoch, _ in points], [value for _, value in points],
        color=look.colour(line.framework), marker=look.marker(line.framework), linestyle=dash,
        markersize=3, markeredgewidth=0, linewidth=1, alpha=0.75,
        label=line.label if first else None,
    )  # fmt: skip
