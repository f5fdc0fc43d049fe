"""Protection of our programs from their caller's environment (settings of the dynamic loader and
of Python, a user without a name), signals that ask them to end, and calls of other programs.

Standard library only: ``bootstrap`` and the launchers read this file before anything can be
imported.
"""

from __future__ import annotations

import atexit
import os
import pwd
import signal
import subprocess
import sys
import time
from typing import Any, Dict, Iterable, List, Mapping, Sequence

#: Variables of the dynamic loader. A library that another program needs can hide one of ours.
_LOADER = ("LD_AUDIT", "LD_LIBRARY_PATH", "LD_PRELOAD")
#: Prefix of variables that keep the caller's loader variables for runs and foreign programs.
_KEPT = "FRAMEBENCH_CALLER_"
#: Python's variables that a framework's own interpreter may need, and that affect no other program.
_PYTHON = (
    *("PYTHONPATH", "PYTHONUSERBASE", "PYTHONNOUSERSITE", "PYTHONHASHSEED"),
    *("PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX", "PYTHONUNBUFFERED"),
)
#: Signals that ask a process to end, and may be handled.
ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
#: Seconds to wait for a signal to this process after a signal ended another process of the job.
_OWN_SECONDS = 5.0


def protected(environment: Mapping[str, str]) -> Dict[str, str]:
    """Return the ``environment`` for our own programs.

    LD_LIBRARY_PATH stays where this Python cannot start without it."""
    result = {
        name: value
        for name, value in environment.items()
        if not name.startswith("PYTHON") or name in _PYTHON
    }
    result.update({_KEPT + name: result.pop(name) for name in _LOADER if name in result})
    path = _KEPT + "LD_LIBRARY_PATH"
    if "LD_LIBRARY_PATH" in environment and subprocess.call(
        [sys.executable, "-I", "-c", ""], env=result, stderr=subprocess.DEVNULL
    ):
        result["LD_LIBRARY_PATH"] = result.pop(path)
    try:
        pwd.getpwuid(os.getuid())
    except KeyError:
        result.setdefault("USER", str(os.getuid()))
        result.setdefault("HOME", "/")
    return result


def protect() -> None:
    """Protect this process and its children; restart it if the loader has read the variables."""
    environment = protected(os.environ)
    if any(name in os.environ and name not in environment for name in _LOADER):
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environment)
    os.environ.clear()
    os.environ.update(environment)


def callers_loader() -> Dict[str, str]:
    """Return the loader's variables that :func:`protected` took from the caller."""
    return {name: os.environ[_KEPT + name] for name in _LOADER if _KEPT + name in os.environ}


class Interrupted(BaseException):
    """Raised where a signal asks this process to end."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def raise_signals() -> None:
    """Turn signals that end a process into :class:`Interrupted`, and ignore all later ones, so that
    none disturbs the cleanup. Signals that were ignored from the start stay ignored."""
    left: List[int] = []

    def leave(number: int, frame: Any) -> None:
        if not left:
            left.append(number)
            ignore_signals(numbers)
            raise Interrupted(number)

    numbers = [
        number for number in ENDING_SIGNALS if signal.getsignal(number) is not signal.SIG_IGN
    ]
    for number in numbers:
        signal.signal(number, leave)


def ignore_signals(numbers: Iterable[int]) -> None:
    """Ignore these signals from now on, also in programs that this process starts.

    The Python handlers stay, because they may still run for signals that any thread received
    before: without a handler, Python would print an OSError.
    """
    import ctypes  # not above: a library of the caller's may hide the one that ctypes needs

    numbers = list(numbers)
    set_disposition = ctypes.CDLL(None).signal
    set_disposition.argtypes = [ctypes.c_int, ctypes.c_void_p]
    set_disposition.restype = ctypes.c_void_p
    for number in numbers:
        set_disposition(number, int(signal.SIG_IGN))
    atexit.register(_drop_handlers, numbers)


def await_own_signal(statuses: Iterable[int]) -> None:
    """Wait a few seconds for a signal to this process if one ended another process of its job.

    A scheduler that ends a job signals its processes one after the other, at different times on
    each node. The handler of the signal decides what happens next.

    ``statuses``: exit statuses of the other processes: minus the signal, or 128 plus the signal.
    """
    if any(max(-status, status - 128) in ENDING_SIGNALS for status in statuses):
        time.sleep(_OWN_SECONDS)


def _drop_handlers(numbers: List[int]) -> None:
    """Drop the Python handlers: at exit, Python makes signals with a handler fatal again."""
    for number in numbers:
        signal.signal(number, signal.SIG_IGN)


def run(command: Sequence[str], **options: Any) -> "subprocess.CompletedProcess[str]":
    """Run a program to its end, and return its status, output and errors; invalid bytes are
    replaced. ``options``: options of :func:`subprocess.run`, whose exceptions are raised. The
    program gets the caller's loader variables, without which it may not find its libraries."""
    options.setdefault("env", {**os.environ, **callers_loader()})
    return subprocess.run(
        command, capture_output=True, encoding="utf-8", errors="replace", **options
    )
