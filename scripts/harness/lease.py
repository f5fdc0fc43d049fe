"""A run's devices for itself, where several runs share a machine.

Each GPU and each physical core has a lock file in a folder that all runs of the machine share. A
run locks those of its devices (``flock``) and leaves the open files to its ranks and its guard, so
that the kernel frees them when the last of these has ended, however the launcher did.

1. Wait for one's turn, which is a lock like the others: whoever has it takes devices, and nobody
   else does. So no two runs wait for each other, and one that needs many devices is not overtaken
   by one after the other that needs few.
2. Take the first devices of which every lock is free. Where these are not enough, give them back
   and look again later.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from harness.devices import Device
from harness.reservation import ReservationError

_TURN = "turn"

#: Between two looks: a tenth of the time waited so far, within these bounds.
_SHORTEST_SECONDS, _LONGEST_SECONDS = 0.02, 1.0
_PART = 0.1


class Lease(NamedTuple):
    """The devices that a run has, ``of`` how many, and the open ``files`` that hold them.
    ``waited``: seconds; ``refused``: status and reason where it did not get them."""

    devices: List[Device]
    of: int
    files: List[int]
    waited: float
    refused: Optional[Tuple[str, str]] = None

    @property
    def places(self) -> List[List[int]]:
        """The cores of each rank; all empty where ranks are not pinned."""
        return [device.cores for device in self.devices]

    @property
    def cores(self) -> List[int]:
        """Of all ranks."""
        return [core for place in self.places for core in place]

    def fields(self) -> Dict[str, Any]:
        """Its entry in the record."""
        names = [device.name for device in self.devices]
        return {"devices": names, "of": self.of, "waited_seconds": self.waited}


@contextlib.contextmanager
def leased(
    folder: str, wanted: int, available: Sequence[Device], seconds: float
) -> Iterator[Lease]:
    """``wanted`` of the ``available`` devices until the end of the context, and until the last
    process has ended that inherited the ``files``. Waits for at most ``seconds``. ``folder``: of
    the locks, on a local file system. Raises ReservationError where it cannot be used."""
    if wanted > len(available):
        reason = f"{wanted} device(s) are needed; there are {len(available)}"
        yield Lease([], len(available), [], 0.0, ("unsupported", reason))
        return
    try:
        lease = _wait(_made(folder), wanted, available, seconds)
    except OSError as error:
        raise ReservationError(
            f"cannot lock devices in {folder}: {error.strerror or error}; choose another --lease"
        ) from error
    try:
        yield lease
    finally:
        _close(lease.files)


def _wait(folder: str, wanted: int, available: Sequence[Device], seconds: float) -> Lease:
    start = time.monotonic()
    turn: Optional[int] = None
    found = "another run is waiting for devices, too"
    try:
        while True:
            waited = time.monotonic() - start
            if turn is None:
                turn = _lock(os.path.join(folder, _TURN))
            if turn is not None:
                taken, files = _take(folder, wanted, available)
                if len(taken) == wanted:
                    return Lease(taken, len(available), files, waited)
                _close(files)
                found = f"others have all but {len(taken)}"
            if waited >= seconds:
                reason = (
                    f"the time limit of {seconds:g} s was reached while waiting for {wanted} of "
                    f"{len(available)} device(s): {found} (lslocks tells who; files in {folder})"
                )
                return Lease([], len(available), [], waited, ("timeout", reason))
            pause = min(_LONGEST_SECONDS, max(_SHORTEST_SECONDS, _PART * waited))
            time.sleep(min(pause, seconds - waited))
    finally:
        if turn is not None:
            os.close(turn)


def _take(folder: str, wanted: int, available: Sequence[Device]) -> Tuple[List[Device], List[int]]:
    """The first ``wanted`` devices that are free, or all that are, and the files that hold them."""
    taken: List[Device] = []
    files: Dict[str, int] = {}
    for device in available:
        if len(taken) == wanted:
            break
        # Two of a run's own devices may be threads of the same physical core.
        needed = [name for name in device.locks if name not in files]
        locked = {name: _lock(os.path.join(folder, name)) for name in needed}
        got = {name: file for name, file in locked.items() if file is not None}
        if len(got) == len(needed):
            taken.append(device)
            files.update(got)
        else:
            _close(list(got.values()))
    return taken, list(files.values())


def _lock(path: str) -> Optional[int]:
    """The open file, locked; None where somebody else has it. Raises OSError."""
    file = _opened(path)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        is_there = os.path.samestat(os.stat(path), os.fstat(file))
    except (BlockingIOError, FileNotFoundError):
        is_there = False
    if not is_there:  # a file that was removed meanwhile locks nothing
        os.close(file)
        return None
    with contextlib.suppress(OSError):
        os.utime(file)  # so that whatever tidies up temporary folders does not take it for old
    return file


def _opened(path: str) -> int:
    """To be locked it need not be writable: it may be another user's."""
    flags = os.O_RDONLY | os.O_NOFOLLOW
    try:
        return os.open(path, flags)
    except FileNotFoundError:
        with contextlib.suppress(FileExistsError):
            file = os.open(path, flags | os.O_CREAT | os.O_EXCL)
            os.fchmod(file, 0o644)
            return file
        return os.open(path, flags)


def _made(folder: str) -> str:
    """The folder; a new one is for all users."""
    with contextlib.suppress(FileExistsError):
        os.makedirs(folder)
        os.chmod(folder, 0o1777)
    return folder


def _close(files: Sequence[int]) -> None:
    for file in files:
        os.close(file)
