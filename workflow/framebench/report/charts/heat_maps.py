"""Heat map of a metric over points of several values, such as matmul shapes, by case."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from markupsafe import Markup
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from ...cases.conditions import Parameters
from ...tables import measured
from ...tables.formatting import number, rounded
from ...tables.results import CaseResult
from ..parts import Parts
from ..plots import NARROW, ROW, WIDTH, Plot
from ..selection import axes_of_other, left_out, spread
from ..svg import ACCENT, FONT, MUTED, legend_of, svg

MAX_CASES = 8
MAX_POINTS = 24
#: Highest opacity, at which the number in a cell stays readable.
_DARKEST = 0.5
_HIGH = 26


@dataclass(frozen=True)
class HeatMapColumn:
    """Figures of a case by point; None if it has none there."""

    label: str
    values: Sequence[float | None]
    axes: Mapping[str, str] = field(default_factory=dict)


def has_shape(result: CaseResult) -> bool:
    """Return whether a case was measured at points of several values."""
    return len(result.key.point) > 1


def panel(kind: str, results: Sequence[CaseResult]) -> Plot | None:
    """Return the heat map of one metric; None without a figure."""
    cases: dict[Any, dict[Parameters, CaseResult]] = defaultdict(dict)
    for result in results:
        if result.throughput is not None:
            cases[result.case, result.conditions][result.key.point] = result
    every = _sorted(dict.fromkeys(point for some in cases.values() for point in some))
    if not every:
        return None
    points = every[:MAX_POINTS]
    label = measured.labels(results)
    chosen = spread(list(cases), lambda key: key[0].framework, MAX_CASES)
    columns = [
        HeatMapColumn(
            label(first := next(iter(cases[key].values()))),
            [
                case_result.throughput if (case_result := cases[key].get(point)) else None
                for point in points
            ],
            axes_of_other(first.key.row),
        )
        for key in chosen
    ]
    first, apart = results[0], _differing(points)
    between = "x" if _are_numbers(points) else " "
    names = [between.join(str(point[at][1]) for at in apart) for point in points]
    metric = first.key.metric.replace("_", " ")
    by = (" x " if between == "x" else ", ").join(points[0][at][0] for at in apart)
    same = [f"{name} {value}" for at, (name, value) in enumerate(points[0]) if at not in apart]
    return Plot(
        title=f"{kind.replace('_', ' ').capitalize()}: {metric} by {by}, {first.unit} "
        f"({first.better} is better)",
        svg=draw(columns, names, by, first.unit, WIDTH),
        narrow=draw(columns, names, by, first.unit, NARROW),
        description=f"{metric} of {len(columns)} cases at {len(points)} points. The numbers stand "
        "in the table.",
        caption=f"The median over repeats, in {first.unit}; the darker, the higher. A dash is "
        "where there is none. "
        + (f"All: {', '.join(same)}. " if same else "")
        + left_out(len(columns), len(cases), "cases")
        + " "
        + left_out(len(points), len(every), "points"),
    )


def _are_numbers(points: Iterable[Parameters]) -> bool:
    return all(isinstance(value, int) for point in points for _, value in point)


def _sorted(points: Iterable[Parameters]) -> list[Parameters]:
    """Return numeric points sorted by the product of their values, others unchanged."""
    some = list(points)
    if not _are_numbers(some):
        return some
    return sorted(some, key=lambda point: (math.prod(value for _, value in point), str(point)))


def _differing(points: Sequence[Parameters]) -> list[int]:
    """Return positions of the values in which points differ; all positions for one point."""
    places = range(len(points[0]))
    return [at for at in places if len({point[at] for point in points}) > 1] or list(places)


def draw(
    columns: Sequence[HeatMapColumn], points: Sequence[str], by: str, unit: str, width: int
) -> Markup:
    """Return a heat map as SVG: points down, cases across, numbered in the legend."""
    left, right, top = 14 + 7.5 * max(map(len, [*points, by])), 10, 26
    above = left > width / 2  # wide names go above their figures
    left = 10 if above else left
    high = 2 * _HIGH if above else _HIGH
    legend = ROW * len(columns)
    height = top + ROW * above + high * len(points) + 14 + legend
    present = [value for column in columns for value in column.values if value is not None]
    most = max(present)
    parts = Parts()

    def drawing(figure: Figure) -> None:
        axes = figure.add_axes(
            (left / width, (14 + legend) / height, (width - left - right) / width,
             high * len(points) / height)
        )  # fmt: skip
        axes.set_xlim(0, len(columns))
        axes.set_ylim(len(points), 0)
        axes.grid(visible=False)
        for side in axes.spines.values():
            side.set_visible(False)
        axes.set_xticks([])
        style: dict[str, Any] = {
            "textcoords": "offset points", "color": MUTED, "fontsize": FONT - 1,
            "annotation_clip": False, "ha": "left" if above else "right",
        }  # fmt: skip
        axes.set_yticks([])
        axes.annotate(by, (0, 0), xytext=(0 if above else -6, 9 + ROW * above), **style)
        for at, point in enumerate(points):
            beside: dict[str, Any] = {"xytext": (0 if above else -6, 0), "va": "center"}
            axes.annotate(point, (0, at + (0.27 if above else 0.5)), **beside, **style)
        handles = []
        for at, column in enumerate(columns):
            name = parts.add(column.axes)
            axes.annotate(str(at + 1), (at + 0.5, 0), xytext=(0, 9), ha="center", color=MUTED,
                          textcoords="offset points", fontsize=FONT - 1, gid=name,
                          annotation_clip=False)  # fmt: skip
            handles.append(
                Line2D([], [], linestyle="none", label=f"{at + 1}: {column.label}", gid=name)
            )
            for row, value in enumerate(column.values):
                middle = (at + 0.5, row + (0.75 if above else 0.5))
                text = "\N{EN DASH}" if value is None else rounded(value, ".3g")
                axes.annotate(text, middle, ha="center", va="center", gid=name,
                              fontsize=FONT - (1 if width == WIDTH else 3))  # fmt: skip
                if value is None:
                    continue
                opacity = _DARKEST * max(0.0, value / most)
                axes.add_patch(
                    Rectangle((at + 0.02, row + 0.52 * above + 0.02), 0.96, 0.46 if above else 0.96,
                              facecolor=ACCENT,
                              alpha=opacity, linewidth=0, gid=name)
                )  # fmt: skip
                said = f"{column.label}, {points[row]}: {number(value)} {unit}"
                parts.point(name, axes, middle, said)
        legend_of(
            figure, handles=handles, loc="lower left", bbox_to_anchor=(0.02, 0), handlelength=0,
            handletextpad=0, fontsize=FONT - 1, labelspacing=0.45,
        )  # fmt: skip

    return svg(drawing, width, height, parts)
