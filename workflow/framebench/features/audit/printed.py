"""Printed figures and their groups: cases, printed rows, ratios with their baselines."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...cases.conditions import CASE
from ...statistics.intervals import Interval
from . import figures

#: Kinds of baselines of speed-ups.
ONE_DEVICE, FULL_PRECISION = "one device", "full precision"

#: Columns that identify what a printed figure is of. Tables mention other conditions only in words.
KEYS = (*CASE, "input_pipeline", "variant")

Key = tuple[str, ...]


def key_of(row: Mapping[str, Any]) -> Key:
    """Return the KEYS of a case with known runs; ``row``: its case and conditions by column."""
    known = {**row, "input_pipeline": row["input"], "variant": row["source_variant"]}
    return tuple(str(known[name]) for name in KEYS)


@dataclass(frozen=True)
class PrintedFigure:
    """A printed number, or one that printed numbers imply.
    ``cell`` is a row of published.csv; ``said`` is the number as printed, or the two that imply it.
    """

    cell: Mapping[str, str]
    value: float
    interval: Interval
    said: str
    implied: bool = False

    @property
    def key(self) -> Key:
        return tuple(self.cell[name] for name in KEYS)

    @property
    def row(self) -> tuple[str, str]:
        """Table and row in which the figure is printed."""
        return self.cell["table"], self.cell["place"]

    @property
    def quantity(self) -> str:
        return self.cell["quantity"]


@dataclass(frozen=True)
class Ratio:
    """A printed speed-up, the figure it belongs to and its baseline; None if not printed."""

    printed: PrintedFigure
    quantity: str
    figure: PrintedFigure | None
    base: PrintedFigure | None
    kind: str

    @property
    def is_time(self) -> bool:
        """Return whether less is faster: then the ratio is baseline over figure."""
        return self.printed.quantity not in ("speedup", "amp_speedup")


def by_case(printed: Sequence[PrintedFigure]) -> dict[Any, dict[str, PrintedFigure]]:
    """Group figures by printed row and case, then by quantity."""
    cases: dict[Any, dict[str, PrintedFigure]] = defaultdict(dict)
    for figure in printed:
        cases[figure.row, figure.key][figure.quantity] = figure
    return cases


def by_row(printed: Sequence[PrintedFigure]) -> dict[Any, list[PrintedFigure]]:
    """Group figures by printed row and case, keeping several of one quantity, such as of several
    seeds."""
    rows: dict[Any, list[PrintedFigure]] = defaultdict(list)
    for figure in printed:
        rows[figure.row, figure.key].append(figure)
    return rows


def figures_of(cells: Sequence[Mapping[str, str]]) -> list[PrintedFigure]:
    """Return the figures of all cells that hold a number; a dash or a word is none."""
    return [
        PrintedFigure(
            cell, float(cell["printed"]), figures.stands_for(cell["printed"]), cell["printed"]
        )
        for cell in cells
        if figures.half_unit(cell["printed"]) is not None
    ]


def ratios_of(printed: Sequence[PrintedFigure]) -> list[Ratio]:
    """Return every speed-up with the two figures that it is made of.

    Baseline of a speed-up of devices: the same case at 1n1g, in the same table or else in another
    of the source. Baseline of mixed precision: the figure of another precision in the same printed
    row; batch sizes may differ there, as they do in NVIDIA's tables.
    """
    cases = by_case(printed)
    places: dict[Any, PrintedFigure] = {}
    rows: dict[Any, list[PrintedFigure]] = defaultdict(list)
    for printed_figure in printed:
        places.setdefault((printed_figure.key, printed_figure.quantity), printed_figure)
        places.setdefault(
            (printed_figure.cell["table"], printed_figure.key, printed_figure.quantity),
            printed_figure,
        )
        rows[printed_figure.row, printed_figure.quantity].append(printed_figure)
    ratios = []
    for printed_figure in printed:
        if not printed_figure.quantity.endswith("speedup"):
            continue
        stem = printed_figure.quantity.removesuffix("speedup")
        quantity = stem.removesuffix("amp_").removesuffix("_") or "throughput"
        figure = cases[printed_figure.row, printed_figure.key].get(quantity)
        if stem:
            others = (
                other
                for other in rows[printed_figure.row, quantity]
                if _is_amp_base(other, printed_figure)
            )
            base, kind = next(others, None), FULL_PRECISION
        else:
            on_one = {**printed_figure.cell, "nodes": "1", "devices_per_node": "1"}
            key = tuple(on_one[name] for name in KEYS)
            base = places.get(
                (printed_figure.cell["table"], key, quantity), places.get((key, quantity))
            )
            kind = ONE_DEVICE
        ratios.append(Ratio(printed_figure, quantity, figure, base, kind))
    return ratios


def _is_amp_base(other: PrintedFigure, figure: PrintedFigure) -> bool:
    same = ("framework", "model", "mode", "input_pipeline", "variant", "nodes", "devices_per_node")
    return other.cell["precision"] != figure.cell["precision"] and all(
        other.cell[name] == figure.cell[name] for name in same
    )


def implied_baselines(ratios: Sequence[Ratio]) -> list[PrintedFigure]:
    """Return the baselines' figures that are not printed, but follow from figures and their
    speed-ups.

    Their intervals allow for truncated digits, which some tables have.
    """
    implied = []
    for ratio in ratios:
        figure, speedup = ratio.figure, ratio.printed
        if ratio.base or figure is None:
            continue
        intervals = figures.stands_for_cut(figure.said), figures.stands_for_cut(speedup.said)
        if ratio.is_time:
            value, interval, sign = figure.value * speedup.value, figures.product(*intervals), "x"
        elif speedup.value:
            value, interval, sign = figure.value / speedup.value, figures.quotient(*intervals), "/"
        else:
            continue
        cell = {**figure.cell, "column": speedup.cell["column"]}
        said = f"{figure.said} {sign} {speedup.said}"
        implied.append(PrintedFigure(cell, value, interval, said, implied=True))
    return implied
