"""The log that Megatron-LM and Megatron-DeepSpeed print: a line for every few iterations."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ...records.run import Run
from ...statistics import descriptive
from .. import rows
from ..format import Format
from ..source import Source

_ITERATION = re.compile(r"\biteration\s+(\d+)/\s*(\d+)\s*\|")
_FIELD = re.compile(r"([^|:]+):\s*([-+.\w]+)\s*(?=\|)")
_ARGUMENT = re.compile(r"(?:^|\s)([a-z0-9_]+) \.{2,} (\S+)$")
_LEAVING = re.compile(r"exiting program at iteration")
#: Of the arguments, what tells one case from another.
_CASE = (
    "world_size", "data_parallel_size", "tensor_model_parallel_size",
    "pipeline_model_parallel_size", "micro_batch_size", "seq_length", "num_layers", "hidden_size",
)  # fmt: skip
_STEP, _BATCH = "elapsed time per iteration (ms)", "global batch size"
_TFLOPS = "throughput per GPU (TFLOP/s/GPU)"


class Interval(NamedTuple):
    """One line: means over the iterations since the line before."""

    line: int
    iteration: int
    total: int
    fields: Mapping[str, str]


def read(source: Source) -> Iterator[Run]:
    arguments: dict[str, str] = {}
    intervals: list[Interval] = []
    is_left = False
    for line, text in source.lines():
        if argument := _ARGUMENT.search(text):
            arguments[argument[1]] = argument[2]
        is_left = is_left or bool(_LEAVING.search(text))
        found = _ITERATION.search(text)
        if found and _STEP in text:
            fields = {name.strip(): value for name, value in _FIELD.findall(text[found.end() :])}
            one = Interval(line, int(found[1]), int(found[2]), fields)
            if intervals and one.iteration <= intervals[-1].iteration:
                source.refuse(f"iteration {one.iteration} behind {intervals[-1].iteration}: "
                              "allowed: the log of one run, in its order", line)  # fmt: skip
            intervals.append(one)
    if not intervals:
        source.refuse(f"is of another format: no line has an iteration with '{_STEP}'")
    yield from _figures(source, arguments, intervals, is_left)


def _figures(
    source: Source, arguments: Mapping[str, str], intervals: list[Interval], is_left: bool
) -> Iterator[Run]:
    reason = "" if is_left else _unfinished(intervals)
    reason = reason or _not_a_number(source, intervals)
    case = {name: int(arguments[name]) for name in _CASE if arguments.get(name, "").isdecimal()}
    first = intervals[0].fields.get(_BATCH)
    for one in intervals:
        if (other := one.fields.get(_BATCH)) != first:
            allowed = f"allowed: {first} as before"
            source.refuse(f"{_BATCH}: found {other}; {allowed}", one.line)
    # The first holds allocation and the building of kernels.
    steady = intervals[1:] or intervals
    step = descriptive.median([_number(source, one, _STEP) for one in steady]) / 1000
    figures: list[tuple[str, float, str, str]] = [("step_time", step, "s", "lower")]
    if batch := _count(intervals[0].fields.get(_BATCH)):
        case["global_batch_size"] = batch
        figures.append(("samples_per_second", batch / step, "samples/s", "higher"))
    if all(_TFLOPS in one.fields for one in steady):
        tflops = descriptive.median([_number(source, one, _TFLOPS) for one in steady])
        figures.append(("tflops_per_device", tflops, "TFLOP/s", "higher"))
    for metric, value, unit, better in figures:
        yield rows.figure(
            "Megatron", "megatron", metric, value, unit, better, parameters=case,
            precision=_precision(arguments), framework="pytorch",
            status="failed" if reason else "ok", reason=reason,
        )  # fmt: skip


def _unfinished(intervals: list[Interval]) -> str:
    """Why a log is none of a whole run; "" where it is."""
    last = intervals[-1]
    length = last.iteration - (intervals[-2].iteration if len(intervals) > 1 else 0)
    if last.iteration + length <= last.total:
        return f"the log ends at iteration {last.iteration} of {last.total}"
    return ""


def _not_a_number(source: Source, intervals: list[Interval]) -> str:
    for one in intervals:
        if one.fields.get("number of nan iterations", "0") != "0":
            return f"the loss is not a number (line {one.line})"
    return ""


def _number(source: Source, one: Interval, field: str) -> float:
    try:
        value = float(one.fields[field])
    except (KeyError, ValueError):
        source.refuse(f"{field}: found {one.fields.get(field)!r}; allowed: a number", one.line)
    if value <= 0:
        source.refuse(f"{field}: found {value}; allowed: a number above 0", one.line)
    return source.number(value, field, one.line)


def _count(text: str | None) -> int:
    return int(text) if text and text.isdecimal() else 0


def _precision(arguments: Mapping[str, Any]) -> str:
    """As the arguments have it; "" where the log does not print them."""
    if "bf16" not in arguments or "fp16" not in arguments:
        return ""
    return next((name for name in ("bf16", "fp16") if arguments[name] == "True"), "fp32")


FORMATS = [
    Format(
        "megatron",
        ".log",
        "log of Megatron-LM and Megatron-DeepSpeed",
        read=read,
        missing="model, nodes, batch per device; what of the case stands in the printed arguments "
        "is a parameter; the figure is the median over the logged intervals without the first; a "
        "log that ends before its last iteration is `failed`; TFLOP/s is by Megatron's own count",
    )
]
