"""Logs of NVIDIA's DLLogger: lines of ``DLLL`` followed by JSON. Figures come from the summary."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ....records.run import MetricValue
from .. import rows
from ..file_formats import Format
from ..source import ImportedFile

TOKEN = "DLLL "
#: Names of steps that hold the configuration.
_CONFIGURATION = re.compile(r"PARAMETERS?|HPARAMS|CONFIG|ENVIRONMENT", re.I)
#: Direction by unit or name. Figures that match neither are skipped.
_HIGHER = re.compile(
    r"/s(ec)?(/|$)|per_second|throughput|ips$|perf$|tflops|accuracy|exact_match|^F1$|top[15]", re.I
)
_LOWER = re.compile(
    r"^([mun]?s|sec(onds)?|min|h)$|latency|(^|[^a-z])(time|timing|took)|time$"
    r"|loss|perplexity|(^|_)wer$",
    re.I,
)


def read(source: ImportedFile) -> Iterator[rows.ImportedFigure]:
    units, configuration = dict[str, str](), dict[str, Any]()
    summary, others = dict[str, float](), set[str]()
    line = 0
    for line, entry in _entries(source):
        if entry.get("type") == "METADATA":
            metadata = entry.get("metadata")
            if isinstance(metadata, dict) and metadata.get("unit"):
                units[str(entry.get("metric"))] = str(metadata["unit"])
            continue
        data, step = entry.get("data"), entry.get("step")
        if entry.get("type") != "LOG" or not isinstance(data, (dict, str)):
            source.refuse(
                "is not a line of DLLogger: type or data is missing or has another type", line
            )
        if not isinstance(data, dict):
            continue
        if isinstance(step, str) and _CONFIGURATION.fullmatch(step):
            configuration |= data
            continue
        numbers = {str(name): value for name, value in data.items() if type(value) in (int, float)}
        if step not in ([], "", "SUMMARY"):
            others |= {*numbers}
            continue
        for name, value in numbers.items():
            if name in summary:
                source.refuse(f"{name} is in another summary, too; allowed: the log of one run",
                              line)  # fmt: skip
            summary[name] = source.number(value, name, line)
    if not line:
        source.refuse(f"is of another format: no line has {TOKEN.strip()}")
    for name in sorted(others - {*summary}):
        source.leave_out(name, "only the summary is imported")
    settings = rows.settings_of(configuration)
    if not configuration:  # the logs of two files are two cases
        settings = {"file": "/".join(source.path.absolute().parts[-2:])}
    figures = []
    for name, value in summary.items():
        unit = units.get(name, "")
        if better := _better(name, unit):
            metric = MetricValue(name, value, unit, better)
            figures.append(
                rows.figure("dllogger", "dllogger", metric, parameters={}, settings=settings)
            )
        else:
            source.leave_out(name, "it is unknown whether higher or lower is better")
    if not figures:
        names = ", ".join(name for _, name in source.left_out[:6]) or "nothing"
        source.refuse(f"has no summary with a figure of known direction; it has {names}", line)
    yield from figures


def _entries(source: ImportedFile) -> Iterator[tuple[int, dict[str, Any]]]:
    for line, text in source.lines():
        _, token, rest = text.partition(f"{TOKEN}{{")
        if token:  # other lines are the program's own output
            yield line, source.object_of("{" + rest, line)


def _better(name: str, unit: str) -> str:
    for text in filter(None, (unit, name)):
        if _HIGHER.search(text):
            return "higher"
        if _LOWER.search(text):
            return "lower"
    return ""


FORMATS = [Format("dllogger", ".json", read=read, others=(".log", ".txt", ".out"))]
