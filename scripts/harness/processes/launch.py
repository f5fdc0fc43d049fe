"""Start the rank processes of a run: as new processes, or as forks of a process that has imported
their framework. Changes in one fork, such as operators that mixed precision replaces, do not reach
another."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from harness import variables

_START_RANK = os.path.join(
    os.path.dirname(os.path.dirname(os.path.realpath(__file__))), "start_rank.py"
)


class Share(NamedTuple):
    """A node's share of a run: its ranks begin with ``first_rank``. ``addresses``: ``host:port`` of
    all ranks of the run, in rank order."""

    first_rank: int
    addresses: List[str]


class Stop(NamedTuple):
    """Why the launcher ends ranks: status and reason of the run."""

    status: str
    reason: str


class ForkedRank:
    """Adopted child of this process; used like ``subprocess.Popen``."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: Any = None  # as in ``subprocess.Popen``: None while it runs

    def poll(self) -> Optional[int]:
        """Return the exit status, or minus the signal that ended the rank; None while it runs."""
        if self.returncode is None:
            ended, status = os.waitpid(self.pid, os.WNOHANG)
            if ended:
                by_signal = os.WIFSIGNALED(status)
                self.returncode = -os.WTERMSIG(status) if by_signal else os.WEXITSTATUS(status)
        return self.returncode


class ForkServer:
    """Process that imports a framework and forks for each rank; a context.

    It starts with the first rank, and restarts for another framework or other variables."""

    def __init__(self) -> None:
        self._process: Optional["subprocess.Popen[str]"] = None
        self._serves: Optional[Tuple[Optional[str], Dict[str, str]]] = None

    def __enter__(self) -> ForkServer:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    @property
    def pid(self) -> Optional[int]:
        """The process of the server; None without one."""
        return None if self._process is None else self._process.pid

    def start(
        self,
        spec: str,
        framework: Optional[str],
        common: Mapping[str, str],
        variables: Mapping[str, str],
        folder: str,
        output: int,
    ) -> Optional[ForkedRank]:
        """Start the rank of ``spec`` in ``folder``; return None where it must be started as a new
        process.

        ``framework``: its folder. ``common``: variables of all ranks; ``variables``: variables of
        this rank. ``output``: file that it writes to."""
        if self._serves != (framework, dict(common)):
            self.__exit__()
            self._serves = (framework, dict(common))
            self._process = subprocess.Popen(
                [sys.executable, _START_RANK],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                universal_newlines=True,
                cwd="/",
                env=self._serves[1],
                preexec_fn=os.setpgrp,  # not in the launcher's group, which Ctrl-C interrupts
            )
        request = {
            "spec": spec,
            "variables": dict(variables),
            "folder": folder,
            "output": f"/proc/{os.getpid()}/fd/{output}",
        }
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
            answer = process.stdout.readline()
        except OSError:
            answer = ""
        if not answer:  # the import ended the server: a rank in a new process reports the reason
            self._serves = None
            return None
        return ForkedRank(int(answer))


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
    ``forks``: forks ranks on a CPU, which inherit no files, because the kernel ends them with this
    process. Raises OSError."""
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
        path = log_with_name(options["log"], f"rank{rank}") if rank else options["log"]
        with open(path, "wb") as output:
            process: Union[subprocess.Popen[bytes], ForkedRank, None] = None
            if forks and options["accelerator"] == "cpu":
                framework = options["framework"]
                process = forks.start(spec_path, framework, common, own, here, output.fileno())
            process = process or subprocess.Popen(
                [sys.executable, _START_RANK, spec_path],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=here,
                env=own,
                start_new_session=True,
                pass_fds=files,
            )
        started.append(RankProcess(rank, process, path))
