"""milabench's .data files: one event of a benchmark's processes per line."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ....files.json_files import object_at
from ....statistics import descriptive
from .. import rows
from ..format import Format
from ..source import ImportedFile

#: Configuration keys that differ between runs or follow from others.
_INCIDENTAL = (
    "system", "dirs", "run_name", "hash", "definition", "config_base", "config_file", "tag", "name",
    "device", "devices", "job-number", "env", "argv.--precision", "argv.--batch-size", "weight",
    "max_duration", "validation",
)  # fmt: skip
_ONLY = "only the rate of the task train is taken"


@dataclass
class Process:
    """A process in the file, from its config event to its end event."""

    line: int
    config: dict[str, Any]
    meta: dict[str, Any] = field(default_factory=dict)
    rates: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    reason: str = ""
    end: Any = None
    is_over: bool = False
    is_stopped: bool = False


def read(source: ImportedFile) -> Iterator[rows.ImportedFigure]:
    processes: list[Process] = []
    for line, entry in _entries(source):
        event, data = entry.get("event"), entry.get("data")
        if not isinstance(event, str):
            source.refuse("is of another format: 'event' missing", line)
        if event == "config" and isinstance(data, dict) and isinstance(data.get("name"), str):
            processes.append(Process(line, data))
            continue
        process = processes[-1] if processes else None
        if process is None or process.is_over:
            # The monitor may write another line after the end.
            if not processes or event in ("start", "end", "data"):
                allowed = "allowed: behind the config event of its process, before its end event"
                source.refuse(f"found the event {event}; {allowed}", line)
            continue
        if event == "stop":
            process.is_stopped = True
        if isinstance(data, dict):
            _take(source, process, event, data, line)
    if not processes:
        source.refuse("is of another format, or not whole: no config event with a name")
    for process in processes:
        yield from _figures(process)


def _entries(source: ImportedFile) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield number and object of each line, without a last line that was cut off."""
    for line, text in source.lines():
        if not (source.is_cut_off(line) and line > 1 and not text.endswith("}")):
            yield line, source.object_of(text, line)


def _take(
    source: ImportedFile, process: Process, event: str, data: Mapping[str, Any], line: int
) -> None:
    if event == "meta":
        process.meta |= data
    elif event == "end":
        process.end, process.is_over = data.get("return_code"), True
    elif event == "data":
        is_train = data.get("task") == "train"
        if is_train and "rate" in data:
            rate = source.number(data["rate"], "rate", line)
            process.rates[str(data.get("units", ""))].append(rate)
        loss = data.get("loss")
        # milabench itself counts such a run as a success.
        if is_train and isinstance(loss, float) and not math.isfinite(loss):
            process.reason = process.reason or f"the loss is {loss} in line {line}"
        for name, value in data.items():
            is_figure = isinstance(value, (int, float, dict)) and not isinstance(value, bool)
            if is_figure and name != "time" and not (is_train and name == "rate"):
                source.leave_out(f"{name} ({data.get('task')})", _ONLY)


def _why(process: Process) -> str:
    """Return why the process has no figure; "" if it has one."""
    if not process.is_over:
        return "the file ends without an end event"
    # A process that milabench stopped early succeeded, whatever its return code.
    if process.end and not process.is_stopped:
        return f"return code {process.end}"
    return "" if process.rates else "it has no rate of the task train"


def _figures(process: Process) -> Iterator[rows.ImportedFigure]:
    config, reason = process.config, process.reason or _why(process)
    given = object_at(config, "argv")
    tags, devices = config.get("tag"), config.get("devices")
    # Tags D0, D1, ..: processes of one benchmark that run at the same time, one per device.
    parameters = {}
    if isinstance(tags, list) and len(tags) > 1:
        parameters["process"] = ".".join(map(str, tags[1:]))
    precision, batch = given.get("--precision"), given.get("--batch-size")
    if batch is not None:
        parameters["batch_size"] = str(batch)
    logged = {**config, **_machine(process.meta)}
    if isinstance(devices, list):
        logged["number_of_devices"] = len(devices)
    for unit, rates in (process.rates or {"": []}).items():
        yield rows.figure(
            "milabench", "milabench", "rate", None if reason else descriptive.median(rates), unit,
            "higher", model=config["name"], precision=str(precision or ""),
            accelerator=str(config.get("arch") or object_at(config, "system").get("arch") or ""),
            parameters=parameters, settings=rows.settings_of(logged, _INCIDENTAL),
            status="failed" if reason else "ok", reason=reason,
        )  # fmt: skip


def _machine(meta: Mapping[str, Any]) -> dict[str, Any]:
    """Return devices and software versions from the meta event."""
    gpus = object_at(object_at(meta, "accelerators"), "gpus")
    products = sorted(str(gpu.get("product")) for gpu in gpus.values() if isinstance(gpu, dict))
    return {
        "gpus": products,
        "cpu": object_at(meta, "cpu").get("brand"),
        "torch": object_at(meta, "pytorch").get("torch"),
        "milabench": object_at(meta, "milabench").get("tag"),
    }


FORMATS = [
    Format(
        "milabench",
        ".data",
        "milabench .data files",
        read=read,
        taken="the median rate of each process of the task `train`; processes of a benchmark stay "
        "separate; a loss that is not a number, a return code (unless milabench stopped it early) "
        "or a missing end event is `failed`; parameters: process, batch size, and arguments, "
        "devices and versions that differ",
        not_taken="other tasks, losses, memory, load and power",
        missing="framework; versions and devices if the file has no meta event",
    )
]
