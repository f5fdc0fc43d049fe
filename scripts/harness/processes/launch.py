"""Start, watch and end the rank processes of a run."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Set, Union

from core import programs
from core.gpus import NOT_MET

from harness import report, variables
from harness.processes.cleanup import remove_shared
from harness.processes.descendants import Descendants
from harness.processes.fork_server import START_RANK, ForkedRank, ForkServer
from harness.processes.memory import HeldMemory

#: Seconds that other ranks may continue after one has failed, to report their errors.
_GRACE_SECONDS = 5.0
#: Seconds for ranks to end after SIGTERM, and after SIGKILL.
_TERM_SECONDS, _KILL_SECONDS = 2.0, 3.0
#: Most bytes that a rank may print.
LARGEST_LOG = 64 * 2**20


class Share(NamedTuple):
    """A node's share of a run: its ranks from ``first_rank`` on; ``addresses``: addresses of all
    ranks.

    ``addresses``: ``host:port`` in rank order."""

    first_rank: int
    addresses: List[str]


class Stop(NamedTuple):
    """Why the launcher ends ranks: status and reason of the run."""

    status: str
    reason: str


#: Phases before ranks meet; phases in which they meet, and the seconds that these may take once all
#: ranks have reached them, on one node and on several.
_BEFORE_MEETING, _MEETING = (None, "import"), ("start", "pre-flight check")
MEETING_SECONDS, MEETING_OVER_NODES = 120.0, 300.0
_NCCL = (
    ". NCCL's warnings are in the log; NCCL_P2P_DISABLE=1 (ACS or an IOMMU between GPUs), a larger "
    "/dev/shm or NCCL_SOCKET_IFNAME may help"
)
TIME_LIMIT, OTHER_RANK = Stop("timeout", "time limit"), Stop("failed", "other rank")


@dataclass
class RankProcess:
    """Started rank.

    ``stopped``: why the launcher ended it, None if it did not. ``stopped_at``, ``ended``: monotonic
    seconds."""

    rank: int
    process: "Union[subprocess.Popen[bytes], ForkedRank]"
    log: str
    stopped: Optional[Stop] = None
    stopped_at: Optional[float] = None
    ended: Optional[float] = None


def log_path(log: str, rank: int) -> str:
    """Return the log of a rank: ``NAME.log`` of rank 0, else ``NAME.rank1.log`` and so on."""
    return log if rank == 0 else log_with_name(log, f"rank{rank}")


def log_with_name(log: str, name: str) -> str:
    """Return ``STEM.NAME.log`` for the log ``STEM.log``."""
    stem, suffix = os.path.splitext(log)
    return f"{stem}.{name}{suffix}"


def free_addresses(count: int, host: str = "127.0.0.1") -> List[str]:
    """Return ``host:port`` of ``count`` different free ports of this machine; ``host``: one of its
    addresses."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for opened in sockets:
            opened.bind((host, 0))
        return [f"{host}:{opened.getsockname()[1]}" for opened in sockets]


def common_environment(
    environment: Mapping[str, str],
    keeps: Sequence[str],
    accelerator: str,
    cores_per_device: Optional[int],
) -> Dict[str, str]:
    """Return the variables that all ranks of a run share, from the launcher's own. ``keeps``: see
    :func:`variables.passed_on`."""
    common = variables.passed_on(environment, keeps)
    common["PYTHONUNBUFFERED"] = "1"  # the log of a killed rank is complete
    common["PYTHONUTF8"] = "1"
    if not set(keeps).intersection(variables.BROUGHT):
        common["PYTHONNOUSERSITE"] = "1"
    if cores_per_device is not None:
        common.update(dict.fromkeys(variables.THREAD_VARIABLES, str(cores_per_device)))
    if accelerator == "cpu":
        common["CUDA_VISIBLE_DEVICES"] = ""
    else:
        # NVML's order instead of CUDA's (by speed), so that the watched GPUs are those used.
        common.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
        common.setdefault("NCCL_DEBUG", "WARN")
    return common


def rank_variables(
    rank: int, local_rank: int, addresses: Sequence[str], cores: Sequence[int]
) -> Dict[str, str]:
    """Return the variables that identify a rank."""
    host, _, port = addresses[0].rpartition(":")
    return {
        "RANK": str(rank),
        "LOCAL_RANK": str(local_rank),
        "WORLD_SIZE": str(len(addresses)),
        "MASTER_ADDR": host,
        "MASTER_PORT": port,
        "FRAMEBENCH_ADDRESSES": ",".join(addresses),
        "FRAMEBENCH_CORES": ",".join(str(core) for core in cores),
    }


def start_ranks(
    started: List[RankProcess],
    spec: Dict[str, Any],
    share: Share,
    cores: Sequence[Sequence[int]],
    common: Mapping[str, str],
    files: Sequence[int],
    forks: Optional[ForkServer],
) -> None:
    """Start the ranks of ``spec`` that are this node's ``share``, and add each to ``started``.

    ``cores``: cores of each rank, empty where it is not pinned. ``files``: inherited by the ranks.
    ``forks``: starts a rank on a CPU; the kernel ends it with this process, so it need not inherit
    files. Raises OSError."""
    folder, options = spec["folder"], spec["workload"]["options"]
    spec_path = os.path.join(folder, "spec.json")
    with open(spec_path, "w", encoding="utf-8") as file:
        json.dump(spec, file)
    # Compilers cache code in the temporary folder, under names that anybody can guess and that
    # other runs would use. So each run has its own.
    temporary = os.path.join(folder, "temporary")
    os.mkdir(temporary, 0o700)
    for local_rank, pinned in enumerate(cores):
        rank = share.first_rank + local_rank
        identity = rank_variables(rank, local_rank, share.addresses, pinned)
        own = {**common, "TMPDIR": temporary, **identity}
        # A separate folder, so that nothing of the user's is imported or overwritten.
        here = os.path.join(folder, f"rank{rank}")
        os.mkdir(here)
        path = log_path(options["log"], rank)
        with open(path, "wb") as output:
            process: Union[subprocess.Popen[bytes], ForkedRank, None] = None
            if forks and options["accelerator"] == "cpu":
                framework = options["framework"]
                process = forks.start(spec_path, framework, common, own, here, output.fileno())
            process = process or subprocess.Popen(
                [sys.executable, START_RANK, spec_path],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=here,
                env=own,
                start_new_session=True,
                pass_fds=files,
            )
        started.append(RankProcess(rank, process, path))


@contextlib.contextmanager
def child_events() -> Iterator[None]:
    """Keep the ends of children for :func:`await_child`, so that the launcher sleeps while ranks
    are timed."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def await_child(seconds: float) -> None:
    """Wait for the end of a child, at most for so long, and no longer than a second: another thread
    may have taken the signal."""
    signal.sigtimedwait([signal.SIGCHLD], min(max(0.0, seconds), 1.0))


def end(apart: Optional[int] = None, at_once: bool = False) -> None:
    """End all processes of a run on this node. ``apart``: see :class:`Descendants`.

    Processes first get SIGTERM (Python's trackers of shared memory survive it and remove the
    memory), then, or ``at_once``, SIGKILL."""
    descendants = Descendants(os.getpid(), apart)
    now = time.monotonic()
    patience, late = now if at_once else now + _TERM_SECONDS, now + _TERM_SECONDS + _KILL_SECONDS
    ended: Set[int] = set()
    left = _running(descendants)
    while left and time.monotonic() < late:
        impatient = time.monotonic() >= patience
        for process in left if impatient else left - ended:
            with contextlib.suppress(OSError):
                os.kill(process, signal.SIGKILL if impatient else signal.SIGTERM)
        ended |= left
        time.sleep(0.01)
        left = _running(descendants)
    remove_shared(ended)


def _running(descendants: Descendants) -> Set[int]:
    return {process for process, state in descendants.find().items() if state.is_running}


def _stop(ranks: Sequence[RankProcess], why: Stop, apart: Optional[int]) -> None:
    """End the ranks that still run."""
    for rank in ranks:
        if rank.ended is None and rank.stopped is None:
            rank.stopped, rank.stopped_at = why, time.monotonic()
    end(apart, at_once=why.status == "oom")


def _too_long(ranks: Sequence[RankProcess]) -> Optional[Stop]:
    """Return why the run must end where a rank has printed too much."""
    for rank in ranks:
        if os.path.getsize(rank.log) > LARGEST_LOG:
            reason = f"rank {rank.rank} printed more than {LARGEST_LOG >> 20} MiB: {rank.log}"
            return Stop("failed", reason)
    return None


class Meeting:
    """Watch over the first communication of ranks, which may wait for each other without end.

    ``seconds``: most seconds of the meeting; None for ranks that do not meet."""

    def __init__(self, folder: str, seconds: Optional[float], accelerator: str) -> None:
        self._folder, self._seconds = folder, seconds
        self._remedy = _NCCL if accelerator == "cuda" else ""

    def reason_to_end(self, ranks: Sequence[RankProcess]) -> Optional[Stop]:
        """Return why the run must end, or None. Reports are read only until the ranks have met."""
        if self._seconds is None:
            return None
        phases = [report.read(self._folder, rank.rank)[0] for rank in ranks]
        if any(phase in _BEFORE_MEETING for phase in phases):
            return None
        if any(phase not in _MEETING for phase in phases):
            self._seconds = None
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
    memory: HeldMemory,
    meeting: Meeting,
    apart: Optional[int] = None,
    asked: Sequence[int] = (),
) -> None:
    """Return when all ranks of a run have ended. ``apart``: see :class:`Descendants`.

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
