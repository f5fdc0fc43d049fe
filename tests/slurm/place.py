"""Place of a test cluster: its folder, ports, addresses and network links.

A machine has one, which several test sessions have in turn: it is locked by the process that holds
it, and free as soon as that has ended. Remains in a free place are of a killed process.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import tempfile
from pathlib import Path

from ..processes import wait_for
from . import isolation

NODES = ("n1", "n2", "n3", "n4")


class Place:
    """The place, in whose network each node has an address."""

    folder = Path(tempfile.gettempdir()) / "framebench-slurm"
    configuration = folder / "etc" / "slurm.conf"
    #: Bridge of the nodes' network; names of its links begin with it.
    bridge = "fbslurm"

    def link(self, node: str) -> str:
        return self.bridge + node

    def port(self, node: str | None = None) -> int:
        """Return the port of a node's daemon, or of the controller.
        It is below those that Linux assigns by itself."""
        return 21000 + (0 if node is None else 1 + NODES.index(node))

    def address(self, node: str | None = None) -> str:
        """Return the address of a node, or of the host as seen by the nodes."""
        return f"10.213.0.{254 if node is None else 1 + NODES.index(node)}"

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


def claim() -> tuple[Place, int]:
    """Wait for the place; return it, empty, and its lock, held until :func:`give_up`."""
    place = Place()
    lock = os.open(f"{place.folder}.lock", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    place.folder.mkdir(exist_ok=True)
    place.clear()
    return place, lock


def give_up(place: Place, lock: int) -> None:
    place.folder.rmdir()
    os.close(lock)
