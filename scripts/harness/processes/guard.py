"""No process stays behind: find and kill every process of a run, also when its launcher is gone.

Started as a program of its own (``python -I -S guard.py RUN FOLDER FILE``) it waits until the
launcher's end of its standard input is closed, which the kernel does however the launcher ends.
Processes are found by FRAMEBENCH_RUN in their environment, because compiler workers may have made
sessions of their own. Standard library only and no import from the harness.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import time
from typing import Callable, Collection, Iterable, List, Set

RUN_VARIABLE = "FRAMEBENCH_RUN"
#: Where shared memory has names.
SHARED = "/dev/shm"
#: How those of loaders' batches begin, by the process that made them: PaddlePaddle's, MXNet's.
_SEGMENTS = ("paddle_{}_", "mx_{:x}_")
_TRACKER = b"multiprocessing.resource_tracker"
#: Seconds.
_TRACKERS_MAY_TAKE = 2.0


def processes_of(run: str) -> List[int]:
    """Process ids, without this one, whose environment holds the run's id."""
    wanted = f"{RUN_VARIABLE}={run}".encode()
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            with open(f"/proc/{name}/environ", "rb") as file:
                if wanted in file.read().split(b"\0"):
                    found.append(int(name))
        except OSError:
            continue  # ended meanwhile, or another user's
    return found


def processes_in(groups: Collection[int]) -> List[int]:
    """Process ids of those in one of these process groups that have not ended."""
    found = []
    for name in os.listdir("/proc"):
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                state, _, group = file.read().rpartition(b")")[2].split()[:3]
        except (OSError, ValueError):
            continue  # no process, or ended meanwhile
        if name.isdigit() and state != b"Z" and int(group) in groups:
            found.append(int(name))
    return found


def sweep(run: str, seconds: float = 10.0) -> List[int]:
    """Kill every process of the run; see :func:`end`."""
    return end(lambda: processes_of(run), seconds)


def end(find: Callable[[], List[int]], seconds: float) -> List[int]:
    """Kill every process that ``find`` finds; again until none is left, because one may have
    forked meanwhile. Python's trackers of shared memory come last: each removes what its processes
    have left, and ends by itself. What else those that were killed have left there goes, too.
    Returns those still there after ``seconds``."""
    late, patience = (time.monotonic() + span for span in (seconds, _TRACKERS_MAY_TAKE))
    killed: Set[int] = set()
    left = find()
    while left and time.monotonic() < late:
        at_work = [process for process in left if not _tracks(process)]
        killed.update(at_work)
        if not at_work and time.monotonic() > patience:
            at_work = left
        for process in at_work:
            with contextlib.suppress(OSError):
                os.kill(process, signal.SIGKILL)
        time.sleep(0.01)
        left = find()
    remove_shared(killed)
    return left


def _tracks(process: int) -> bool:
    """Whether it is a tracker of :mod:`multiprocessing`, which removes the shared memory of a
    process that ended without."""
    try:
        with open(f"/proc/{process}/cmdline", "rb") as file:
            return _TRACKER in file.read()
    except OSError:
        return False


def remove_shared(processes: Iterable[int]) -> None:
    """Remove the files in shared memory that bear the id of one of these ``processes``, as loaders
    name those that hold a batch. Only those that have ended, or are to end, may be named."""
    beginnings = tuple(name.format(process) for process in processes for name in _SEGMENTS)
    names: List[str] = []
    with contextlib.suppress(OSError):
        names = os.listdir(SHARED)
    for name in names:
        path = os.path.join(SHARED, name)
        with contextlib.suppress(OSError):  # another one removes it, too
            if name.startswith(beginnings) and os.stat(path).st_uid == os.getuid():
                os.unlink(path)


def main(run: str, folder: str, file: str) -> None:
    """Wait for the launcher's end; then kill what is left of ``run`` and remove its temporary
    ``folder`` and the reserved ``file``, which a launcher that ended properly has done already."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    while sys.stdin.buffer.read(1):
        pass
    sweep(run)
    shutil.rmtree(folder, ignore_errors=True)
    with contextlib.suppress(OSError):
        os.unlink(file)


if __name__ == "__main__":
    main(*sys.argv[1:])
