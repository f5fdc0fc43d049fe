"""Cases with known figures, of which some frameworks have none in mixed precision."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product
from typing import Any, NamedTuple

import pytest
from framebench.records.run import Run
from framebench.tables import frames
from framebench.tables.grouping import group
from framebench.tables.table import Inputs, Table

from .made_up_runs import repeats
from .made_up_trainings import trained

FRAMEWORKS = ("jax", "mxnet", "pytorch", "tensorflow")
COMPILERS = {"jax": "jit", "mxnet": "hybridize", "pytorch": "inductor", "tensorflow": "xla"}
ENDS = ("unsupported", "failed", "missing")
PLACES = {"first": FRAMEWORKS[:1], "middle": FRAMEWORKS[1:3], "last": FRAMEWORKS[-1:]}


class Of(NamedTuple):
    """Axes that distinguish the cases of this module."""

    framework: str
    mode: str
    precision: str
    compiled: bool
    devices: int

    def but(self, **other: Any) -> Of:
        return self._replace(**other)


#: Throughput by case, None without a figure. Each framework has its own range of a thousand.
Known = Mapping[Of, float | None]


def known_of(frameworks: tuple[str, ...], end: str) -> dict[Of, float | None]:
    """Return the known throughputs.
    ``frameworks``: those whose mixed precision ended with the status ``end``."""
    known: dict[Of, float | None] = {}
    axes = product(FRAMEWORKS, ("train", "inference"), ("fp32", "amp"), (False, True), (1, 2))
    for number, of in enumerate(Of(*values) for values in axes):
        if of.precision == "amp" and of.framework in frameworks:
            if end != "missing":
                known[of] = None
        else:
            known[of] = 1000.0 * (FRAMEWORKS.index(of.framework) + 1) + 7 * number
    return known


def runs_of(known: Known, end: str) -> list[Run]:
    runs = []
    for axes, value in known.items():
        case = {
            "framework": axes.framework,
            "mode": axes.mode,
            "precision": axes.precision,
            "compiler": COMPILERS[axes.framework] if axes.compiled else "none",
            "devices_per_node": axes.devices,
        }
        made = repeats(value, value, **case)
        if value is None:
            made = [replace(run, status=end, reason=f"why {axes}") for run in made]
        runs += made
    return runs


def trainings_of(frameworks: tuple[str, ...], end: str) -> tuple[list[Run], dict[Any, float]]:
    """Return trainings, and their mean score in percent by framework and precision."""
    runs, scores = [], {}
    for framework, precision in product(FRAMEWORKS, ("fp32", "amp")):
        ends = precision == "amp" and framework in frameworks
        if ends and end == "missing":
            continue
        score = 0.9 + FRAMEWORKS.index(framework) / 100 + (precision == "amp") / 1000
        for seed in range(2):
            run = trained(0.5, score, seed=seed, framework=framework, precision=precision)
            if ends:
                nothing = tuple(metric._replace(value=None) for metric in run.metrics)
                run = replace(run, status=end, reason="why", metrics=nothing, curve=None)
            runs.append(run)
        if not ends:
            scores[framework, precision] = 100 * score
    return runs, scores


KnownTables = tuple[Known, dict[Any, float], dict[Table, Any]]


def known_tables(end: str, place: str) -> KnownTables:
    """Return the known throughputs and scores, and all tables."""
    known = known_of(PLACES[place], end)
    runs, scores = trainings_of(PLACES[place], end)
    inputs = Inputs(group(runs_of(known, end), None), others=group(runs, None))
    return known, scores, frames.build(inputs)


def ratio(known: Known, axes: Of, base: Of) -> float | None:
    """Return one throughput over another."""
    over, under = known.get(axes), known.get(base)
    return None if over is None or under is None else over / under


def number(text: str) -> float | None:
    """Return the first number of a cell; None without any."""
    match = re.match(r"\d+(\.\d+)?", text.replace("*", ""))
    return float(match[0]) if match else None


def close(text: str, value: float | None) -> bool:
    """Return whether a rounded cell has a value, or has no number for None."""
    if value is None:
        return number(text) is None
    shown = number(text)
    return shown is not None and shown == pytest.approx(value, rel=2e-3, abs=6e-3)


def markdown_rows(text: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield each row of a file's tables by heading, with the title above it."""
    title = ""
    header: list[str] = []
    for line in text.splitlines():
        if line.startswith("#"):
            title, header = line.lstrip("# "), []
        elif line.startswith("|") and not line.startswith("|-"):
            cells = [word.strip() for word in line.strip("|").split(" | ")]
            if header:
                yield title, dict(zip(header, cells, strict=True))
            header = header or cells
