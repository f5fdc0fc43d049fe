"""The first screen of the report as data: an answer for each setting, names in words, and
remarks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from .. import PROJECT
from ..cases.conditions import MODES, THROUGHPUT
from ..cases.names import in_words
from ..config import catalog
from ..config.catalog import model_title
from . import contests, formatting
from .columns import Row
from .measured import runs_in
from .results import CaseResult

#: Settings that fit on the first screen; pages fold others.
MOST_SETTINGS = 4
EACH_FASTEST = "each in its fastest precision"


@dataclass(frozen=True)
class Entrant:
    """A figure at a setting.

    ``label``: title of the framework. ``value``: median, in the setting's unit. ``percent``:
    percent of the best figure. ``interval``: 95 % interval of ``value``; None with too few repeats.
    ``notes``: whatever distinguishes the figure, such as its compiler. ``axes``: its framework,
    compiler and precision, as in records."""

    label: str
    figure: str
    value: float
    percent: int
    interval: tuple[float, float] | None
    notes: Sequence[str]
    axes: Mapping[str, str]


@dataclass(frozen=True)
class SettingAnswer:
    """The answer at one setting.

    ``title``: model and benchmark; ``details``: precision, devices, batch. ``verdict``: who leads
    by how much; ``between``: interval of the lead and what it depends on. ``state``: SURE,
    ORDER_SURE, OPEN, or "" if there is nothing to compare. ``leader``: title of the fastest, ""
    without one. ``aside``: who has no figure here, and why, one line each. ``row``: the row of the
    table FASTEST."""

    title: str
    details: str
    unit: str
    better: str
    verdict: str
    between: str
    state: str
    leader: str
    entrants: Sequence[Entrant]
    aside: Sequence[str]
    row: Row
    is_each_fastest: bool = False

    @property
    def name(self) -> str:
        return f"{self.title}, {self.details}" if self.details else self.title


@dataclass(frozen=True)
class NextStep:
    """Open question that the next call settles. ``seconds``: its expected time, None if unknown."""

    text: str
    seconds: float | None
    command: str


@dataclass(frozen=True)
class FirstScreen:
    """Content of the first screen.

    ``what``: suite, machine, day and number of runs. ``sentence``: the answer. ``cannot``: who
    cannot take part; ``why_not``: the reason of each. ``excluded``: figures that take part in no
    comparison. ``careful``: what speaks against trusting the figures. ``findings``: sentences on a
    user's own model and on variants. ``page``: path of the report, "" if there is none."""

    what: Sequence[str]
    sentence: str
    settings: Sequence[SettingAnswer]
    cannot: Sequence[str]
    why_not: Sequence[tuple[str, str]]
    excluded: Sequence[str]
    careful: Sequence[str]
    findings: Sequence[str]
    next: NextStep | None
    page: str


# ---- names in words ------------------------------------------------------------------------------


@cache
def _titles() -> Mapping[str, str]:
    """Return the titles of this project's frameworks, by name."""
    declared = catalog.load_catalog(PROJECT).frameworks
    return {name: framework["title"] for name, framework in declared.items()}


def titled(text: str) -> str:
    """Return a text with the titles of frameworks in place of their names."""
    titles = _titles()
    return re.sub(r"\b\w+\b(?!\.\w)", lambda match: titles.get(match[0], match[0]), text)


def title_of(result: CaseResult) -> str:
    return titled(runs_in(result.case))


def titles(names: Iterable[str]) -> str:
    return ", ".join(map(titled, dict.fromkeys(names)))


def precision_words(precision: str) -> str:
    """Return a precision in words."""
    return "mixed precision" if precision == "amp" else precision


def setting_name(row: Row, parameters: str = "") -> tuple[str, str]:
    """Return the title of a setting and its details, without settings and environment."""
    metric = "" if row["metric"] == THROUGHPUT else row["metric"]
    batch = row["batch_per_device"]
    each = " per device" if (row["nodes"] or 1) * (row["devices_per_node"] or 1) > 1 else ""
    size = f"batch {batch}{each}" if batch else ""
    if row["mode"] in MODES:
        title = f"{model_title(row['model'])} {in_words(row['mode'])}"
    else:
        title = " ".join(filter(None, [in_words(row["mode"]), row["model"]]))
        title = title[:1].upper() + title[1:]
    parts = [precision_words(row["precision"]), _devices(row), size, parameters, metric]
    return title, ", ".join(filter(None, parts))


def _devices(row: Row) -> str:
    """Return the devices of a row in words: ``2 cores``, ``2 nodes x 8 GPUs``; "" if unknown."""
    nodes, count, cores = row["nodes"], row["devices_per_node"], row["cores_per_device"]
    if not nodes or not count:
        return ""
    words = formatting.counted(count, "GPU" if row["accelerator"] == "cuda" else "device")
    if row["accelerator"] == "cpu" and cores:
        several = f"{count} x " if count > 1 else ""
        words = several + formatting.counted(cores, "core")
    return f"{nodes} nodes x {words}" if nodes > 1 else words


def exclusion(result: CaseResult) -> str:
    """Name a case whose figure is excluded, and say why."""
    title, _ = setting_name({**result.key.row, "metric": result.key.metric})
    name = "+".join([title_of(result), *result.variation])
    parts = filter(None, [name, title, precision_words(result.case.precision)])
    return f"{', '.join(parts)}: {result.excluded}"


def exclusions(results: Iterable[CaseResult]) -> str:
    """Return the excluded cases with the reason of each, as text; "" for none."""
    return "; ".join(exclusion(result) for result in results if result.excluded)


def setting_labels(rows: Sequence[Row]) -> Callable[[Row], tuple[str, str]]:
    """Return a function that gives the title and details of a row, with what distinguishes it."""
    parameters_of = formatting.own_parameters(rows)

    def full(row: Row) -> str:
        return "\n".join(setting_name(row, parameters_of(row)))

    name = contests.named(rows, full)

    def label(row: Row) -> tuple[str, str]:
        title, _, details = name(row).partition("\n")
        return title, details

    return label
