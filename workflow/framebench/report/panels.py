"""Plots of the report, and captions that state what they leave out.

Each type of plot has an upper bound, so that reports stay small for any number of records. Captions
state how much lies beyond it and where to find it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import pandas as pd

from ..cases.names import topology_of
from ..config.statuses import FAILURES
from ..records.verified import EXCLUDING
from ..tables.results import CaseResult, CaseResults
from . import plots
from .plots import Look, Plot, PlotRow
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

MAX_PANELS = 6
MAX_ROWS = 40

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
                    " Shown are the settings that most frameworks have in common; all are in the "
                    "table Summary."
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
            "A bar is the 95 % interval; without one there are too few repeats. "
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
    """Return whole groups up to MAX_ROWS cases, those with most frameworks first."""
    chosen: dict[tuple[Any, ...], list[CaseResult]] = {}
    room = MAX_ROWS
    for group in sorted(
        groups, key=lambda g: (-len({result.case.framework for result in groups[g]}), g)
    ):
        if len(groups[group]) <= room or not chosen:
            chosen[group] = groups[group][:room]
            room -= len(chosen[group])
    return chosen
