"""Exclusive devices for a run, where several runs of a user share a machine.

Each GPU and each physical core has a lock that all these runs know: a file in a folder that only
this user can write. A run locks the files of its devices (:manpage:`flock(2)`) and leaves them open
to its ranks and its guard. The kernel frees them when the last of these has ended, however the
launcher did.

1. Wait for one's turn, which is a lock like the others: only its holder takes devices. So no two
   runs deadlock, and a run that needs many devices is not overtaken by those that need few.
2. Take the first devices whose locks are all free. Where they are not enough, give them back and
   try again later.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import time
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from harness.devices.devices import Device

_TURN = "turn"

#: Bounds of the seconds between two attempts, a tenth of the time waited so far.
_SHORTEST_SECONDS, _LONGEST_SECONDS = 0.02, 1.0
_PART = 0.1


class Lease(NamedTuple):
    """Devices of a run, ``total`` of the machine, and the open ``files`` that hold them.

    ``waited``: seconds. ``refused``: status and reason where the devices were not obtained."""

    devices: List[Device]
    total: int
    files: List[int]
    waited: float
    refused: Optional[Tuple[str, str]] = None

    @property
    def places(self) -> List[List[int]]:
        """Cores of each rank; all empty where ranks are not pinned."""
        return [device.cores for device in self.devices]

    @property
    def cores(self) -> List[int]:
        """Cores of all ranks."""
        return [core for place in self.places for core in place]

    def fields(self) -> Dict[str, Any]:
        """Return the entry of the record."""
        names = [device.name for device in self.devices]
        return {"devices": names, "of": self.total, "waited_seconds": self.waited}


class Unsafe(Exception):
    """Raised where others can write the locks; the message has the reason."""


@contextlib.contextmanager
def leased(locks: str, needed: int, available: Sequence[Device], seconds: float) -> Iterator[Lease]:
    """Yield ``needed`` of the ``available`` devices.

    They are held until the context ends and the last process has ended that inherited the
    ``files``. ``seconds``: longest wait. ``locks``: folder of the locks, made where it is missing;
    runs with the same folder never share a device."""
    if needed > len(available):
        reason = f"{needed} device(s) are needed; there are {len(available)}"
        yield Lease([], len(available), [], 0.0, ("unsupported", reason))
        return
    try:
        _make_safe(locks)
        lease = _wait(locks, needed, available, seconds)
    except (Unsafe, OSError) as error:
        reason = f"no device can be leased: {error}"
        yield Lease([], len(available), [], 0.0, ("failed", reason))
        return
    try:
        yield lease
    finally:
        close(lease.files)


def _wait(locks: str, needed: int, available: Sequence[Device], seconds: float) -> Lease:
    start = time.monotonic()
    turn: Optional[int] = None
    obstacle = "another run is waiting for devices, too"
    try:
        while True:
            waited = time.monotonic() - start
            if turn is None:
                turn = try_lock(locks, _TURN)
            if turn is not None:
                taken, files = take(locks, needed, available)
                if len(taken) == needed:
                    return Lease(taken, len(available), files, waited)
                close(files)
                obstacle = f"others have all but {len(taken)}"
            if waited >= seconds:
                reason = (
                    f"the time limit of {seconds:g} s was reached while waiting for {needed} of "
                    f"{len(available)} device(s): {obstacle} "
                    f"(fuser {path_of(locks, '*')} tells who)"
                )
                return Lease([], len(available), [], waited, ("timeout", reason))
            pause = min(_LONGEST_SECONDS, max(_SHORTEST_SECONDS, _PART * waited))
            time.sleep(min(pause, seconds - waited))
    finally:
        if turn is not None:
            os.close(turn)


def take(locks: str, count: int, available: Sequence[Device]) -> Tuple[List[Device], List[int]]:
    """Return the first ``count`` free devices, or all free ones, and the files that hold them."""
    taken: List[Device] = []
    files: Dict[str, int] = {}
    for device in available:
        if len(taken) == count:
            break
        # Two devices of the same run may be threads of one physical core.
        needed = [name for name in device.locks if name not in files]
        locked = {name: try_lock(locks, name) for name in needed}
        obtained = {name: file for name, file in locked.items() if file is not None}
        if len(obtained) == len(needed):
            taken.append(device)
            files.update(obtained)
        else:
            close(list(obtained.values()))
    return taken, list(files.values())


def path_of(locks: str, name: str) -> str:
    """Return the path of the lock ``name``."""
    return os.path.join(locks, f"{name}.lock")


def _make_safe(locks: str) -> None:
    """Make the folder where it is missing. Raises Unsafe where another user can write to it, and
    OSError."""
    with contextlib.suppress(FileExistsError):
        os.mkdir(locks, 0o700)
    status = os.lstat(locks)
    allowed = "allowed: a folder that you own and nobody else can write (another TMPDIR gives one)"
    if not stat.S_ISDIR(status.st_mode):
        raise Unsafe(f"{locks}: found no folder; {allowed}")
    if status.st_uid != os.geteuid():
        raise Unsafe(f"{locks}: found a folder of user {status.st_uid}; {allowed}")
    if status.st_mode & 0o022:
        raise Unsafe(f"{locks}: found mode {stat.S_IMODE(status.st_mode):o}; {allowed}")


def try_lock(locks: str, name: str) -> Optional[int]:
    """Return the open file that has the lock; None where it is taken. Raises Unsafe, OSError."""
    path = path_of(locks, name)
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    while True:
        file = os.open(path, flags, 0o600)
        try:
            if not stat.S_ISREG(os.fstat(file).st_mode):
                raise Unsafe(f"{path}: found no regular file; allowed: one, or nothing")
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_at(path, file):
                os.utime(file)  # what is in use is not old, for those who tidy up
                return file
        except BlockingIOError:
            os.close(file)
            return None
        except BaseException:
            os.close(file)
            raise
        os.close(file)  # it was removed meanwhile: what is locked is nobody's any more


def _is_at(path: str, file: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(file))
    except FileNotFoundError:
        return False


def close(files: Sequence[int]) -> None:
    """Give back the devices that the open ``files`` hold."""
    for file in files:
        os.close(file)
