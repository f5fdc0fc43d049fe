"""A real SLURM cluster of four nodes on this host, started and stopped by a test session.

It uses Debian's SLURM and munge without the host's configuration: all files are in the cluster's
folder, and no service manager is used. Each node has its own network, host name and processes, so
that killing a node acts like a power cut.
"""

from __future__ import annotations

import contextlib
import getpass
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from ..debian import install_debian_packages
from ..processes import wait_for
from . import configuration, isolation
from .place import NODES, Place, claim, give_up

#: Required programs, with their Debian packages.
PROGRAMS = {
    "slurmctld": "slurmctld",
    "slurmd": "slurmd",
    "sbatch": "slurm-client",
    "munged": "munge",
    "ip": "iproute2",
}

HOST = "host"  # mark of daemons that belong to no node

_PATIENCE = 60.0  # seconds until killed processes are gone


#: Parts of a node's state in scontrol's notation: IDLE+DRAIN, DOWN*.
_OUT_OF_SERVICE = {"DOWN", "DRAIN", "UNKNOWN", "NOT_RESPONDING", "*"}


class ClusterError(Exception):
    """Ended daemon or failed SLURM command, with its last output."""


@dataclass(frozen=True)
class Job:
    """A job; ``state``, ``reason``, ``nodes`` as in squeue: ``RUNNING``, ``None``, ``n[1-2]``."""

    number: int
    name: str
    state: str
    nodes: str
    reason: str


def missing() -> str:
    """Install missing programs; return why there can be no cluster here, else ""."""
    if os.geteuid() != 0:
        return "only root can make network namespaces and a bridge"
    lacking = [p for p in PROGRAMS if shutil.which(p, path=isolation.SEARCHED) is None]
    return install_debian_packages(*(PROGRAMS[p] for p in lacking)) if lacking else ""


class Cluster:
    """Nodes n1 to n4, each with the host's cores, a fifth of its memory and two fake GPUs.
    Jobs run as the user who started it."""

    def __init__(self) -> None:
        self.place = Place()
        self._lock: int | None = None
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}
        self._reserved: list[str] = []

    def __enter__(self) -> Cluster:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start four idle nodes, after removing the remains of killed sessions."""
        self.place, self._lock = claim()
        try:
            began = time.time()
            configuration.make_folders(self.place)
            isolation.make_bridge(self.place.bridge, self.place.address())
            configuration.write(self.place)
            self._start_munged()
            self._start_controller()
            for name in NODES:
                self._start_daemon_of(name)
            self._wait(lambda: self._registered(NODES, began), "all nodes to register")
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stop everything: no process, file, network link or mount stays."""
        if self._lock is None:
            return
        self.place.clear()
        for daemon in self._daemons.values():
            daemon.wait(_PATIENCE)
        self._daemons.clear()
        give_up(self.place, self._lock)
        self._lock = None

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment variables that only a client of this cluster needs."""
        return {
            "SLURM_CONF": str(self.place.configuration),
            "FRAMEBENCH_LOCKS": str(self.place.folder / "locks"),  # a different folder on each node
        }

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command of SLURM on the host, whatever its exit status."""
        return subprocess.run(
            arguments,
            env={**os.environ, **self.environment},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    def submit(self, script: str, *options: str) -> int:
        """Submit a job that runs ``script``, with sbatch's ``options``; return its number."""
        output = self._output_of("sbatch", "--parsable", *options, f"--wrap={script}")
        return int(output.split(";")[0])

    def queue(self) -> list[Job]:
        """Return all jobs of this cluster, including those that ended within five minutes."""
        output = self._output_of("squeue", "--noheader", "--states=all", "--format=%A|%j|%T|%N|%r")
        rows = [line.split("|") for line in output.splitlines()]
        return [Job(int(row[0]), *row[1:]) for row in rows]

    def nodes(self) -> dict[str, str]:
        """Return each node's state as in sinfo: ``idle``; with a ``*`` if it does not respond."""
        output = self._output_of("sinfo", "--noheader", "--Node", "--format=%N %T")
        return dict(line.split() for line in output.splitlines())

    def down(self, name: str) -> None:
        """Take a node out of service, as an administrator does; its jobs end."""
        self._output_of("scontrol", "update", f"NodeName={name}", "State=DOWN", "Reason=test")

    def up(self, name: str) -> None:
        self._output_of("scontrol", "update", f"NodeName={name}", "State=RESUME")

    def reserve(self, name: str) -> None:
        """Reserve all nodes for the user who started the cluster, until :meth:`reset`."""
        who = f"Users={getpass.getuser()}"
        when = ("StartTime=now", "Duration=60", "Nodes=ALL", "Flags=IGNORE_JOBS")
        self._output_of("scontrol", "create", "reservation", f"ReservationName={name}", who, *when)
        self._reserved.append(name)

    def kill_node(self, name: str) -> None:
        """Kill everything on a node at once, including jobs, as a power cut does.
        The controller must notice by itself."""
        self.place.kill(name)
        self._daemons.pop(name).wait(_PATIENCE)
        isolation.delete_links(self.place.link(name))

    def start_node(self, name: str) -> None:
        """Start a killed node, and wait until the controller reports it in service."""
        began = time.time()
        self._start_daemon_of(name)
        self._wait(lambda: self._registered([name], began), f"{name} to register")

    def cancel_all(self) -> None:
        def none_left() -> bool:
            active = self._output_of("squeue", "--noheader", "--format=%A").split()
            if active:
                self.command("scancel", *active)
            return not active

        self._wait(none_left, "all jobs to be gone")

    def reset(self) -> None:
        """Restore the initial state: four idle nodes, including killed ones, and no job."""
        for name in NODES:
            if name not in self._daemons:
                self.start_node(name)
        self.cancel_all()
        while self._reserved:
            self._output_of("scontrol", "delete", f"ReservationName={self._reserved.pop()}")
        for name, state in self.nodes().items():
            if state.startswith(("down", "drain")):
                self.up(name)
        self._wait(lambda: set(self.nodes().values()) == {"idle"}, "all nodes to be idle")

    def _start_munged(self) -> None:
        folder = self.place.folder / "munge"
        files = {"socket": "socket", "key-file": "key", "pid-file": "pid", "seed-file": "seed"}
        options = [f"--{option}={folder / name}" for option, name in files.items()]
        options.append(f"--log-file={self.place.folder / 'log' / 'munged'}")
        self._start_daemon(HOST, "munged", "--foreground", "--force", *options)
        self._wait((folder / "socket").exists, "munged to listen")

    def _start_controller(self) -> None:
        self._start_daemon(HOST, "slurmctld", "-D")
        self._wait(lambda: "is UP" in self.command("scontrol", "ping").stdout, "slurmctld to be up")

    def _start_daemon_of(self, name: str) -> None:
        place, slurmd = self.place, ("slurmd", "-D", "-N", name)
        shell = ("sh", "-c", isolation.RUN, "sh", name, str(place.folder), place.address(name))
        daemon = self._start_daemon(
            name, *isolation.UNSHARE, *shell, *slurmd, streams=subprocess.PIPE
        )
        assert daemon.stdin
        output = daemon.stdout
        assert output
        with daemon.stdin, output:
            self._wait(lambda: output.readline() == b"ready\n", f"{name} to be there")
            isolation.plug_in(place.bridge, place.link(name), daemon.pid)
            daemon.stdin.write(b"\n")

    def _start_daemon(
        self, node: str, *command: str, streams: int = subprocess.DEVNULL
    ) -> subprocess.Popen[bytes]:
        name = node if node in NODES else command[0]
        program = shutil.which(command[0], path=isolation.SEARCHED)
        with (self.place.folder / "log" / f"{name}.stderr").open("ab") as log:
            daemon = subprocess.Popen(
                [str(program), *command[1:]],
                # Only variables that mark the cluster's processes, and none of the tests'
                # environment.
                env={"PATH": isolation.SEARCHED, **self.environment, "SLURMD_NODENAME": node},
                cwd="/",
                stdin=streams,
                stdout=streams,
                stderr=log,
                start_new_session=True,
            )
        self._daemons[name] = daemon
        return daemon

    def _registered(self, names: Iterable[str], since: float) -> bool:
        """Return whether these nodes serve, with daemons started after ``since`` (epoch)."""
        for name in names:
            output = self._output_of("scontrol", "--oneliner", "show", "node", name)
            fields = dict(word.split("=", 1) for word in output.split() if "=" in word)
            with contextlib.suppress(ValueError):  # "None" until the node has registered
                started = datetime.fromisoformat(fields["SlurmdStartTime"]).timestamp()
                serves = _OUT_OF_SERVICE.isdisjoint(re.split(r"(\W)", fields["State"]))
                if started >= int(since) and serves:
                    continue
            return False
        return True

    def _output_of(self, *arguments: str) -> str:
        ran = self.command(*arguments)
        if ran.returncode != 0:
            raise ClusterError(f"{' '.join(arguments)}: {ran.stderr.strip()}")
        return ran.stdout

    def _wait(self, condition: Callable[[], object], what: str) -> None:
        """Wait while all daemons live. Raises ClusterError."""

        def met() -> object:
            for name, daemon in self._daemons.items():
                if daemon.poll() is not None:
                    raise ClusterError(f"{name} ended with status {daemon.poll()}: {self._log()}")
            return condition()

        wait_for(met, what)

    def _log(self) -> str:
        files = sorted((self.place.folder / "log").iterdir(), key=lambda file: file.stat().st_mtime)
        return "\n".join(f"{file.name}: {_end(file)}" for file in files if file.stat().st_size)


def _end(file: Path) -> str:
    return "\n".join(file.read_text(errors="replace").splitlines()[-5:])
