"""Reading of another tool's file, with errors that name the line, and conversion of its figures to
runs with one metric each.

Fields that the file lacks stay empty."""

from __future__ import annotations

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

from core import bounded
from core.case import Case
from core.text import printable, shorten

from ...cases.conditions import Conditions
from ...config.validation import show
from ...files.json_files import cause
from ...records.run import MetricValue, RecordsError, Run

#: Fields of a case that a file may lack.
_UNKNOWN: Mapping[str, Any] = {
    **dict.fromkeys(("framework", "framework_version", "model", "precision", "compiler"), ""),
    "node": "",
    **dict.fromkeys(("nodes", "devices_per_node", "batch_per_device"), 0),
}
#: Setting names that differ between repeats of one case: seeds, times, paths, run names.
_INCIDENTAL = re.compile(
    r"(^|[._ -])(seeds?|dates?|time|timestamp|datetime|paths?|dirs?|directory|folder|files?"
    r"|filename|duration|elapsed|log|logs|logdir|pid|port|uuid|uid|commit|sha|url|user|rank|argv0|command|cmd)$",
    re.IGNORECASE,
)
_PATH = re.compile(r"(~|\.{1,2})?/")


class FormatError(RecordsError):
    """Raised if a file has another format or is incomplete; the message names file and line."""


@dataclass(frozen=True)
class ImportedFile:
    """A file to import. ``left_out``: reason and name of each figure that the reader skipped."""

    path: Path
    left_out: list[tuple[str, str]] = field(default_factory=list)

    def leave_out(self, name: str, reason: str) -> None:
        """Record that a figure is skipped, with the reason."""
        self.left_out.append((reason, name))

    def refuse(self, message: str, line: int | None = None) -> NoReturn:
        """Raise :class:`FormatError`."""
        where = f"{self.path}, line {line}" if line else f"{self.path}"
        raise FormatError(f"import: {where}: {shorten(message, 1000)}")

    @cached_property
    def text(self) -> str:
        """Content of the file. Bytes that are not UTF-8 are replaced, since several programs may
        write into a log."""
        try:
            return bounded.read_bytes(self.path).decode("utf-8-sig", "replace")
        except OSError as error:
            self.refuse(cause(error))

    def lines(self) -> Iterator[tuple[int, str]]:
        """Yield number and text of each line that is not blank."""
        for number, line in enumerate(self.text.split("\n"), 1):
            if text := line.strip():
                yield number, printable(text)

    def object_of(self, text: str, line: int) -> dict[str, Any]:
        """Return the JSON object in ``text``. Raises FormatError for anything else."""
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            self.refuse(f"is not a JSON object ({error})", line)
        if not isinstance(value, dict):
            self.refuse(f"found {show(value)}; allowed: a JSON object", line)
        return value

    def number(self, value: Any, what: str, line: int) -> float:
        """Return a finite number. Raises FormatError for any other value."""
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            self.refuse(f"{what}: found {show(value)}; allowed: a number", line)
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            self.refuse(f"{what}: found {number}; allowed: a finite number", line)
        return number


@dataclass(frozen=True)
class ImportedFigure:
    """A run with one metric.

    ``settings``: settings stated in its file. Those that differ between files of an import become
    parameters of the case."""

    run: Run
    settings: Mapping[str, Any] = field(default_factory=dict)


def figure(
    source: str,
    mode: str,
    metric: MetricValue,
    *,
    repeat: int = 0,
    failure: str = "",
    parameters: Mapping[str, Any],
    settings: Mapping[str, Any] | None = None,
    **case: Any,
) -> ImportedFigure:
    """Return an imported figure.

    ``source``: name of the tool. ``repeat``: 0 to let :func:`complete` number it. ``failure``: why
    the run failed, "" if it did not. ``case``: further fields of the case that the file states."""
    value = None if failure else metric.value
    run = Run(
        case=Case(
            source=source,
            mode=mode,
            parameters=tuple(sorted((name, _text(value)) for name, value in parameters.items())),
            **{**_UNKNOWN, **{name: _text(value) for name, value in case.items()}},
        ),
        conditions=Conditions(),
        repeat=repeat,
        attempt=0,
        status="failed" if failure else "ok",
        reason=_text(failure),
        metrics=(metric._replace(name=_text(metric.name), value=value, unit=_text(metric.unit)),),
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


def settings_of(stated: Mapping[str, Any], ignored: Collection[str] = ()) -> dict[str, Any]:
    """Flatten a nested configuration: ``{"a": {"b": 1}}`` gives ``{"a.b": 1}``.

    Leaves out empty values (null, false, ""), keys in ``ignored``, and values that differ between
    repeats of one case: seeds, times, paths."""

    def flat(stated: Mapping[str, Any], within: str) -> Iterator[tuple[str, Any]]:
        for key, value in stated.items():
            if isinstance(value, dict):
                yield from flat(value, f"{within}{key}.")
            else:
                yield _text(f"{within}{key}"), _text(value)

    stated = {key: value for key, value in stated.items() if key not in ignored}
    return {
        name: value
        for name, value in flat(stated, "")
        if value not in (None, False, "")
        and not (isinstance(value, float) and not math.isfinite(value))
        and not (isinstance(value, str) and _PATH.match(value))
        and not _INCIDENTAL.search(name)
    }


def complete(figures: Sequence[ImportedFigure]) -> list[Run]:
    """Return the runs of imported figures. Figures of a case whose settings differ become different
    cases; repeats are numbered."""
    alike: dict[Case, dict[int, Mapping[str, Any]]] = defaultdict(dict)
    for one in figures:
        alike[one.run.case][id(one.settings)] = one.settings
    differing: dict[Case, list[str]] = {}
    for case, some in alike.items():
        names = {name for settings in some.values() for name in settings}
        values = {name: {repr(one.get(name)) for one in some.values()} for name in names}
        differing[case] = sorted(name for name in names if len(values[name]) > 1)
    counted: Counter[Any] = Counter()
    completed = []
    for one in figures:
        case = one.run.case
        added = {name: one.settings[name] for name in differing[case] if name in one.settings}
        parameters = tuple(sorted({**dict(case.parameters), **added}.items()))
        run = replace(one.run, case=case._replace(parameters=parameters))
        if not run.repeat:
            counted[run.key] += 1
            run = replace(run, repeat=counted[run.key])
        completed.append(run)
    return completed
