"""NVIDIA's DLLogger: lines of ``DLLL`` and JSON, of which the summary has the figures."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ...records.run import Run
from .. import rows
from ..format import Format
from ..source import Source

TOKEN = "DLLL "
#: Which direction is better, by unit and by name; what neither tells is not taken.
_HIGHER = re.compile(
    r"/s$|per_second|throughput|ips$|perf$|accuracy|exact_match|^F1$|top[15]", re.I
)
_LOWER = re.compile(r"^m?s$|latency|time|loss", re.I)


def read(source: Source) -> Iterator[Run]:
    units: dict[str, str] = {}
    summary: dict[str, tuple[int, float]] = {}
    line = count = 0
    for line, text in source.lines():
        if not text.startswith(TOKEN):
            continue  # of the program's own
        count += 1
        entry = source.object_of(text.removeprefix(TOKEN), line)
        if entry.get("type") == "METADATA":
            metadata = entry.get("metadata")
            if isinstance(metadata, dict) and metadata.get("unit"):
                units[str(entry.get("metric"))] = str(metadata["unit"])
        elif entry.get("type") != "LOG" or not isinstance(entry.get("data"), (dict, str)):
            source.refuse("is no line of DLLogger: type and data missing or of another type", line)
        elif entry.get("step") == []:
            for name, value in _numbers(entry["data"]):
                if name in summary:
                    source.refuse(f"{name} stands in the summary of line {summary[name][0]} too: "
                                  "allowed: the log of one run", line)  # fmt: skip
                summary[name] = line, source.number(value, name, line)
    if not count:
        source.refuse(f"is of another format: no line begins with {TOKEN.strip()}")
    if not summary:
        source.refuse("has no summary (a line whose step is []): the run did not end", line)
    for name, (_, value) in summary.items():
        better = _better(name, units.get(name, ""))
        if not better:
            source.directionless.append(name)
            continue
        yield rows.figure("dllogger", "dllogger", name, value, units.get(name, ""), better)


def _numbers(data: Any) -> Iterator[tuple[str, Any]]:
    for name, value in data.items() if isinstance(data, dict) else ():
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            yield str(name), value


def _better(name: str, unit: str) -> str:
    for text in filter(None, (unit, name)):
        if _HIGHER.search(text):
            return "higher"
        if _LOWER.search(text):
            return "lower"
    return ""


FORMATS = [
    Format(
        "dllogger",
        ".json",
        "NVIDIA DLLogger",
        read=read,
        missing="all of a case (say it with `facts`); only the summary is taken, and of it what "
        "has a direction by its unit or name; a latency percentile is whatever the program meant",
    )
]
