"""Conversion of imported figures to runs with one metric each.

Facts that the file lacks stay empty."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from core.case import Case
from core.text import printable

from ...cases.conditions import Conditions
from ...records.run import NO_REASON, MetricValue, Run

#: Fields of a case that a file may lack.
_UNKNOWN: Mapping[str, Any] = {
    **dict.fromkeys(("framework", "framework_version", "model", "precision", "compiler"), ""),
    **dict.fromkeys(("nodes", "devices_per_node", "batch_per_device"), 0),
}


@dataclass(frozen=True)
class ImportedFigure:
    """A run with one metric.

    ``settings``: further facts from its file. Settings that differ between files of an import
    become parameters of the case."""

    run: Run
    settings: Mapping[str, Any] = field(default_factory=dict)


def figure(
    source: str,
    mode: str,
    metric: str,
    value: float | None,
    unit: str,
    better: str,
    *,
    repeat: int = 0,
    status: str = "ok",
    reason: str = "",
    node: str = "",
    parameters: Mapping[str, Any] | None = None,
    settings: Mapping[str, Any] | None = None,
    **case: Any,
) -> ImportedFigure:
    """Return an imported figure.

    ``source``: name of the tool. ``repeat``: 0 to let :func:`complete` number it. ``case``: further
    fields of the case that the file states."""
    given = {name: _text(value) for name, value in (parameters or {}).items()}
    run = Run(
        case=Case(
            source=source,
            mode=mode,
            parameters=tuple(sorted(given.items())),
            node=node,
            **{**_UNKNOWN, **{name: _text(value) for name, value in case.items()}},
        ),
        conditions=Conditions(),
        repeat=repeat,
        attempt=0,
        status=status,
        reason="" if status == "ok" else _text(reason) or NO_REASON,
        metrics=(
            MetricValue(_text(metric), value if status == "ok" else None, _text(unit), better),
        ),
        step_seconds=(),
        wall_seconds=None,
        origin="",
        hardware="",
        environment="",
        record=None,
    )
    return ImportedFigure(run, settings or {})


def _text(value: Any) -> Any:
    """Return text as one printable line, lists and objects as JSON, other values unchanged."""
    text = json.dumps(value) if isinstance(value, (list, dict)) else value
    return re.sub(r"\s+", " ", printable(text)).strip() if isinstance(text, str) else text


#: Setting names that differ between repeats of one case: seeds, times, paths, run names.
_INCIDENTAL = re.compile(
    r"(^|[._ -])(seeds?|dates?|time|timestamp|datetime|paths?|dirs?|directory|folder|files?"
    r"|filename|duration|elapsed|log|logs|logdir|pid|port|uuid|uid|commit|sha|url|user|rank|argv0|command|cmd)$",
    re.IGNORECASE,
)
_PATH = re.compile(r"(~|\.{1,2})?/")
#: Most characters of a setting. Longer ones are cut and get a checksum.
_LONGEST = 80


def settings_of(stated: Mapping[str, Any], ignored: Iterable[str] = ()) -> dict[str, Any]:
    """Flatten a nested configuration: ``{"a": {"b": 1}}`` gives ``{"a.b": 1}``.

    Omitted are empty values (null, false, ""), keys in ``ignored`` with all below them, and values
    that differ between repeats of one case: seeds, times, paths."""
    without = frozenset(ignored)
    flat = {}
    for name, value in _flat(stated, "", without):
        is_path = isinstance(value, str) and _PATH.match(value)
        is_number = not isinstance(value, float) or math.isfinite(value)
        is_setting = value not in (None, False, "") and is_number and not is_path
        if is_setting and not _INCIDENTAL.search(name):
            flat[_text(name)] = _short(value)
    return flat


def _flat(stated: Mapping[str, Any], within: str, without: frozenset[str]) -> Iterator[Any]:
    for key, value in stated.items():
        name = f"{within}{key}"
        if name in without:
            continue
        if isinstance(value, dict):
            yield from _flat(value, f"{name}.", without)
        elif isinstance(value, list):
            yield (
                name,
                ", ".join(text if isinstance(text, str) else json.dumps(text) for text in value),
            )
        else:
            yield name, value


def _short(value: Any) -> Any:
    text = str(value)
    if not isinstance(value, bool) and len(text) > _LONGEST:
        return f"{text[:_LONGEST]}.. ({hashlib.sha256(text.encode()).hexdigest()[:8]})"
    return value


def complete(figures: Sequence[ImportedFigure]) -> list[Run]:
    """Return the runs of imported figures. Figures that differ in settings become different cases;
    repeats are numbered."""
    counted: Counter[Any] = Counter()
    completed = []
    for run in _with_differing_settings(figures):
        if not run.repeat:
            counted[run.key] += 1
            run = replace(run, repeat=counted[run.key])
        completed.append(run)
    return completed


def _with_differing_settings(figures: Sequence[ImportedFigure]) -> list[Run]:
    """Return runs whose parameters include the settings that differ within their case."""
    alike: dict[Any, list[Mapping[str, Any]]] = defaultdict(list)
    for imported_figure in figures:
        alike[imported_figure.run.case, imported_figure.run.conditions].append(
            imported_figure.settings
        )
    differing = {key: _differing(settings) for key, settings in alike.items()}
    runs = []
    for imported_figure in figures:
        case = imported_figure.run.case
        names = differing[case, imported_figure.run.conditions]
        added = {
            name: _text(imported_figure.settings[name])
            for name in names
            if name in imported_figure.settings
        }
        if added:
            parameters = tuple(sorted({**dict(case.parameters), **added}.items()))
            case = case._replace(parameters=parameters)
        runs.append(replace(imported_figure.run, case=case))
    return runs


def _differing(settings: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the names of settings that differ, or are missing, in some of ``settings``."""
    distinct = [*{id(setting): setting for setting in settings}.values()]
    names = {name for entry in distinct for name in entry}
    first = distinct[0]
    missing = object()
    return sorted(
        name
        for name in names
        if any(entry.get(name, missing) != first.get(name, missing) for entry in distinct)
    )
