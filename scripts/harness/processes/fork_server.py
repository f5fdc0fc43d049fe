"""Start ranks as forks of a process that has imported their framework.

Changes in one fork, such as operators that mixed precision replaces, do not reach another.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any, Dict, Mapping, Optional, Tuple

START_RANK = os.path.join(
    os.path.dirname(os.path.dirname(os.path.realpath(__file__))), "start_rank.py"
)


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
            self._process = self._server(common)
        request: Dict[str, Any] = {
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

    def _server(self, common: Mapping[str, str]) -> "subprocess.Popen[str]":
        # Not in the launcher's group, which Ctrl-C interrupts.
        return subprocess.Popen(
            [sys.executable, START_RANK],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            universal_newlines=True,
            cwd="/",
            env=dict(common),
            preexec_fn=os.setpgrp,
        )
