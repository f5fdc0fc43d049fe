"""Records: one JSON file per run, rN.json or rN-retryK.json in a folder per case."""

from __future__ import annotations

import gc
import hashlib
import math
import os
import re
import shlex
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import jsonschema_rs
from core import RECORD_FORMAT, bounded, parallelism
from core.case import check_axes
from core.parallelism import DATA

from ..cases.conditions import MODES, THROUGHPUT, of_record
from ..files import json_files
from ..files.attempt_names import repeat_and_attempt
from ..files.text import cut
from ..machine.identities import Identity, identity, same
from .fields import flags, nodes
from .fields.communication import all_reduce_rate, gradient_all_reduce_of
from .fields.curves import curve_of
from .fields.steps import input_pipeline_of, sample_work_of, step_parts_of
from .run import (
    NO_REASON,
    WAITED_APART,
    WAITED_IN_WINDOW,
    WAITED_NOWHERE,
    MetricValue,
    Problem,
    Run,
    cause,
)

T = TypeVar("T")
_SCHEMA = Path(__file__).parents[2] / "schemas" / "record.schema.json"
# Fields of an environment that its packages are built on.
_PROVIDED = ("image", "image_digest", "modules")
# Variables that change the arithmetic of a framework or library.
_ARITHMETIC = re.compile(r"FPMATH|TF32|PRECISION|FLAGS|FAST_MATH|ENABLE_ONEDNN|X64|BF16|FP16")
# Tolerance between stated and computed throughput. One program writes both from the same floats, so
# a larger difference is another definition of throughput.
_RELATIVE_ERROR = 1e-6


def read_folder(root: Path, named: Sequence[Path] = ()) -> tuple[list[Run], list[Problem], int]:
    """Return runs, unreadable files and the number of superseded attempts below `root`.

    Only the latest valid attempt of a repeat on a machine counts, because a retry invalidates the
    earlier attempt. ``named``: the files to read; all without any.
    """
    with _without_garbage_collection():
        return _read_folder(root, named)


def _read_folder(root: Path, named: Sequence[Path]) -> tuple[list[Run], list[Problem], int]:
    attempts: dict[tuple[str, int | str], list[Run]] = defaultdict(list)
    files, problems = ([*named], []) if named else json_files.below(root)
    seen: dict[str, str] = {}
    for file in files:
        origin = json_files.origin_of(file, root)
        try:
            run, digest = _run_of_file(file, origin)
        except (OSError, ValueError) as error:
            problems.append(Problem(origin, cause(error)))
            continue
        if digest in seen:
            problems.append(Problem(origin, f"is a copy of {seen[digest]}, which is counted once"))
            continue
        seen[digest] = origin
        folder, name = os.path.split(origin)
        slot = (folder, run.repeat if repeat_and_attempt(os.path.splitext(name)[0]) else name)
        attempts[slot].append(run)
    latest = [run for tried in attempts.values() for run in _latest(tried)]
    return latest, problems, sum(map(len, attempts.values())) - len(latest)


def _run_of_file(file: Path, origin: str) -> tuple[Run, str]:
    """Return the run in a file, and the SHA-256 of the file's content."""
    content = bounded.read_bytes(file)
    return _run_of_record(parse(content), file, origin), hashlib.sha256(content).hexdigest()


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Disable garbage collection: records have no cycles, and searching takes a sixth of the
    time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _latest(attempts: list[Run]) -> list[Run]:
    """Return the last attempt of a repeat on each machine."""
    kept: list[Run] = []
    for run in sorted(attempts, key=lambda run: run.attempt, reverse=True):
        if not any(same(run.machine, later.machine) for later in kept):
            kept.append(run)
    return kept


def read(path: Path, kind: str = "") -> dict[str, Any]:
    """Return the record at ``path``, of this ``kind`` or, without one, of any kind with a metric.

    Raises OSError if the file cannot be read, ValueError if it is no such record.
    """
    return parse(bounded.read_bytes(path), kind)


def read_below(
    folder: Path, kind: str, result_of: Callable[[Mapping[str, Any]], T]
) -> tuple[list[T], list[Problem]]:
    """Return what ``result_of`` makes of the records of a kind below ``folder``, and the files that
    cannot be read."""
    found = []
    files, problems = json_files.below(folder)
    for path in files:
        try:
            found.append(result_of(read(path, kind)))
        except (OSError, ValueError) as error:
            problems.append(Problem(json_files.origin_of(path, folder), cause(error)))
    return found, [
        Problem(f"{folder.name}/{problem.origin}", problem.message) for problem in problems
    ]


def parse(content: bytes, kind: str = "") -> dict[str, Any]:
    """Return the record in ``content``. Raises ValueError with the fault and its place."""
    record = json_files.decode(content)
    form = record.get("format") if isinstance(record, dict) else None
    if form != RECORD_FORMAT:
        shown = cut(repr(form))
        raise ValueError(f"is no Framebench record: format is {shown}; allowed: {RECORD_FORMAT!r}")
    try:
        _validator().validate(record)
    except jsonschema_rs.ValidationError as error:
        location = ".".join(map(str, error.instance_path)) or "record"
        shown, options = cut(repr(error.instance)), getattr(error.kind, "options", ())
        message = f"allowed: {', '.join(map(repr, options))}" if options else error.message
        raise ValueError(
            f"breaks the record schema: {location}: found {shown}; {cut(message, 300)}"
        ) from error
    shown = cut(repr(record["kind"]))
    if kind and record["kind"] != kind:
        raise ValueError(f"is of kind {shown}; allowed here: {kind}")
    if not kind and not record["metrics"]:
        raise ValueError(f"is of kind {shown}, which has no metric; allowed: one that has")
    _check_case(record)
    return dict(record)


def _check_case(record: Mapping[str, Any]) -> None:
    """Raise ValueError for missing values of the record's kind, unknown axes or a bad
    parallelism."""
    needed: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    if record["kind"] in MODES:
        needed = ("framework", "model", "precision", "batch_per_device", "compiler")
        steps = ("warmup_steps", "timed_steps")
    elif record["kind"] == "largest_batch":
        needed = ("framework", "model", "precision", "compiler")
        steps = ("warmup_steps", "timed_steps")
    elif record["kind"] in ("verification", "peak_flops"):
        needed = ("framework", "model", "precision")
    missing = [key for key in needed if record["case"][key] is None]
    missing += [key for key in steps if key not in record["settings"]]
    check_axes(record["case"])
    if record["case"].get("parallelism"):
        parallelism.checked(record["case"]["parallelism"])
    if missing:
        raise ValueError(f"is of kind {record['kind']!r}, but has no {', '.join(missing)}")


@cache
def _validator() -> jsonschema_rs.Validator:
    # The value itself, which the caller shows, would be a whole object for a missing key.
    return jsonschema_rs.validator_for(json_files.read(_SCHEMA), mask="value")


def _run_of_record(record: Mapping[str, Any], file: Path, origin: str) -> Run:
    """Return the run of a valid record. Raises ValueError if the record contradicts itself."""
    case, conditions = of_record(record, record["kind"])
    is_ok, is_step = record["status"] == "ok", record["kind"] in MODES
    if is_step:
        _throughput(record)
    environment = record["environment"]
    repeat, attempt = repeat_and_attempt(file.stem) or (record["repeat"], 0)
    if repeat != record["repeat"]:
        raise ValueError(f"is named as repeat {repeat}, but holds repeat {record['repeat']}")
    ok_ranks = record["ranks"] if is_ok else ()
    slowest = _slowest(record["ranks"])
    steps = _steps_of(slowest, "step_seconds")
    waited, waited_in = _waited(slowest)
    hardware = hardware_label(environment["hardware"])
    by_data = case.parallelism == DATA  # otherwise not all gradients are reduced
    return Run(
        case=case._replace(
            # Parameters of timed steps only say how often something is timed.
            parameters=() if is_step else tuple(sorted(record["parameters"].items())),
        ),
        conditions=conditions,
        repeat=int(record["repeat"]),
        attempt=attempt,
        status=record["status"],
        reason="" if is_ok else record["reason"].strip() or NO_REASON,
        metrics=_throughput(record) if is_step else _metrics(record),
        step_seconds=steps,
        wall_seconds=float(record["wall_seconds"]),
        origin=origin,
        hardware=hardware,
        environment=environment_digest(environment),
        record=file,
        flags=flags.flags_of(record),
        peak_device_memory=_most(ok_ranks, "peak_device_memory_bytes"),
        peak_host_memory=_most(ok_ranks, "peak_host_memory_bytes"),
        joules=nodes.joules(record) if is_ok else None,
        joules_per_sample=nodes.joules_per_sample(record) if is_ok else None,
        energy_sources=nodes.energy_sources(record) if is_ok else "",
        step_breakdown=step_parts_of(slowest) if is_ok else None,
        start_seconds=_start_seconds(slowest) if is_ok else None,
        all_reduce_rate=all_reduce_rate(ok_ranks) if by_data else None,
        gradient_all_reduce=gradient_all_reduce_of(ok_ranks),
        started=_moment(record["started"]),
        crowded_out=record["status"] == "oom" and nodes.crowded_out(record),
        machine=machine_of(record),
        matmul_dtypes=_matmul_dtypes(record["ranks"]),
        waited_apart=waited,
        waited_in=waited_in,
        variables=variables_of(record),
        computation=computation_of(record),
        commit=commit_of(record),
        last_cache=_most(record["ranks"], "last_cache_bytes") or None,
        input_pipeline=input_pipeline_of(record, slowest, record["samples"] // len(steps))
        if is_ok and steps
        else None,
        curve=curve_of(record),
        sample_work=sample_work_of(record["ranks"]),
        command=shlex.join(record["command"]),
    )


def _moment(text: str) -> float | None:
    """Return seconds since the epoch; None for text that is not an ISO 8601 time."""
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError):
        return None


def _most(ranks: Sequence[Mapping[str, Any]], field: str) -> int | None:
    """Return the largest value of ``field`` over all ranks; None without any."""
    return max((int(rank[field]) for rank in ranks if rank.get(field) is not None), default=None)


def _matmul_dtypes(ranks: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return the dtypes of matmuls on all ranks, most frequent first."""
    counted: Counter[str] = Counter()
    for rank in ranks:
        counted.update(rank.get("matmul_dtypes", {}))
    return tuple(sorted(counted, key=lambda dtype: (-counted[dtype], dtype)))


def variables_of(record: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Return the variables of an A/B test, and those that change the arithmetic, sorted by name."""
    own = record["environment"]["variables"].items()
    found = {name: value for name, value in own if _ARITHMETIC.search(name)}
    found.update(record["settings"].get("variables", {}))
    return tuple(sorted((name, str(value)) for name, value in found.items()))


def machine_of(record: Mapping[str, Any]) -> Identity:
    """Return the identity of a record's machine."""
    environment = record["environment"]
    return identity(environment, hardware_label(environment["hardware"]))


def computation_of(record: Mapping[str, Any]) -> str:
    """Return the digest of the code that computed a record; "" if unknown."""
    return str(record["environment"]["code"].get("computation", ""))


def commit_of(record: Mapping[str, Any]) -> str:
    """Return the commit of a user's own model, else of the code that measured, shortened; "" if
    unknown.

    " (modified)" follows it if the code had uncommitted changes.
    """
    code = record["own_model"] if "own_model" in record else record["environment"]["code"]
    commit = str(code.get("commit") or "")[:12]
    return f"{commit} (modified)" if commit and code.get("modified") else commit


def _metrics(record: Mapping[str, Any]) -> tuple[MetricValue, ...]:
    """Return the metrics of a record. Raises ValueError for an ok record with a missing number."""
    result = tuple(
        MetricValue(
            metric.get("quantity", name),
            metric["value"],
            metric["unit"],
            metric["better"],
            tuple(metric.get("at", {}).items()),
        )
        for name, metric in record["metrics"].items()
    )
    for name, value, *_ in result if record["status"] == "ok" else ():
        if value is None or not math.isfinite(value):
            raise ValueError(f"is ok, but its {name} is {value}; allowed: a number")
    return result


def _throughput(record: Mapping[str, Any]) -> tuple[MetricValue]:
    """Return the throughput in samples/s; None unless ok.

    Raises ValueError unless it is samples / timed seconds.
    """
    if THROUGHPUT not in record["metrics"]:
        raise ValueError(f"is of kind {record['kind']!r}, but has no metric {THROUGHPUT!r}")
    metric = record["metrics"][THROUGHPUT]
    value, samples, window = metric["value"], record["samples"], record["window_seconds"]
    if record["status"] != "ok":
        return (MetricValue(THROUGHPUT, None, metric["unit"]),)
    if value is None or not (value > 0 and math.isfinite(value)):
        raise ValueError(f"is ok, but its throughput is {value}; allowed: a number above 0")
    if not (samples and window):
        raise ValueError("is ok, but states no samples or no window to check its throughput by")
    if not math.isclose(value, samples / window, rel_tol=_RELATIVE_ERROR):
        raise ValueError(
            f"states a throughput of {value}, but {samples} samples in {window} s are "
            f"{samples / window}"
        )
    return (MetricValue(THROUGHPUT, float(value), metric["unit"]),)


def _slowest(ranks: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the rank with the longest timed region; {} if no rank timed steps."""

    def window(rank: Mapping[str, Any]) -> tuple[float, int]:
        return rank.get("window_seconds", 0.0), -rank["rank"]

    return max((rank for rank in ranks if rank.get("step_seconds")), key=window, default={})


def _start_seconds(rank: Mapping[str, Any]) -> float | None:
    """Return the seconds of build and first step; None if the record lacks one."""
    build, warmup = rank.get("phases", {}).get("build_seconds"), rank.get("warmup_step_seconds")
    return float(build) + float(warmup[0]) if build is not None and warmup else None


def _steps_of(rank: Mapping[str, Any], field: str) -> tuple[float, ...]:
    """Return the seconds of each step in a field of the rank."""
    steps = tuple(map(float, rank.get(field, ())))
    if not math.isfinite(sum(steps)):
        raise ValueError("holds a step time that is not finite")
    return steps


def _waited(rank: Mapping[str, Any]) -> tuple[tuple[float, ...], str]:
    """Return seconds of steps in a window in which each completed before the next began, and where
    completed steps were timed.

    Older records do not tell; there, the timed region counts, because nearly all frameworks were
    waited for at each step.
    """
    if "waited_step_seconds" in rank:
        return _steps_of(rank, "waited_step_seconds"), WAITED_APART
    if rank.get("run_ahead"):
        return (), WAITED_NOWHERE
    return (), WAITED_IN_WINDOW if rank.get("run_ahead") == 0 else ""


def hardware_label(hardware: Mapping[str, Any]) -> str:
    """Return a label of the kinds of GPU and CPU; "" if the record names none.

    Counts are left out: runs on one and on eight devices of a machine share a label.
    """
    if isinstance(hardware.get("label"), str):
        return str(hardware["label"]).strip()
    cpu = _name(hardware.get("cpu_model", hardware.get("cpu")))
    gpus = [_name(gpu) for gpu in _as_list(hardware.get("gpus"))]
    return ", ".join(dict.fromkeys(filter(None, [*gpus, cpu])))


def _name(part: Any) -> str:
    if isinstance(part, Mapping):
        part = part.get("name", part.get("model"))
    return part.strip() if isinstance(part, str) else ""


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def environment_digest(environment: Mapping[str, Any]) -> str:
    """Return a digest of the software of a run, 12 hex digits; "" without packages.

    It covers Python, packages, use of conda, image, modules and NCCL variables except NCCL_DEBUG.
    """
    if not environment["packages"]:
        return ""
    known = repr((environment["python"], sorted(environment["packages"].items())))
    if environment["install_method"] == "conda":
        known += repr(environment["install_method"])
    if provided := [environment[key] for key in _PROVIDED if environment.get(key)]:
        known += repr(provided)
    if nccl := sorted(
        (name, value)
        for name, value in environment["variables"].items()
        if name.startswith("NCCL_") and not name.startswith("NCCL_DEBUG")
    ):
        known += repr(nccl)
    return hashlib.sha256(known.encode()).hexdigest()[:12]
