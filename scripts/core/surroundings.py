"""The caller's environment, which must not steer Framebench's own programs: settings of the dynamic
loader and of Python, a user without a name, a host name that does not resolve.

Standard library only: ``bootstrap`` and the launchers read this file before anything can be
imported.
"""

from __future__ import annotations

import os
import pwd
import socket
import subprocess
import sys
from typing import Dict, Mapping, Sequence, Tuple

#: Variables of the dynamic loader. A library that another program needs can hide one of ours.
_LOADER = ("LD_AUDIT", "LD_LIBRARY_PATH", "LD_PRELOAD")
#: Prefix of the names under which their values are kept for runs and for foreign programs.
_KEPT = "FRAMEBENCH_CALLER_"
#: Python's variables that a framework's own interpreter may need, and that affect no other program.
_PYTHON = (
    *("PYTHONPATH", "PYTHONUSERBASE", "PYTHONNOUSERSITE", "PYTHONHASHSEED"),
    *("PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX", "PYTHONUNBUFFERED"),
)


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
    """Protect this process and its children. It starts again if the loader is steered already."""
    environment = protected(os.environ)
    if any(name in os.environ and name not in environment for name in _LOADER):
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environment)
    os.environ.clear()
    os.environ.update(environment)


def for_loader(environment: Mapping[str, str]) -> Sequence[Tuple[str, str]]:
    """Return the loader's variables, with values, that :func:`protected` took from the caller."""
    values = ((name, environment.get(_KEPT + name)) for name in _LOADER)
    return [(name, value) for name, value in values if value is not None]


def unresolved_host() -> str:
    """Return a message with a remedy if this machine's host name does not resolve, else ""."""
    name = socket.gethostname()
    try:
        socket.getaddrinfo(name, None)
    except OSError as error:
        remedy = f"a line '127.0.1.1 {name}' in /etc/hosts"
        return f"host name {name}: does not resolve ({error}); allowed: {remedy}"
    return ""
