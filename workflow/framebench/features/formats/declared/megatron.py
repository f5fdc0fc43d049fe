"""Logs of Megatron-LM and Megatron-DeepSpeed, which print a line every few iterations."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ....statistics import descriptive
from .. import rows
from ..format import Format
from ..source import NO_DIRECTION, ImportedFile

_ITERATION = re.compile(r"^(?P<writer>.*?)\biteration\s+(?P<at>\d+)/\s*(?P<total>\d+)\s*\|")
_TIMESTAMP = re.compile(r"\[?\d{4}-\d\d-\d\d[ T][\d:.,]+\]?")
#: Some forks print the mean over all iterations after a slash.
_FIELD = re.compile(r"(?<![^|:])([^|:]+):\s*([-+.\w]+)(?:/[-+.\w]+)?\s*(?=\|)")
_ARGUMENT = re.compile(r"(?:^|\s)([A-Za-z0-9_]+) \.{2,} (\S.*)$")
_LEAVING = re.compile(r"exiting program (at iteration|after [\d.]+ minutes)|after training is done")
#: Arguments that always distinguish cases.
_CASE = (
    "world_size", "data_parallel_size", "tensor_model_parallel_size",
    "pipeline_model_parallel_size", "micro_batch_size", "seq_length", "num_layers", "hidden_size",
)  # fmt: skip
#: Arguments that differ between repeats or between iterations.
_INCIDENTAL = (
    *_CASE, "rank", "local_rank", "save", "load", "global_batch_size", "iteration", "bf16", "fp16",
    "consumed_train_samples", "consumed_valid_samples", "consumed_train_tokens", "data_path",
    "wandb_exp_name", "tensorboard_dir", "master_addr", "master_port", "params_dtype",
)  # fmt: skip
#: Names of the step time in the log, with units per second.
_STEPS = {"elapsed time per iteration (ms)": 1000, "elapsed time per iteration (s)": 1}
_BATCH, _SAMPLES = "global batch size", "samples per second"
#: Lengths that may change between iterations; a change starts another case.
_LENGTHS = ("actual seqlen", "curriculum seqlen", "random ltd reserved length")
#: Further figures: name in the log -> metric, unit, direction.
_FIGURES = {
    "throughput per GPU (TFLOP/s/GPU)": ("tflops_per_device", "TFLOP/s", "higher"),
    "compute per GPU (TFLOP/s/GPU)": ("tflops_per_device", "TFLOP/s", "higher"),
    "TFLOPs": ("tflops_per_device", "TFLOP/s", "higher"),
    "tokens per gpu per second (tgs)": ("tokens_per_second_per_device", "tokens/s", "higher"),
    "tokens per GPU (tokens/s/GPU)": ("tokens_per_second_per_device", "tokens/s", "higher"),
    "energy per GPU (J/iter/GPU)": ("energy_per_device_and_step", "J", "lower"),
}
#: Fields with the progress or the settings of the run.
_STATE = re.compile(r"(consumed|skipped) (samples|tokens)|learning rate|loss scale|number of .*")


class Interval(NamedTuple):
    """One printed line, with means over the iterations since the previous line."""

    line: int
    iteration: int
    total: int
    fields: Mapping[str, str]

    @property
    def shape(self) -> tuple[str | None, ...]:
        """Batch size and sequence lengths of the iterations."""
        return tuple(self.fields.get(name) for name in (_BATCH, *_LENGTHS))


@dataclass
class MegatronRun:
    """One run of a log. A restarted run adds another to the same log."""

    arguments: dict[str, str] = field(default_factory=dict)
    intervals: list[Interval] = field(default_factory=list)
    writers: dict[int, str] = field(default_factory=dict)
    is_left: bool = False


def read(source: ImportedFile) -> Iterator[rows.ImportedFigure]:
    runs = [MegatronRun()]
    for line, text in source.lines(of_log=True):
        run = runs[-1]
        if argument := _ARGUMENT.search(text):
            if run.intervals:
                runs.append(run := MegatronRun())
            run.arguments[argument[1]] = argument[2].strip()
        run.is_left = run.is_left or bool(_LEAVING.search(text))
        match = _ITERATION.search(text)
        is_whole = text.endswith("|") or not source.is_cut_off(line)
        if match and is_whole and any(name in text for name in _STEPS):
            fields = {name.strip(): value for name, value in _FIELD.findall(text[match.end() :])}
            interval = Interval(line, int(match["at"]), int(match["total"]), fields)
            _add(source, run, interval, _TIMESTAMP.sub("", match["writer"]).strip())
    runs = [run for run in runs if run.intervals]
    if not runs:
        names = "' or '".join(_STEPS)
        source.refuse(f"is of another format: no line has an iteration with '{names}'")
    for run in runs:
        yield from _figures(source, run)


def _add(source: ImportedFile, run: MegatronRun, interval: Interval, writer: str) -> None:
    """Add an interval unless another rank printed it already.

    Raises FormatError for iterations out of order."""
    if run.intervals and interval.iteration <= run.intervals[-1].iteration:
        if run.writers.get(interval.iteration, writer) != writer:
            return
        allowed = "allowed: the log of one run, in its order, or of several with their arguments"
        behind = run.intervals[-1].iteration
        source.refuse(f"iteration {interval.iteration} behind {behind}: {allowed}", interval.line)
    run.writers[interval.iteration] = writer
    run.intervals.append(interval)


def _figures(source: ImportedFile, run: MegatronRun) -> Iterator[rows.ImportedFigure]:
    arguments, intervals = run.arguments, run.intervals
    reason = "" if run.is_left else _unfinished(intervals)
    reason = reason or _not_a_number(intervals)
    part = _last_part(source, intervals)
    reason = reason or _mixed(intervals, part)
    # The first interval includes allocation and kernel builds, or iterations of the ramp-up.
    steady = part[1:] or part
    last = steady[-1].fields
    case = {name: int(arguments[name]) for name in _CASE if arguments.get(name, "").isdecimal()}
    batch = _count(last.get(_BATCH)) or _count(arguments.get("global_batch_size"))
    if batch:
        case["global_batch_size"] = batch
    settings = {name: value for name, value in arguments.items() if value not in _NOTHING}
    settings |= {name: last[name] for name in _LENGTHS if name in last}
    model = rows.settings_of(settings, _INCIDENTAL) if arguments else source.its_name
    for metric, value, unit, better in _measured(source, steady, batch):
        yield rows.figure(
            "Megatron", "megatron", metric, value, unit, better, parameters=case,
            settings=model, precision=_precision(arguments),
            framework="pytorch", status="failed" if reason else "ok", reason=reason,
        )  # fmt: skip


#: Values that mean "not set".
_NOTHING = ("None", "False", "[]", "{}")


def _last_part(source: ImportedFile, intervals: list[Interval]) -> list[Interval]:
    """Return the intervals after the ramp-up: the last ones with equal batch size and lengths."""
    shape = intervals[-1].shape
    start = max(
        (index + 1 for index, interval in enumerate(intervals) if interval.shape != shape),
        default=0,
    )
    if start:
        batch = intervals[-1].fields.get(_BATCH)
        why = f"of a ramp-up the part with the last batch size ({batch}) and length is taken"
        source.leave_out(f"iterations up to {intervals[start - 1].iteration}", why)
    return intervals[start:]


def _mixed(intervals: list[Interval], part: list[Interval]) -> str:
    """Return why the intervals after a ramp-up give no figure; "" if they do."""
    before = intervals[-2].iteration if len(intervals) > 1 else 0
    if len(part) == 1 < len(intervals) and part[0].iteration - before > 1:
        return "the log ends with the line in which the ramp-up ends: it has both batch sizes"
    return ""


def _measured(
    source: ImportedFile, steady: list[Interval], batch: int
) -> Iterator[tuple[str, float, str, str]]:
    """Yield metric, value, unit and direction of each figure, as medians over the intervals."""
    name = next((name for name in _STEPS if name in steady[0].fields), next(iter(_STEPS)))
    step = (
        descriptive.median([_number(source, interval, name) for interval in steady]) / _STEPS[name]
    )
    yield "step_time", step, "s", "lower"
    named = dict.fromkeys(name for interval in steady for name in interval.fields)
    if batch:
        yield "samples_per_second", batch / step, "samples/s", "higher"
    elif _SAMPLES in named:
        rate = descriptive.median([_number(source, interval, _SAMPLES) for interval in steady])
        yield "samples_per_second", rate, "samples/s", "higher"
    for name in named:
        if name in _STEPS or name in (_BATCH, _SAMPLES, *_LENGTHS) or _STATE.fullmatch(name):
            continue
        if name not in _FIGURES:
            speed = re.search(r"/s|per second|\(W|time", name)
            source.leave_out(name, NO_DIRECTION if speed else "is no measure of speed")
        elif not all(name in interval.fields for interval in steady):
            source.leave_out(name, "does not stand in every interval")
        else:
            metric, unit, better = _FIGURES[name]
            value = descriptive.median([_number(source, interval, name) for interval in steady])
            yield metric, value, unit, better


def _unfinished(intervals: list[Interval]) -> str:
    """Return why a log is incomplete; "" if it is complete."""
    last = intervals[-1]
    length = last.iteration - (intervals[-2].iteration if len(intervals) > 1 else 0)
    if last.iteration + length <= last.total:
        return f"the log ends at iteration {last.iteration} of {last.total}"
    return ""


def _not_a_number(intervals: list[Interval]) -> str:
    for interval in intervals:
        if interval.fields.get("number of nan iterations", "0") != "0":
            return f"the loss is not a number (line {interval.line})"
    return ""


def _number(source: ImportedFile, interval: Interval, name: str) -> float:
    try:
        value = float(interval.fields[name])
    except (KeyError, ValueError):
        source.refuse(
            f"{name}: found {interval.fields.get(name)!r}; allowed: a number", interval.line
        )
    if value <= 0:
        source.refuse(f"{name}: found {value}; allowed: a number above 0", interval.line)
    return source.number(value, name, interval.line)


def _count(text: str | None) -> int:
    return int(text) if text and text.isdecimal() else 0


def _precision(arguments: Mapping[str, str]) -> str:
    """Return the precision from the arguments; "" if the log does not print them."""
    if arguments.get("fp8", "None") not in _NOTHING:
        return "fp8"
    precisions = [name for name in ("bf16", "fp16") if name in arguments]
    return next(
        (name for name in precisions if arguments[name] == "True"), "fp32" if precisions else ""
    )


FORMATS = [
    Format(
        "megatron",
        ".log",
        "log of Megatron-LM and Megatron-DeepSpeed",
        read=read,
        others=(".txt", ".out"),
        taken="step time, printed in ms or s; samples/s, from step time and global batch size; "
        "TFLOP/s per device by Megatron's count; tokens/s and energy per device; each the median "
        "over the logged intervals but the first; with a ramp-up of batch size or length, only "
        "its last part; a log that ends early is `failed`",
        not_taken="losses, norms, power and memory",
        missing="model, nodes, batch per device; printed arguments of the case are parameters, "
        "others if they differ",
    )
]
