"""Names in words: frameworks, settings, precisions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache

from .. import PROJECT
from ..cases.conditions import MODES, THROUGHPUT
from ..cases.names import in_words, topology
from ..config import catalog
from ..config.catalog import model_title
from . import contests, formatting
from .columns import Row
from .measured import NO_FRAMEWORK
from .results import CaseResult


@cache
def _titles() -> Mapping[str, str]:
    """Return the titles of this project's frameworks, by name."""
    declared = catalog.load_catalog(PROJECT).frameworks
    return {name: framework["title"] for name, framework in declared.items()}


def titled(text: str) -> str:
    """Return a text with the titles of frameworks in place of their names."""
    titles = _titles()
    return re.sub(r"\b\w+\b(?!\.\w)", lambda match: titles.get(match[0], match[0]), text)


def contest_name(result: CaseResult) -> str:
    """Return the framework of a case, or NO_FRAMEWORK."""
    return result.case.framework or NO_FRAMEWORK


def title_of(result: CaseResult) -> str:
    return titled(contest_name(result))


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
        title, devices = f"{model_title(row['model'])} {in_words(row['mode'])}", _devices(row)
    else:
        title = " ".join(filter(None, [row["mode"].replace("_", " "), row["model"]]))
        title = title[:1].upper() + title[1:]
        devices = topology(row["nodes"], row["devices_per_node"])
    parts = [precision_words(row["precision"]), devices, size, parameters, metric]
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
