"""Watch the ranks of a run to their end, and judge how it ended: the rank that shows the cause best
decides status and reason."""

from __future__ import annotations

import contextlib
import math
import os
import re
import signal
import subprocess
import time
from typing import Any, Dict, Iterator, NamedTuple, Optional, Sequence, Set, Tuple

from core import bounded, programs
from core.case import Case
from core.gpus import NOT_MET
from core.text import shorten

from harness import report
from harness.processes import descendants
from harness.processes.launch import RankProcess, Stop

#: Seconds that other ranks may continue after one has failed, to report their errors.
_GRACE_SECONDS = 5.0
#: Most bytes that a rank may print.
LARGEST_LOG = 64 * 2**20
#: Phases before ranks meet; phases in which they meet, and the seconds that these may take once all
#: ranks have reached them, on one node and on several.
_BEFORE_MEETING, _MEETING = (None, "import"), ("start", "pre-flight check")
MEETING_SECONDS, MEETING_OVER_NODES = 120.0, 300.0
_NCCL = (
    ". NCCL's warnings are in the log; NCCL_P2P_DISABLE=1 (ACS or an IOMMU between GPUs), a larger "
    "/dev/shm or NCCL_SOCKET_IFNAME may help"
)
TIME_LIMIT, OTHER_RANK = Stop("timeout", "time limit"), Stop("failed", "other rank")
# Outcomes, most telling first. An error caused by the end of another rank comes after other errors,
# because it is never the cause.
_OOM, _UNSUPPORTED, _OWN_ERROR, _DIED, _CONSEQUENCE, _TIME_LIMIT, _OK = range(7)

_OTHER_GONE = re.compile(
    r"connection (was )?(reset|closed|refused|aborted)|broken pipe|socket closed|peer|EOF|"
    r"timed out|timeout|unavailable|aborted",
    re.IGNORECASE,
)
_NO_MEMORY = re.compile(
    r"bad_alloc|out of memory|allocate failed|failed to allocate|cannot allocate memory",
    re.IGNORECASE,
)


@contextlib.contextmanager
def child_events() -> Iterator[None]:
    """Block SIGCHLD for :func:`await_child`, so that the launcher sleeps while ranks are timed."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def await_child(seconds: float) -> None:
    """Wait for the end of a child for ``seconds``, but no longer than one second, because another
    thread may have taken the signal."""
    signal.sigtimedwait([signal.SIGCHLD], min(max(0.0, seconds), 1.0))


def _stop(ranks: Sequence[RankProcess], why: Stop, apart: Optional[int]) -> None:
    """End the ranks that still run."""
    for rank in ranks:
        if rank.ended is None and rank.stopped is None:
            rank.stopped, rank.stopped_at = why, time.monotonic()
    descendants.end(apart, at_once=why.status == "oom")


def _too_long(ranks: Sequence[RankProcess]) -> Optional[Stop]:
    """Return why the run must end if a rank has printed too much, else None."""
    for rank in ranks:
        if os.path.getsize(rank.log) > LARGEST_LOG:
            reason = f"rank {rank.rank} printed more than {LARGEST_LOG >> 20} MiB: {rank.log}"
            return Stop("failed", reason)
    return None


class Meeting:
    """Watch over the first communication of ranks, which may wait for each other without end."""

    def __init__(self, folder: str, case: Case, accelerator: str) -> None:
        self._folder = folder
        self._seconds = MEETING_SECONDS if case.nodes == 1 else MEETING_OVER_NODES
        self._is_over = case.devices == 1
        self._remedy = _NCCL if accelerator == "cuda" else ""

    def reason_to_end(self, ranks: Sequence[RankProcess]) -> Optional[Stop]:
        """Return why the run must end, or None. Reports are read only until the ranks have met."""
        if self._is_over:
            return None
        phases = [report.read(self._folder, rank.rank)[0] for rank in ranks]
        if any(phase in _BEFORE_MEETING for phase in phases):
            return None
        if any(phase not in _MEETING for phase in phases):
            self._is_over = True
            return None
        paths = [report.path_of(self._folder, rank.rank) for rank in ranks]
        waited = time.time() - max(map(os.path.getmtime, paths))
        if waited < self._seconds:
            return None
        return Stop("failed", f"{NOT_MET} {self._seconds:g} s{self._remedy}")


def watch(
    ranks: Sequence[RankProcess],
    folder: str,
    deadline: float,
    memory: descendants.HeldMemory,
    meeting: Meeting,
    apart: Optional[int] = None,
    asked: Sequence[int] = (),
) -> None:
    """Return when all ranks of a run have ended. ``apart``: see :class:`descendants.Descendants`.

    Ranks are ended at ``deadline`` (monotonic seconds), when they exceed their ``memory``, print
    too much or wait too long for their ``meeting``, some seconds after another rank failed, and
    once signals have ``asked`` this process to end."""
    judged: Set[int] = set()
    grace_end = float("inf")
    with child_events():
        while True:
            now = time.monotonic()
            for rank in ranks:
                if rank.ended is None and rank.process.poll() is not None:
                    rank.ended = now
                if rank.ended is not None and rank.rank not in judged:
                    judged.add(rank.rank)
                    _, final, fields = report.read(folder, rank.rank)
                    if not (final and fields.get("status") == "ok"):
                        grace_end = min(grace_end, now + _GRACE_SECONDS)
            if len(judged) == len(ranks):
                programs.await_own_signal(
                    rank.process.returncode for rank in ranks if not rank.stopped
                )
                return
            if now >= deadline:
                _stop(ranks, TIME_LIMIT, apart)
            elif asked or now >= grace_end:
                _stop(ranks, OTHER_RANK, apart)
            elif now >= memory.next_look:
                too_much = memory.reason_to_end()
                stop = Stop("oom", too_much) if too_much else _too_long(ranks)
                stop = stop or meeting.reason_to_end(ranks)
                if stop:
                    _stop(ranks, stop, apart)
            stopped = any(rank.stopped for rank in ranks)
            await_child(1.0 if stopped else min(deadline, grace_end, memory.next_look) - now)


def wait_for(process: "subprocess.Popen[bytes]", end: float) -> None:
    """Return when a child has ended, or at ``end``, in monotonic seconds."""
    with child_events():
        while process.poll() is None and time.monotonic() < end:
            await_child(end - time.monotonic())


class RankOutcome(NamedTuple):
    """Outcome of a rank: its entry in the record, and a weight; the smallest decides for the run.

    ``ended``: when the rank ended or was stopped, in seconds of a clock that all ranks share."""

    weight: int
    ended: float
    fields: Dict[str, Any]


def last_line(path: str) -> str:
    """Return the last non-empty line of a log; empty without one."""
    lines = _tail(path, 4096).split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


def _tail(path: str, size: int) -> str:
    """Return the last ``size`` bytes of a log as text; empty without a log."""
    try:
        return bounded.read_end(path, size)
    except OSError:
        return ""


def _without_result(
    rank: RankProcess, phase: Optional[str], out_of_memory: bool, limit: float
) -> Tuple[int, str, str]:
    where = phase or "start"
    if rank.stopped == TIME_LIMIT:
        reason = f"the time limit of {limit:g} s was reached during: {where}"
        return _TIME_LIMIT, "timeout", reason
    if rank.stopped is not None and rank.stopped != OTHER_RANK:
        weight = _OOM if rank.stopped.status == "oom" else _OWN_ERROR
        return weight, rank.stopped.status, f"{rank.stopped.reason}, during: {where}"
    if rank.stopped is not None:
        return _CONSEQUENCE, "failed", f"stopped during: {where}, because another failed"
    code = rank.process.returncode
    if code == -signal.SIGKILL and out_of_memory:
        return _OOM, "oom", f"rank {rank.rank} was killed by the kernel: out of host memory"
    if code == -signal.SIGABRT and _NO_MEMORY.search(_tail(rank.log, 2**16)):
        # The allocators of some frameworks end the process, which cannot be caught.
        return _OOM, "oom", f"rank {rank.rank} aborted: out of memory during: {where}"
    if code < 0:
        reason = f"rank {rank.rank} was killed by signal {-code} ({_name(-code)})"
    else:
        reason = f"rank {rank.rank} exited with status {code} and left no result"
    reason += f" during: {where}"
    last = last_line(rank.log)
    return _DIED, "failed", shorten(reason + ("; its last words: " + last if last else ""))


def _name(number: int) -> str:
    """Return the name of a signal, such as SIGKILL; real-time signals have none."""
    return signal.Signals(number).name if number in {*signal.Signals} else "real-time"


def rank_outcome(
    rank: RankProcess, folder: str, host: str, out_of_memory: bool, limit: float
) -> RankOutcome:
    """Judge a rank that has ended.

    ``out_of_memory``: the kernel killed processes for lack of memory during the run. ``limit``:
    time limit in seconds."""
    phase, final, fields = report.read(folder, rank.rank)
    ended = rank.stopped_at or rank.ended or 0.0
    if not final:
        weight, status, reason = _without_result(rank, phase, out_of_memory, limit)
        base = fields or {"rank": rank.rank, "host": host}
        return RankOutcome(weight, ended, dict(base, status=status, reason=reason))
    if fields["status"] == "failed":
        weight = _CONSEQUENCE if _OTHER_GONE.search(fields["reason"]) else _OWN_ERROR
    else:
        weight = {"ok": _OK, "oom": _OOM, "unsupported": _UNSUPPORTED}[fields["status"]]
    return RankOutcome(weight, ended, fields)


def lost(rank: int, node: str, why: str) -> RankOutcome:
    """Return the outcome of a rank whose node is gone."""
    fields = {"rank": rank, "host": node, "status": "failed", "reason": shorten(why)}
    return RankOutcome(_DIED, 0.0, fields)


def most_telling(outcomes: Sequence[RankOutcome]) -> Tuple[str, str]:
    """Return status and reason of a run, taken from the most telling rank; among equals, from the
    rank that ended first.

    Once a rank was stopped at the time limit, later failures of other ranks are consequences."""
    limit = min((each.ended for each in outcomes if each.weight == _TIME_LIMIT), default=math.inf)
    causes = [each for each in outcomes if each.fields["status"] != "failed" or each.ended < limit]
    telling = min(causes, key=lambda outcome: (outcome.weight, outcome.ended))
    status, reason = telling.fields["status"], telling.fields["reason"]
    rank = f"rank {telling.fields['rank']}"
    if len({judged.fields["host"] for judged in outcomes}) > 1:
        reason = reason.replace(rank, f"{rank} on node {telling.fields['host']}", 1)
        rank += f" on node {telling.fields['host']}"
    if status != "ok" and len(outcomes) > 1 and not reason.startswith(rank):
        reason = f"{rank}: {reason}"
    return status, reason
