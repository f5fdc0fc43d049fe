"""One run from the command line to its record. This process never imports a framework."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
import uuid
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any, Dict, Iterator, List, Optional, Sequence

from harness import cores as cores_of
from harness import (
    declaration,
    environment,
    memory,
    outcome,
    packages,
    processes,
    record,
    reservation,
    watch_summary,
)
from harness.adapter import Case
from harness.command_line import Request, as_typed, parse
from harness.guard import sweep
from harness.parent_death import signal_when_parent_dies
from harness.report import first_line
from harness.schema import SchemaError, record_schema
from harness.watcher import Watcher

_CANNOT_DO = 2
_CANNOT_WRITE = 3


class Interrupted(BaseException):
    """A signal asked this process to end."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@dataclass(frozen=True)
class Setup:
    """What is known before the ranks start."""

    request: Request
    framework: declaration.Framework
    facts: Dict[str, Any]
    case: Case
    schema: Dict[str, Any]  # of the record
    run: str  # unique id
    folder: str  # temporary, for the ranks
    deadline: float  # monotonic seconds
    command: List[str]


@contextmanager
def signals_raise() -> Iterator[None]:
    """Turn the signals that end a process into :class:`Interrupted`, so that cleaning up happens
    on the way out, and ignore them during it. Those ignored from the start stay ignored."""

    def leave(number: int, frame: Any) -> None:
        for other in numbers:
            signal.signal(other, signal.SIG_IGN)
        raise Interrupted(number)

    numbers = [
        number
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        if signal.getsignal(number) is not signal.SIG_IGN
    ]
    for number in numbers:
        signal.signal(number, leave)
    yield


@contextmanager
def temporary_folder(run: str, reserved: str) -> Iterator[str]:
    """The run's temporary folder and the guard that outlives this process. On the way out, no
    process of the run is left and the folder is gone."""
    try:
        folder = tempfile.mkdtemp(prefix="framebench-")
    except OSError as error:
        raise reservation.ReservationError(f"{error}; set TMPDIR to another folder") from error
    guard: Optional["subprocess.Popen[bytes]"] = None
    try:
        guard = processes.start_guard(run, folder, reserved)
        yield folder
    finally:
        sweep(run)
        shutil.rmtree(folder, ignore_errors=True)
        if guard is not None and guard.stdin is not None:
            guard.stdin.close()


def run_ranks(setup: Setup, common: Dict[str, str], cores: List[int]) -> record.Measured:
    """Start the ranks, wait for them, judge them."""
    request, case = setup.request, setup.case
    threads = request.cores_per_device or max(1, len(cores) // case.devices_per_node)
    spec = {
        "framework_folder": setup.framework.folder,
        "facts": setup.facts,
        "case": asdict(case),
        "accelerator": request.accelerator,
        "threads": threads,
        "seed": request.seed,
        "warmup_steps": request.warmup_steps,
        "warmup_limit": request.warmup_limit,
        "timed_steps": request.timed_steps,
        "parity": request.parity,
        "probe": request.probe,
        "split_steps": request.split_steps,
        "folder": setup.folder,
    }
    kills_before = environment.oom_kills()
    per_device = request.cores_per_device
    used = cores[: case.devices * per_device] if per_device else cores
    gpus = case.devices_per_node if request.accelerator == "cuda" else 0
    may = memory.allowed(request.memory_limit, request.spare_memory)
    held = memory.Memory(setup.run, os.getpid(), may, len(used), request.spare_memory)
    with Watcher(setup.run, used, common, gpus) as watcher:
        ranks = processes.start_ranks(
            spec, case.devices, cores, per_device, common, setup.run, request.log
        )
        processes.watch(ranks, setup.folder, setup.deadline, held)
    out_of_memory = environment.oom_kills() != kills_before
    host = socket.gethostname()
    outcomes = [
        outcome.rank_outcome(rank, setup.folder, host, out_of_memory, request.time_limit)
        for rank in ranks
    ]
    status, reason = outcome.most_telling(outcomes)
    fields = [judged.fields for judged in outcomes]
    if status == "ok":
        mismatch = outcome.disagreement(case, fields) or outcome.wrong_version(
            setup.framework.package, request.pins, fields[0]["framework_version"]
        )
        if mismatch:
            status, reason = "failed", mismatch
    seen = watch_summary.of(watcher, fields)
    return record.Measured(status, reason, fields, seen, held.fields())


def measure(setup: Setup, started: record.Started) -> Dict[str, Any]:
    """The record of this run, whatever happens to it except a signal."""
    request, case = setup.request, setup.case
    cores = cores_of.allowed()
    common = processes.common_environment(
        os.environ, request.way, request.accelerator, request.cores_per_device
    )
    common.update(request.variables)
    installed = packages.installed(packages.search_path(common, setup.folder))
    where = environment.capture(request.way, len(cores), installed, common)
    refused = declaration.unsupported(
        case, setup.framework, setup.facts, len(cores), request.cores_per_device
    )
    wrong = packages.wrong_environment(request.prefix, request.pins, installed)
    if refused:
        measured = record.Measured("unsupported", refused, [])
    elif wrong:
        measured = record.Measured("failed", wrong, [])
    else:
        try:
            measured = run_ranks(setup, common, cores)
        except Exception as error:
            traceback.print_exc()
            text = f"the launcher failed: {first_line(error)}"
            measured = record.Measured("failed", text, [])
    sweep(setup.run)
    version = installed.get(packages.normal(setup.framework.package), "")
    made = record.assemble(
        request, case, setup.facts["unit"], measured, where, setup.command, started, version
    )
    return record.checked(made, setup.schema)


def run(request: Request, command: List[str]) -> int:
    """Measure and write the record. Returns the exit status."""
    started = record.Started.now()
    try:
        framework = declaration.read_framework(request.framework)
        facts = declaration.read_model(request.model)
        case = declaration.case_of(request, framework, facts)
        schema = record_schema()
    except (declaration.DeclarationError, SchemaError) as error:
        print(error, file=sys.stderr)
        return _CANNOT_DO
    identity = uuid.uuid4().hex
    steps = (request.warmup_limit or request.warmup_steps) + request.timed_steps
    size = reservation.record_bytes(case.devices, steps)
    place = reservation.Reservation(request.output, identity, size)
    try:
        reservation.make_log(request.log)
        with temporary_folder(identity, place.path) as folder:
            deadline = started.monotonic + request.time_limit
            setup = Setup(
                request, framework, facts, case, schema, identity, folder, deadline, command
            )
            result = measure(setup, started)
            place.write(record.encode(result))
    finally:
        place.discard()
    print(record.summary(result, request.output))
    return 0


def main(arguments: Sequence[str]) -> int:
    """The exit status: 0 whenever a record was written, whatever it says; 2 for a wrong command
    line or an output that is already there; 3 where the output cannot be written; 128 + N after
    signal N, with no record."""
    if os.environ.get("FRAMEBENCH_DIE_WITH_PARENT") == "1":
        signal_when_parent_dies(signal.SIGTERM)
    request = parse(arguments)
    if os.path.lexists(request.output):
        print(f"already measured: {request.output}", file=sys.stderr)
        return _CANNOT_DO
    folder = os.path.dirname(os.path.realpath(__file__))
    try:
        with signals_raise():
            return run(request, as_typed(sys.executable, folder, arguments))
    except reservation.ReservationError as error:
        print(error, file=sys.stderr)
        return _CANNOT_WRITE
    except Interrupted as interrupted:
        print(f"interrupted by signal {interrupted.number}: no record", file=sys.stderr)
        return 128 + interrupted.number
