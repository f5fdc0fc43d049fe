"""Records: one JSON file per run, rN.json or rN-retryK.json in a folder per case."""

from __future__ import annotations

import hashlib
import math
import os
import re
import shlex
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import jsonschema_rs
from core import RECORD_FORMAT, bounded, parallelism
from core.text import shorten

from ..cases.conditions import MODES, THROUGHPUT, case_and_conditions
from ..config.validation import show
from ..files import json_files
from ..files.json_files import Problem, cause, repeat_and_attempt
from ..machine.identities import identity, same
from . import fields, flags
from .fields import curve_of, gradient_all_reduce_of, input_pipeline_of, sample_work_of
from .run import (
    NO_REASON,
    WAITED_APART,
    WAITED_IN_WINDOW,
    WAITED_NOWHERE,
    MetricValue,
    Run,
)

T = TypeVar("T")
#: Errors of reading a file that is not a record, or is incomplete.
UNREADABLE = (OSError, ValueError, LookupError, TypeError)
_SCHEMA = Path(__file__).parents[2] / "schemas" / "record.schema.json"
# Fields of a record's environment for software outside its packages.
_PROVIDED = ("image", "image_digest", "modules")
# Variables that change the arithmetic of a framework or library.
_ARITHMETIC = re.compile(r"FPMATH|TF32|PRECISION|FLAGS|FAST_MATH|ENABLE_ONEDNN|X64|BF16|FP16")
#: Tolerance between a stated throughput and the one computed from the samples. One program writes
#: both from the same floats, so a larger difference means another definition, or an edit.
_RELATIVE_ERROR = 1e-6


def read_folder(root: Path, named: Sequence[Path] = ()) -> tuple[list[Run], list[Problem]]:
    """Return runs and unreadable files below `root`.

    Only the latest valid attempt of a repeat on a machine counts, because a retry invalidates the
    earlier attempt. ``named``: the files to read; all without any.
    """
    attempts: dict[tuple[str, int | str], list[Run]] = defaultdict(list)
    files, problems = ([*named], []) if named else json_files.below(root)
    seen: dict[str, str] = {}
    for file in files:
        origin = json_files.origin_of(file, root)
        try:
            content = bounded.read_bytes(file)
            run, digest = _run_of(parse(content), file, origin), hashlib.sha256(content).hexdigest()
        except UNREADABLE as error:
            problems.append(Problem(origin, cause(error)))
            continue
        if digest in seen:
            problems.append(Problem(origin, f"is a copy of {seen[digest]}, which is counted once"))
            continue
        seen[digest] = origin
        folder, name = os.path.split(origin)
        slot = (folder, run.repeat if repeat_and_attempt(os.path.splitext(name)[0]) else name)
        attempts[slot].append(run)
    return [run for tried in attempts.values() for run in _latest(tried)], problems


def _latest(attempts: list[Run]) -> list[Run]:
    """Return the last attempt of a repeat on each machine."""
    kept: list[Run] = []
    for run in sorted(attempts, key=lambda run: run.attempt, reverse=True):
        if not any(same(run.machine, later.machine) for later in kept):
            kept.append(run)
    return kept


def read(path: Path, kind: str = "") -> dict[str, Any]:
    """Return the record at ``path``, of this ``kind`` or, without one, of any kind with a metric.

    Raises OSError if the file cannot be read, ValueError if it is not such a record.
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
        except UNREADABLE as error:
            problems.append(Problem(json_files.origin_of(path, folder), cause(error)))
    return found, [
        problem._replace(origin=f"{folder.name}/{problem.origin}") for problem in problems
    ]


def parse(content: bytes, kind: str = "") -> dict[str, Any]:
    """Return the record in ``content``. Raises ValueError with the fault and its place."""
    record = json_files.decode(content)
    form = record.get("format") if isinstance(record, dict) else None
    if form != RECORD_FORMAT:
        raise ValueError(
            f"is not a Framebench record: format is {show(form)}; allowed: {RECORD_FORMAT!r}"
        )
    try:
        _validator().validate(record)
    except jsonschema_rs.ValidationError as error:
        location = ".".join(map(str, error.instance_path)) or "record"
        options = getattr(error.kind, "options", ())
        message = f"allowed: {', '.join(map(repr, options))}" if options else error.message
        raise ValueError(
            f"breaks the record schema: {location}: found {show(error.instance)}; "
            f"{shorten(message)}"
        ) from error
    shown = show(record["kind"])
    if kind and record["kind"] != kind:
        raise ValueError(f"is of kind {shown}; allowed here: {kind}")
    if not kind and not record["metrics"]:
        raise ValueError(f"is of kind {shown}, which has no metric; allowed: a kind with metrics")
    if record["case"].get("parallelism"):
        parallelism.checked(record["case"]["parallelism"])
    return dict(record)


@cache
def _validator() -> jsonschema_rs.Validator:
    # Masked, because for a missing key the value would be a whole object; the caller shows the
    # value itself.
    return jsonschema_rs.validator_for(json_files.read(_SCHEMA), mask="value")


def _run_of(record: Mapping[str, Any], file: Path, origin: str) -> Run:
    """Return the run of a valid record. Raises ValueError as :func:`_metrics` does."""
    case, conditions = case_and_conditions(record, record["kind"])
    is_ok, is_step = record["status"] == "ok", record["kind"] in MODES
    environment = record["environment"]
    _, attempt = repeat_and_attempt(file.stem) or (0, 0)
    ok_ranks = record["ranks"] if is_ok else ()
    slowest = _slowest(record["ranks"])
    steps = tuple(map(float, slowest.get("step_seconds", ())))
    waited, waited_in = _waited(slowest)
    machine = identity(environment)
    joules, samples = fields.joules(record) if is_ok else None, record["samples"]
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
        metrics=_metrics(record, is_step),
        step_seconds=steps,
        wall_seconds=float(record["wall_seconds"]),
        origin=origin,
        hardware=machine.hardware,
        environment=environment_digest(environment),
        record=file,
        flags=flags.flags_of(record),
        peak_device_memory=_most(ok_ranks, "peak_device_memory_bytes"),
        peak_host_memory=_most(ok_ranks, "peak_host_memory_bytes"),
        joules=joules,
        joules_per_sample=joules / samples if joules is not None and samples else None,
        energy_sources=fields.energy_sources(record) if is_ok else "",
        gradient_all_reduce=gradient_all_reduce_of(ok_ranks),
        started=datetime.fromisoformat(record["started"]).timestamp(),
        crowded_out=record["status"] == "oom" and fields.crowded_out(record),
        machine=machine,
        matmul_dtypes=_matmul_dtypes(record["ranks"]),
        waited_apart=waited,
        waited_in=waited_in,
        variables=variables_of(record),
        computation=computation_of(record),
        commit=commit_of(record),
        input_pipeline=input_pipeline_of(record, slowest, samples // len(steps))
        if is_ok and steps
        else None,
        curve=curve_of(record),
        sample_work=sample_work_of(record["ranks"]),
        command=shlex.join(record["command"]),
    )


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


def _metrics(record: Mapping[str, Any], is_step: bool) -> tuple[MetricValue, ...]:
    """Return the metrics of a record; for steps only the throughput.

    Raises ValueError for an ok record without a number, and for a throughput that is not samples /
    timed seconds."""
    metrics, is_ok = record["metrics"], record["status"] == "ok"
    if is_step:
        metrics = {THROUGHPUT: metrics[THROUGHPUT]}
    for name, metric in metrics.items():
        if is_ok and metric["value"] is None:
            raise ValueError(f"is ok, but its {name} is None; allowed: a number")
    if is_ok and is_step:
        stated = metrics[THROUGHPUT]["value"]
        samples, window = record["samples"], record["window_seconds"]
        rate = samples / window if samples and window else math.nan
        if not math.isclose(stated, rate, rel_tol=_RELATIVE_ERROR):
            raise ValueError(
                f"states a throughput of {stated}, but {samples} samples in {window} s are {rate}"
            )
    return tuple(
        MetricValue(
            metric.get("quantity", name),
            metric["value"] if is_ok or not is_step else None,
            metric["unit"],
            metric["better"],
            tuple(metric.get("at", {}).items()),
        )
        for name, metric in metrics.items()
    )


def _slowest(ranks: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the rank with the longest timed region; {} if no rank timed steps."""

    def window(rank: Mapping[str, Any]) -> tuple[float, int]:
        return rank.get("window_seconds", 0.0), -rank["rank"]

    return max((rank for rank in ranks if rank.get("step_seconds")), key=window, default={})


def _waited(rank: Mapping[str, Any]) -> tuple[tuple[float, ...], str]:
    """Return the seconds of steps in a separate window in which each completed before the next
    began, and the region in which completed steps were timed.

    Older records do not say; for them it is the timed region, because nearly all frameworks
    completed each step there.
    """
    if "waited_step_seconds" in rank:
        return tuple(map(float, rank["waited_step_seconds"])), WAITED_APART
    if rank.get("run_ahead"):
        return (), WAITED_NOWHERE
    return (), WAITED_IN_WINDOW if rank.get("run_ahead") == 0 else ""


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
