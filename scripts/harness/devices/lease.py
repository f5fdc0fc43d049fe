"""A run's devices for itself, where several runs share a machine.

Each GPU and each physical core has a lock that all runs of the machine know: a name in the kernel's
list of local sockets (:manpage:`unix(7)`, abstract), which one socket alone can have. Unlike a file
it has no owner who may remove it, and no kind or mode that could be wrong. A run takes the names of
its devices and leaves the open sockets to its ranks and its guard, so that the kernel frees them
when the last of these has ended, however the launcher did.

1. Wait for one's turn, which is a lock like the others: whoever has it takes devices, and nobody
   else does. So no two runs wait for each other, and one that needs many devices is not overtaken
   by one after the other that needs few.
2. Take the first devices of which every lock is free. Where these are not enough, give them back
   and look again later.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import socket
import time
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from harness.devices.devices import Device

_TURN = "turn"

#: Between two looks: a tenth of the time waited so far, within these bounds.
_SHORTEST_SECONDS, _LONGEST_SECONDS = 0.02, 1.0
_PART = 0.1


class Lease(NamedTuple):
    """The devices that a run has, ``of`` how many, and the open sockets (``files``) that hold them.
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
def leased(locks: str, wanted: int, available: Sequence[Device], seconds: float) -> Iterator[Lease]:
    """``wanted`` of the ``available`` devices until the end of the context, and until the last
    process has ended that inherited the ``files``. Waits for at most ``seconds``. ``locks``: name
    of the set of locks; runs that give the same never have the same device."""
    if wanted > len(available):
        reason = f"{wanted} device(s) are needed; there are {len(available)}"
        yield Lease([], len(available), [], 0.0, ("unsupported", reason))
        return
    lease = _wait(locks, wanted, available, seconds)
    try:
        yield lease
    finally:
        _close(lease.files)


def _wait(locks: str, wanted: int, available: Sequence[Device], seconds: float) -> Lease:
    start = time.monotonic()
    turn: Optional[int] = None
    found = "another run is waiting for devices, too"
    try:
        while True:
            waited = time.monotonic() - start
            if turn is None:
                turn = _lock(locks, _TURN)
            if turn is not None:
                taken, files = _take(locks, wanted, available)
                if len(taken) == wanted:
                    return Lease(taken, len(available), files, waited)
                _close(files)
                found = f"others have all but {len(taken)}"
            if waited >= seconds:
                reason = (
                    f"the time limit of {seconds:g} s was reached while waiting for {wanted} of "
                    f"{len(available)} device(s): {found} "
                    f"(ss -xap tells who has {address(locks, '*')[1:]})"
                )
                return Lease([], len(available), [], waited, ("timeout", reason))
            pause = min(_LONGEST_SECONDS, max(_SHORTEST_SECONDS, _PART * waited))
            time.sleep(min(pause, seconds - waited))
    finally:
        if turn is not None:
            os.close(turn)


def _take(locks: str, wanted: int, available: Sequence[Device]) -> Tuple[List[Device], List[int]]:
    """The first ``wanted`` devices that are free, or all that are, and the files that hold them."""
    taken: List[Device] = []
    files: Dict[str, int] = {}
    for device in available:
        if len(taken) == wanted:
            break
        # Two of a run's own devices may be threads of the same physical core.
        needed = [name for name in device.locks if name not in files]
        locked = {name: _lock(locks, name) for name in needed}
        got = {name: file for name, file in locked.items() if file is not None}
        if len(got) == len(needed):
            taken.append(device)
            files.update(got)
        else:
            _close(list(got.values()))
    return taken, list(files.values())


def address(locks: str, name: str) -> str:
    """Of the socket that is the lock ``name``; of fixed length, because the kernel's is limited."""
    digest = hashlib.sha256(locks.encode("utf-8", "surrogateescape")).hexdigest()[:16]
    return f"\0framebench-{digest}/{name}"


def _lock(locks: str, name: str) -> Optional[int]:
    """The open socket that has the lock's name; None where somebody else has it."""
    holder = socket.socket(socket.AF_UNIX)  # nobody listens at it
    try:
        holder.bind(address(locks, name))
    except OSError as error:
        holder.close()
        if error.errno == errno.EADDRINUSE:
            return None
        raise
    return holder.detach()


def _close(files: Sequence[int]) -> None:
    for file in files:
        os.close(file)
