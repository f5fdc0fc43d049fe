"""milabench's .data files: events of one process, one a line."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from ...records.run import Run
from ...statistics import descriptive
from .. import rows
from ..format import Format
from ..source import Source


def read(source: Source) -> Iterator[Run]:
    config: dict[str, Any] = {}
    rates: list[float] = []
    unit, reason, end = "", "", None
    for line, entry in source.objects():
        event, data = entry.get("event"), entry.get("data")
        if not isinstance(event, str):
            source.refuse("is of another format: 'event' missing", line)
        if end is not None:
            source.refuse("stands behind the end event: allowed: the events of one process", line)
        if not isinstance(data, dict):
            continue
        if event == "config":
            config = data
        elif event == "end":
            end = data.get("return_code")
        elif event == "data" and data.get("task") == "train":
            if "rate" in data:
                rates.append(source.number(data["rate"], "rate", line))
                unit = str(data.get("units", ""))
            loss = data.get("loss")
            # milabench itself counts such a run as a success.
            if isinstance(loss, float) and not math.isfinite(loss):
                reason = reason or f"the loss is {loss} in line {line}"
    if not isinstance(config.get("name"), str):
        source.refuse("is of another format, or not whole: no config event with a name")
    yield _figure(config, rates, unit, reason or _why(rates, end))


def _why(rates: list[float], end: Any) -> str:
    """Why the process has no figure; "" where it has one."""
    if end is None:
        return "the file ends without an end event"
    if end:
        return f"return code {end}"
    return "" if rates else "it has no rate of the task train"


def _figure(config: dict[str, Any], rates: list[float], unit: str, reason: str) -> Run:
    arguments = config.get("argv")
    given = arguments if isinstance(arguments, dict) else {}
    tags = config.get("tag")
    # D0, D1, ..: several of a benchmark run beside each other, one on each device.
    parameters = {"process": str(tags[-1])} if isinstance(tags, list) and len(tags) > 1 else {}
    named = {"precision": given.get("--precision"), "batch_size": given.get("--batch-size")}
    if named["batch_size"] is not None:
        parameters["batch_size"] = str(named["batch_size"])
    return rows.figure(
        "milabench", "milabench", "rate", None if reason else descriptive.median(rates), unit,
        "higher", model=config["name"], precision=str(named["precision"] or ""),
        accelerator=str(config.get("arch") or ""), parameters=parameters,
        status="failed" if reason else "ok", reason=reason,
    )  # fmt: skip


FORMATS = [
    Format(
        "milabench",
        ".data",
        "milabench .data files",
        read=read,
        missing="framework, versions, devices; a figure is the median rate of one process, and the "
        "processes of a benchmark are told apart, not added; a loss that is not a number is "
        "`failed`",
    )
]
