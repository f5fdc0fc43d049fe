"""Find and kill every process of a run, even when its launcher is gone.

As a program (``python -I -S guard.py RUN FOLDER FILE..``) it waits until the launcher's end of its
standard input is closed, which the kernel does however the launcher ends. Processes are found by
FRAMEBENCH_RUN in their environment, because compiler workers may have sessions of their own.
Children with another environment are found

- by the launcher among its descendants, because it adopts all orphans;
- by the guard, when the launcher is gone, by notes in the temporary folder: the session of a rank,
  and a working directory or open files in that folder, or a rank's log.

A process escapes only if the launcher itself is killed by SIGKILL, and the process has another
environment and session, none of these files open, and no parent. Standard library only, without
imports from the harness.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import time
from typing import Callable, Collection, Dict, Iterable, List, NamedTuple, Set, Tuple

RUN_VARIABLE = "FRAMEBENCH_RUN"
#: Folder of named shared memory.
SHARED = "/dev/shm"
#: Name prefixes of loaders' shared memory, by process: PaddlePaddle's, MXNet's.
_SEGMENTS = ("paddle_{}_", "mx_{:x}_")
_TRACKER = b"multiprocessing.resource_tracker"
#: Seconds.
_TRACKERS_MAY_TAKE = 2.0
_PR_SET_CHILD_SUBREAPER = 36
#: File in the temporary folder with the launcher's notes of its ranks, a line each.
_MARKS = "marks"
_SESSION, _FILE = "session", "file"
_HERE = os.path.realpath(__file__)

_adopts = False


class _Process(NamedTuple):
    """Process in /proc: ``state``, and ids of parent and session."""

    state: str
    parent: int
    session: int


def adopt_orphans() -> None:
    """Become the parent of all descendants whose own parent ends, and have :func:`sweep` end them.

    Only for a process that is a launcher and nothing else. Where ctypes is missing or refuses,
    descendants are found by their environment alone."""
    global _adopts
    with contextlib.suppress(ImportError, OSError, AttributeError):
        import ctypes

        _adopts = ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0


def adopts_orphans() -> bool:
    """Return whether this process becomes the parent of orphaned descendants."""
    return _adopts


def note(folder: str, session: int, output: int) -> None:
    """Note a rank's session and the file of its output, for the guard."""
    with open(os.path.join(folder, _MARKS), "a", encoding="utf-8") as file:
        file.write(f"{_SESSION} {session}\n{_FILE} {os.readlink(f'/proc/self/fd/{output}')}\n")


def _processes() -> Dict[int, _Process]:
    """Return all processes by id."""
    processes = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError, ValueError), open(f"/proc/{name}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
                processes[int(name)] = _Process(fields[0].decode(), int(fields[1]), int(fields[3]))
    return processes


def _descendants() -> List[int]:
    """Return descendants of this process in sessions of their own, without guards.

    Processes of the launcher itself are in its session."""
    known = _processes()
    own = os.getpid()
    family = {own}
    grown = True
    while grown:
        more = {number for number, process in known.items() if process.parent in family} - family
        family |= more
        grown = bool(more)
    session = os.getsid(0)
    others = [number for number in family if known[number].session != session and number != own]
    return [number for number in others if known[number].state != "Z" and not _guards(number)]


def _guards(process: int) -> bool:
    try:
        with open(f"/proc/{process}/cmdline", "rb") as file:
            return os.fsencode(_HERE) in file.read().split(b"\0")[:5]
    except OSError:
        return False


def _read_marks(folder: str) -> Tuple[Set[int], Set[str]]:
    """Return the noted sessions and files."""
    sessions, files = set(), set()
    with contextlib.suppress(OSError), open(os.path.join(folder, _MARKS), encoding="utf-8") as file:
        for line in file:
            kind, _, value = line.rstrip("\n").partition(" ")
            if kind == _SESSION and value.isdigit():
                sessions.add(int(value))
            elif kind == _FILE:
                files.add(value)
    return sessions, files


def _marked(folder: str, sessions: Collection[int], files: Collection[str]) -> List[int]:
    """Return processes in one of the ``sessions``, or with one of the ``files`` or the ``folder``
    open."""
    own = os.getpid()
    return [
        number
        for number, process in _processes().items()
        if number != own and process.state != "Z"
        if process.session in sessions or _has_open(number, folder, files)
    ]


def _has_open(process: int, folder: str, files: Collection[str]) -> bool:
    links = [f"/proc/{process}/cwd"]
    with contextlib.suppress(OSError):
        links += [f"/proc/{process}/fd/{name}" for name in os.listdir(f"/proc/{process}/fd")]
    for link in links:
        with contextlib.suppress(OSError):
            target = os.readlink(link)
            if target in files or target == folder or target.startswith(folder + "/"):
                return True
    return False


def processes_of(run: str) -> List[int]:
    """Return the ids of processes, without this one, whose environment holds the run's id."""
    variable = f"{RUN_VARIABLE}={run}".encode()
    numbers = []
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            with open(f"/proc/{name}/environ", "rb") as file:
                if variable in file.read().split(b"\0"):
                    numbers.append(int(name))
        except OSError:
            continue  # ended meanwhile, or another user's
    return numbers


def processes_in(groups: Collection[int]) -> List[int]:
    """Return the ids of running processes in these process groups."""
    numbers = []
    for name in os.listdir("/proc"):
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                state, _, group = file.read().rpartition(b")")[2].split()[:3]
        except (OSError, ValueError):
            continue  # no process, or ended meanwhile
        if name.isdigit() and state != b"Z" and int(group) in groups:
            numbers.append(int(name))
    return numbers


def sweep(run: str, seconds: float = 10.0) -> List[int]:
    """Kill every process of the run, by environment and, in a launcher that adopts orphans, by
    descent; see :func:`end`."""

    def find() -> List[int]:
        return list({*processes_of(run), *(_descendants() if _adopts else ())})

    return end(find, seconds)


def end(find: Callable[[], List[int]], seconds: float) -> List[int]:
    """Kill every process that ``find`` returns, until none is left, because one may have forked
    meanwhile.

    Python's trackers of shared memory come last: each removes what its processes left, and ends by
    itself. Other shared memory of killed processes is removed. Returns the processes that are left
    after ``seconds``."""
    late, patience = (time.monotonic() + span for span in (seconds, _TRACKERS_MAY_TAKE))
    killed: Set[int] = set()
    left = find()
    while left and time.monotonic() < late:
        at_work = [process for process in left if not is_tracker(process)]
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


def is_tracker(process: int) -> bool:
    """Return whether the process is a tracker of :mod:`multiprocessing`, which removes shared
    memory of dead processes, or has no command line yet and may become one."""
    try:
        with open(f"/proc/{process}/cmdline", "rb") as file:
            command = file.read()
        return not command or _TRACKER in command
    except OSError:
        return False


def remove_shared(processes: Iterable[int]) -> None:
    """Remove shared-memory files that bear the id of one of these ``processes``, as loaders name
    them.

    The processes must have ended, or be about to."""
    beginnings = tuple(name.format(process) for process in processes for name in _SEGMENTS)
    names: List[str] = []
    with contextlib.suppress(OSError):
        names = os.listdir(SHARED)
    for name in names:
        path = os.path.join(SHARED, name)
        with contextlib.suppress(OSError):  # another one removes it, too
            if name.startswith(beginnings) and os.stat(path).st_uid == os.getuid():
                os.unlink(path)


def main(run: str, folder: str, *reserved: str) -> None:
    """Wait for the launcher's end, then clean up what it left.

    Kills processes of ``run``, and removes its temporary ``folder`` and the ``reserved`` files. A
    launcher that ended properly has done so already."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    while sys.stdin.buffer.read(1):
        pass
    sessions, files = _read_marks(folder)
    folder = os.path.realpath(folder)
    end(lambda: list({*processes_of(run), *_marked(folder, sessions, files)}), 10.0)
    shutil.rmtree(folder, ignore_errors=True)
    for file in reserved:
        shutil.rmtree(file, ignore_errors=True)
        with contextlib.suppress(OSError):
            os.unlink(file)


if __name__ == "__main__":
    main(*sys.argv[1:])
