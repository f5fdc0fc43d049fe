"""Places of test clusters: ten, each with its own folder, ports, addresses and network links.

Several test sessions thus have one each. A folder is locked by the process that holds the place,
and free as soon as that has ended. Remains in a free place are of a killed process.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import socket
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ..processes import wait_for
from . import isolation

PLACES = 10
NODES = ("n1", "n2", "n3", "n4")


@dataclass(frozen=True)
class Place:
    """A place, in whose network each node has an address."""

    number: int

    @property
    def folder(self) -> Path:
        return Path(tempfile.gettempdir()) / f"framebench-slurm-{self.number}"

    @property
    def configuration(self) -> Path:
        return self.folder / "etc" / "slurm.conf"

    @property
    def bridge(self) -> str:
        """Name of the bridge of the nodes' network; names of its links begin with it."""
        return f"fbslurm{self.number}"

    def link(self, node: str) -> str:
        return self.bridge + node

    def port(self, node: str | None = None) -> int:
        """Return the port of a node's daemon, or of the controller.
        It is below those that Linux assigns by itself."""
        return 21000 + 10 * self.number + (0 if node is None else 1 + NODES.index(node))

    def address(self, node: str | None = None) -> str:
        """Return the address of a node, or of the host as seen by the nodes."""
        return f"10.213.{self.number}.{254 if node is None else 1 + NODES.index(node)}"

    def processes(self, node: str | None = None) -> list[int]:
        """Return the daemons and jobs of this cluster, or of one of its nodes.
        They have both variables, or a parent that has them. Clients lack the second."""
        mine = f"SLURM_CONF={self.configuration}"
        named = f"SLURMD_NODENAME={node or ''}"
        actual, parents = set(), {}
        for path in Path("/proc").glob("[0-9]*"):
            try:
                held = (path / "environ").read_bytes().decode("utf-8", "replace").split("\0")
                state, parent = (path / "stat").read_text().rpartition(")")[2].split()[:2]
            except OSError:
                continue
            if state == "Z":
                continue
            parents[int(path.name)] = int(parent)
            if mine in held and any(
                variable == named if node else variable.startswith(named) for variable in held
            ):
                actual.add(int(path.name))
        children: set[int] = actual
        while children:
            children = {process for process, parent in parents.items() if parent in children}
            children -= actual
            actual |= children
        return sorted(actual)

    def kill(self, node: str | None = None) -> None:
        """Kill everything of a node, or of the cluster, and wait until it is gone."""

        def gone() -> bool:
            actual = self.processes(node)
            for process in actual:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            return not actual

        wait_for(gone, f"the processes of {node or self.folder} to be gone")

    def clear(self) -> None:
        """Remove everything but the folder itself."""
        self.kill()
        isolation.delete_links(self.bridge)
        for path in self.folder.iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()

    def ports_are_free(self) -> bool:
        for port in (self.port(), *map(self.port, NODES)):
            with socket.socket() as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                try:
                    probe.bind(("", port))
                except OSError:
                    return False
        return True


def claim() -> tuple[Place, int]:
    """Return a free place, and the lock that holds it until :func:`give_up`.
    Remains in all free places are removed."""
    taken = None
    for place in map(Place, range(PLACES)):
        if taken and not place.folder.exists():
            continue
        lock = _lock(place.folder)
        if lock is None:
            continue
        place.clear()
        if not taken and place.ports_are_free():
            taken = place, lock
        else:
            give_up(place, lock)
    assert taken, f"all {PLACES} places for a test cluster are taken"
    return taken


def give_up(place: Place, lock: int) -> None:
    place.folder.rmdir()
    os.close(lock)


def _lock(folder: Path) -> int | None:
    """Lock the folder, creating it if missing; None if somebody else holds it."""
    folder.mkdir(exist_ok=True)
    try:
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:  # gone again
        return None
    held = os.fstat(lock)
    if held.st_uid == os.geteuid():
        with contextlib.suppress(BlockingIOError, FileNotFoundError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # The former holder may have removed it since it was opened.
            if folder.stat().st_ino == held.st_ino:
                return lock
    os.close(lock)
    return None
