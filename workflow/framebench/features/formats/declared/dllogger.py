"""Logs of NVIDIA's DLLogger: lines of ``DLLL`` followed by JSON.

Figures come from the summary or, without one, from steps and epochs."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ....statistics import descriptive
from .. import rows
from ..format import Format
from ..source import NO_DIRECTION, ImportedFile

TOKEN = "DLLL "
#: Names of steps that hold the configuration.
_CONFIGURATION = re.compile(r"PARAMETERS?|HPARAMS|CONFIG|ENVIRONMENT", re.I)
#: Direction by unit or name. Figures that match neither are skipped.
_HIGHER = re.compile(
    r"/s(ec)?(/|$)|per_second|throughput|ips$|perf$|tflops|accuracy|exact_match|^F1$|top[15]", re.I
)
_TIME = re.compile(r"^([mun]?s|sec(onds)?|min|h)$|latency|(^|[^a-z])(time|timing|took)|time$", re.I)
_LOSS = re.compile(r"loss|perplexity|(^|_)wer$", re.I)
#: Units in names, as NeMo writes them: "train_step_timing in s".
_UNIT_IN_NAME = re.compile(r" in (s|ms|us)$")
#: Arguments in the text of a namespace, and values that mean "not set".
_ARGUMENT = re.compile(r"(\w+)=('[^']*'|\[[^\]]*\]|[^,()]*)")
_NOTHING = ("None", "False", "''", "[]")


@dataclass
class Logged:
    """One run of the log: configuration, summary, and step values by figure and depth of the step.

    Each value has its line number."""

    logged: dict[str, Any] = field(default_factory=dict)
    summary: dict[str, tuple[int, float]] = field(default_factory=dict)
    steps: dict[str, dict[int, list[tuple[int, Any]]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(list))
    )


def read(source: ImportedFile) -> Iterator[rows.ImportedFigure]:
    units: dict[str, str] = {}
    runs = [Logged()]
    line = 0
    for line, entry in _entries(source):
        if entry.get("type") == "METADATA":
            metadata = entry.get("metadata")
            if isinstance(metadata, dict) and metadata.get("unit"):
                units[str(entry.get("metric"))] = str(metadata["unit"])
            continue
        data, step = entry.get("data"), entry.get("step")
        if entry.get("type") != "LOG" or not isinstance(data, (dict, str)):
            source.refuse("is no line of DLLogger: type and data missing or of another type", line)
        if not isinstance(data, dict):
            continue
        if isinstance(step, str) and _CONFIGURATION.fullmatch(step):
            if runs[-1].summary:
                runs.append(Logged())  # a restarted program appends to its log
            if not runs[-1].steps:
                runs[-1].logged |= _configuration(data)
        else:
            _add(source, runs[-1], step, data, line)
    if not line:
        source.refuse(f"is of another format: no line has {TOKEN.strip()}")
    figures = [figure for run in runs for figure in _figures(source, run, units)]
    if not figures:
        names = ", ".join(name for _, name in source.left_out[:6]) or "nothing"
        source.refuse(f"has no figure of known direction, neither in a summary nor by step; it has "
                      f"{names}", line)  # fmt: skip
    yield from figures


def _entries(source: ImportedFile) -> Iterator[tuple[int, dict[str, Any]]]:
    for line, text in source.lines(of_log=True):
        _, token, rest = text.partition(f"{TOKEN}{{")
        if token:  # other lines are the program's own output
            yield line, source.object_of("{" + rest, line)


def _configuration(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration in a step's data.

    Some programs log the text of an argparse namespace."""
    logged = dict(data)
    for name, value in data.items():
        text = value[0] if isinstance(value, list) and len(value) == 1 else value
        if isinstance(text, str) and text.startswith("Namespace("):
            logged[name] = {
                key: entry.strip("'")
                for key, entry in _ARGUMENT.findall(text)
                if entry not in _NOTHING
            }
    return logged


def _add(source: ImportedFile, run: Logged, step: Any, data: Mapping[str, Any], line: int) -> None:
    numbers = {str(name): value for name, value in data.items() if type(value) in (int, float)}
    if step in ([], "", "SUMMARY"):
        for name, value in numbers.items():
            if name in run.summary:
                source.refuse(f"{name} stands in the summary of line {run.summary[name][0]} too: "
                              "allowed: the log of one run", line)  # fmt: skip
            run.summary[name] = line, source.number(value, name, line)
        return
    depth = len(step) if isinstance(step, list) else 1
    for name, value in numbers.items():
        run.steps[name][depth].append((line, value))


def _figures(
    source: ImportedFile, run: Logged, units: Mapping[str, str]
) -> Iterator[rows.ImportedFigure]:
    settings = rows.settings_of(run.logged) if run.logged else source.its_name
    parameters = {} if run.summary else {"aggregate": "median of steps"}
    for name, value in _values(source, run, units):
        unit = _unit(name, units)
        if better := _better(name, unit):
            yield rows.figure(
                "dllogger", "dllogger", name, value, unit, better, parameters=parameters,
                settings=settings,
            )  # fmt: skip
        else:
            source.leave_out(name, NO_DIRECTION)


def _values(
    source: ImportedFile, run: Logged, units: Mapping[str, str]
) -> Iterator[tuple[str, float]]:
    """Yield the figures of the summary or, without one, medians over all steps but the first."""
    if run.summary:
        for name in sorted({*run.steps} - {*run.summary}):
            source.leave_out(name, "of a log with a summary only the summary is taken")
        yield from ((name, value) for name, (_, value) in run.summary.items())
        return
    for name, depths in run.steps.items():
        unit = _unit(name, units)
        speed = [text for text in (unit, name) if _HIGHER.search(text) or _TIME.search(text)]
        if not speed or _LOSS.search(name):
            source.leave_out(name, "of a log without a summary only times and rates are taken")
            continue
        logged = depths[max(depths)]
        steady = logged[1:] or logged
        yield name, descriptive.median([source.number(entry, name, line) for line, entry in steady])


def _unit(name: str, units: Mapping[str, str]) -> str:
    if match := _UNIT_IN_NAME.search(name):
        return match[1]
    return units.get(name, "")


def _better(name: str, unit: str) -> str:
    for text in filter(None, (unit, name)):
        if _HIGHER.search(text):
            return "higher"
        if _TIME.search(text) or _LOSS.search(text):
            return "lower"
    return ""


FORMATS = [
    Format(
        "dllogger",
        ".json",
        "NVIDIA DLLogger",
        read=read,
        others=(".log", ".txt", ".out"),
        taken="from the summary, figures whose unit or name tells the better direction; from a "
        "log without summary, the median of each time and rate over the steps but the first, with "
        "the parameter `aggregate`; parameters: differences between logged configurations",
        not_taken="figures of unknown direction; figures of steps and epochs if there is a "
        "summary; losses and accuracies of steps",
        missing="the whole case; the definition of a latency percentile",
    )
]
