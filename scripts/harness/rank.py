"""Run one rank: start the framework, if the kind needs one, measure, and report."""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import json
import multiprocessing
import os
import signal
import sys
import tempfile
import time
from dataclasses import replace
from typing import Any, Dict, Mapping, Optional

from core import bounded

from harness import kinds
from harness.adapter import Adapter, Collectives, RankContext, Unsupported, require
from harness.adapter.base import load_adapter, load_environment
from harness.adapter.own_models import check_own_files
from harness.hardware import parse_list
from harness.kind import Context, Kind, Workload
from harness.measuring.checks import check_all_reduce, check_preloaded, describe
from harness.processes.descendants import remove_shared, signal_when_parent_dies
from harness.report import Report

_SECONDS_TO_LEAVE = 10
#: Seconds between two checks at a barrier: short compared with a step, but no load for the waiting
#: core.
_BARRIER_SECONDS = 0.001


def rank_context_from(
    environment: Mapping[str, str], workload: Workload, threads: int
) -> RankContext:
    """Return the rank context. Raises KeyError for a missing variable."""
    return RankContext(
        rank=int(environment["RANK"]),
        local_rank=int(environment["LOCAL_RANK"]),
        addresses=environment["FRAMEBENCH_ADDRESSES"].split(","),
        accelerator=workload.options.accelerator,
        threads=threads,
        seed=workload.options.seed,
    )


def independent_context(rank_context: RankContext) -> RankContext:
    """Return the context of an independent rank on the same device.

    The environment changes too, because some frameworks look there for other ranks."""
    address = rank_context.addresses[rank_context.rank]
    host, _, port = address.rpartition(":")
    os.environ.update(
        RANK="0", WORLD_SIZE="1", MASTER_ADDR=host, MASTER_PORT=port, FRAMEBENCH_ADDRESSES=address
    )
    return replace(rank_context, rank=0, addresses=[address])


class Barrier:
    """Barrier of ``ranks`` processes by empty files in their common ``folder``.

    Each process leaves a file and waits until all files exist. The launcher ends ranks that wait
    for a rank that never comes."""

    def __init__(self, folder: str, rank: int, ranks: int) -> None:
        self._folder, self._rank, self._ranks = folder, rank, ranks
        self._passed = 0

    def __call__(self) -> None:
        """Return when all ranks have called the barrier as often as this rank. Raises OSError."""
        self._passed += 1
        prefix = f"barrier{self._passed}-"
        with open(os.path.join(self._folder, f"{prefix}{self._rank}"), "x", encoding="utf-8"):
            pass
        while sum(name.startswith(prefix) for name in os.listdir(self._folder)) < self._ranks:
            time.sleep(_BARRIER_SECONDS)


def load_framework(kind: Kind, folder: str, context: Context, rank_context: RankContext) -> Context:
    """Return the context with the adapter in ``folder``, or unchanged where the kind needs no
    adapter. Raises Unsupported where the kind or several ranks need more capabilities, and what
    importing the adapter raises."""
    if rank_context.accelerator == "cpu" and kind.unsupported_on_host:
        raise Unsupported(kind.unsupported_on_host)
    if kind.needs is None:
        return context
    given = context.workload.case, context.workload.model_config, rank_context
    adapter = context.phase("import", lambda: load_adapter(folder, *given))
    require(adapter, kind.needs, *([Collectives] if rank_context.world_size > 1 else []))
    return replace(context, adapter=adapter)


def start_framework(context: Context) -> None:
    """Start the framework and, on several ranks, verify their collectives. Raises the adapter's
    errors, and Mismatch for a wrong all-reduce."""
    adapter, fields = context.adapter, context.fields
    context.phase("start", adapter.start, "framework")
    fields["framework_version"] = adapter.version()
    fields["device"] = adapter.device()
    if adapter.rank_context.world_size > 1:
        fields["preflight"] = context.phase(
            "pre-flight check", lambda: check_all_reduce(adapter), "preflight"
        )


def main(spec_path: str) -> int:
    """Run the rank that the environment describes.

    Results go to the folder named by the spec; the exit status only says whether they are good."""
    # Request the signal before the spec is opened: a launcher that ended earlier has removed the
    # spec, and one that ends later ends this rank.
    signal_when_parent_dies(signal.SIGKILL)
    # The kernel kills this process and its children first when memory runs out.
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "wb") as score:
        score.write(b"1000")
    faulthandler.enable()
    spec = bounded.read_json(spec_path)
    begin = time.perf_counter()
    workload = Workload.from_json(spec["workload"])
    options = workload.options
    rank_context = rank_context_from(os.environ, workload, spec["threads"])
    report = Report(spec["folder"], rank_context.rank, spec["node"])
    adapter: Optional[Adapter] = None
    try:
        cores = parse_list(os.environ.get("FRAMEBENCH_CORES", ""))
        if cores:
            os.sched_setaffinity(0, cores)
        check_preloaded(options.variables.get("LD_PRELOAD", ""))
        report.enter("start")
        kind = kinds.load(options.kind, options.kinds)
        context = Context(workload, rank_context, None, cores, report)
        of_adapter = rank_context
        if kind.independent_ranks:
            barrier = Barrier(spec["folder"], rank_context.rank, workload.case.devices_per_node)
            context = replace(context, barrier=barrier)
            of_adapter = independent_context(rank_context)
        context = load_framework(kind, options.framework, context, of_adapter)
        adapter = context.adapter
        if adapter is not None:
            start_framework(context)
        kind.measure(context)
        if "own" in workload.model_config:
            check_own_files(workload.model_config["own"])
    # also SystemExit: a framework must not end a rank without a report
    except BaseException as error:
        report.fail(error=error, **describe(error, adapter))
        print(report.fields["traceback"], file=sys.stderr)
        # Do not wait for threads that wait for other ranks: skip the interpreter's own cleanup.
        remove_shared(process.pid for process in multiprocessing.active_children() if process.pid)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(1)
    gc.unfreeze()
    kind.afterwards(context, time.perf_counter() - begin)
    report.succeed()
    # The result is saved; the kernel ends a framework that hangs while it leaves.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(_SECONDS_TO_LEAVE)
    if adapter is not None:
        adapter.stop()
    return 0


def serve() -> int:
    """Import a framework, then fork a rank for each request on standard input.

    Returns the exit status of the rank in each fork, and 0 at the end of the input."""
    signal_when_parent_dies(signal.SIGKILL)
    answers = os.dup(1)
    os.dup2(2, 1)  # frameworks print during import, but standard output is for answers
    is_loaded = False
    for line in iter(sys.stdin.readline, ""):
        request = json.loads(line)
        if not is_loaded:
            load(request)
            is_loaded = True
        between = os.fork()
        if between == 0:
            here = os.getpid()
            if os.fork():
                os._exit(0)
            return _main_of_fork(request, here, answers)
        os.waitpid(between, 0)
    return 0


def load(request: Dict[str, Any]) -> None:
    """Import the framework of a request, unless its import starts threads, which forks do not have.
    A rank that cannot import it says why."""
    spec = bounded.read_json(request["spec"])
    os.environ.update(request["variables"])
    with contextlib.suppress(Exception):
        workload = Workload.from_json(spec["workload"])
        rank_context = rank_context_from(os.environ, workload, spec["threads"])
        folder = workload.options.framework
        if getattr(load_environment(folder), "CAN_BE_FORKED", True):
            load_adapter(folder, workload.case, workload.model_config, rank_context)


def _main_of_fork(request: Dict[str, Any], parent: int, answers: int) -> int:
    """Become the rank of a request, and a child of the launcher, once ``parent`` has ended; write
    the own process id to ``answers``."""
    os.setsid()
    while os.getppid() == parent:
        time.sleep(0.001)
    output = os.open(request["output"], os.O_WRONLY)
    os.write(answers, f"{os.getpid()}\n".encode())
    os.close(answers)
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(output)
    os.environ.clear()
    os.environ.update(request["variables"])
    os.chdir(request["folder"])
    tempfile.tempdir = None  # imported modules may have cached the temporary folder
    return main(request["spec"])
