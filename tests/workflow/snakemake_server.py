"""Calls of Snakemake without importing it, which dominates a short call.

As a program, this imports Snakemake once, and forks for each request on the socket whose number it
is given. Each fork is a call as a user makes it: in its own process group, with its own folder,
arguments and variables, in which the main program starts from nothing. Nothing of the project was
imported before.
"""

from __future__ import annotations

import functools
import gc
import importlib
import json
import os
import random
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

#: Imports of each call, without any of the project.
IMPORTED = (
    *("snakemake.cli", "snakemake.profiles", "snakemake.report.html_reporter"),
    *("requests", "smart_open", "jsonschema_rs", "statistics"),
)
LENGTH = 1 << 20  # most bytes of a request
_INTEGER = 4  # bytes
_PATIENCE = 600.0  # seconds


class SnakemakeCall:
    """A started call, used like a :class:`subprocess.Popen`."""

    def __init__(self, args: list[str], output: int, status: int) -> None:
        """Attach to a call by the read ends of two pipes.
        ``output``: printed text; ``status``: process id, then exit status."""
        self.args = args
        self.returncode: int | None = None
        self._printed = b""
        self._output, self._status = output, status
        self.pid = self._read_integer()

    def poll(self) -> int | None:
        return self._ended_within(0)

    def wait(self, timeout: float | None = None) -> int:
        status = self._ended_within(timeout)
        if status is None:
            assert timeout is not None
            raise subprocess.TimeoutExpired(self.args, timeout)
        return status

    def communicate(self, timeout: float) -> tuple[str, None]:
        """Return everything printed, also by processes that the call started."""
        end = time.monotonic() + timeout
        while True:
            left = max(0.0, end - time.monotonic())
            if not select.select([self._output], [], [], left)[0]:
                raise subprocess.TimeoutExpired(self.args, timeout)
            if not (part := os.read(self._output, LENGTH)):
                break
            self._printed += part
        self.stop_reading()
        self.wait(max(1.0, end - time.monotonic()))
        return self._printed.decode(), None

    def read_until(self, text: str) -> None:
        """Read until ``text`` is printed; fail after ten minutes."""
        end = time.monotonic() + _PATIENCE
        while text.encode() not in self._printed:
            left = max(0.0, end - time.monotonic())
            printed = select.select([self._output], [], [], left)[0]
            assert printed, f"waited in vain for {text!r} after:\n{self._printed.decode()}"
            part = os.read(self._output, LENGTH)
            assert part, f"it ended without {text!r}:\n{self._printed.decode()}"
            self._printed += part

    def stop_reading(self) -> None:
        os.close(self._output)

    def _ended_within(self, seconds: float | None) -> int | None:
        if self.returncode is None and select.select([self._status], [], [], seconds)[0]:
            self.returncode = self._read_integer()
            os.close(self._status)
        return self.returncode

    def _read_integer(self) -> int:
        value = os.read(self._status, _INTEGER)
        assert value, "Snakemake cannot be imported, or what waits for the call was killed"
        return int.from_bytes(value, sys.byteorder, signed=True)


class SnakemakeServer:
    """Forking process, which ends together with its starter."""

    def __init__(self) -> None:
        self._requests, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._requests.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, LENGTH)
        with its:
            number = its.fileno()
            subprocess.Popen([sys.executable, __file__, str(number)], pass_fds=[number])

    def start(
        self, program: str, arguments: list[str], folder: Path, variables: Mapping[str, str]
    ) -> SnakemakeCall:
        """Start a call; ``program``: name of a module, or path of a script."""
        request = {"program": program, "arguments": arguments, "folder": str(folder)}
        text = json.dumps({**request, "variables": dict(variables)}).encode()
        (output, its_output), (status, its_status) = os.pipe(), os.pipe()
        try:
            socket.send_fds(self._requests, [text], [its_output, its_status])
        finally:
            os.close(its_output)
            os.close(its_status)
        return SnakemakeCall([program, *arguments], output, status)


@functools.cache
def snakemake_server() -> SnakemakeServer:
    return SnakemakeServer()


def _next_call(requests: socket.socket) -> dict[str, Any]:
    """Return the request of a call, in each forked process; the first process never returns."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for processes that wait for a call
    while True:
        text, descriptors, *_ = socket.recv_fds(requests, LENGTH, 2)
        if not text:  # the requesting process has ended
            os._exit(0)
        output, status = descriptors
        if os.fork():
            os.close(output)
            os.close(status)
            continue
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        requests.close()
        call = os.fork()
        if not call:
            os.close(status)
            os.dup2(output, 1)
            os.dup2(output, 2)
            os.close(output)
            # Streams remember whether their file can seek, which a pipe cannot.
            sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
            sys.stderr = open(2, "w", encoding="utf-8", closefd=False, buffering=1)  # noqa: SIM115
            return dict(json.loads(text))
        os.close(output)
        _write_integer(status, call)
        _write_integer(status, os.waitstatus_to_exitcode(os.waitpid(call, 0)[1]))
        os._exit(0)


def _write_integer(pipe: int, value: int) -> None:
    os.write(pipe, value.to_bytes(_INTEGER, sys.byteorder, signed=True))


def _run(program: str, arguments: list[str], folder: str, variables: Mapping[str, str]) -> None:
    """Act like the interpreter with ``python -m MODULE`` or ``python SCRIPT``."""
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(variables)
    tempfile.tempdir = None  # depends on the variables
    # Snakemake assumes that a call runs in the folder in which Snakemake was imported.
    sys.modules["snakemake.workflow"].Workflow._rundir = folder
    random.seed()
    sys.argv = [program, *arguments]
    if os.sep in program:
        sys.path.insert(0, str(Path(program).parent))
        runpy.run_path(program, run_name="__main__")
    else:
        sys.path.insert(0, folder)
        runpy.run_module(program, run_name="__main__", alter_sys=True)


def _serve() -> None:
    del sys.path[0]  # this file's folder
    for name in IMPORTED:
        importlib.import_module(name)
    gc.freeze()
    _run(**_next_call(socket.socket(fileno=int(sys.argv[1]))))


if __name__ == "__main__":
    _serve()
