"""Private network for the ranks of a run on one node, unreachable from other machines and for other
users.

Linux offers it where users may have namespaces (unshare(2) and user_namespaces(7)). As a program
(``python -I -S private_network.py ADDRESS ..``) this makes a network whose loopback interface has
127.0.0.1 and each ADDRESS. These are addresses of this machine, because some frameworks listen
where the host's name leads. Standard library only.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import subprocess
import sys
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence

HERE = os.path.realpath(__file__)
_READY = "ready"

_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
_SIOCSIFFLAGS, _SIOCSIFADDR = 0x8914, 0x8916
_UP_AND_RUNNING = 0x1 | 0x40


class PrivateNetwork(NamedTuple):
    """Network of the ranks.

    ``enter``: called in each rank before it starts; None where there is no private network, and
    ``refused`` says why."""

    enter: Optional[Callable[[], None]]
    refused: str = ""

    def fields(self) -> Dict[str, Any]:
        """Return the entry of the record."""
        return {"private": self.enter is not None, "reason": self.refused}


@contextlib.contextmanager
def private_network(addresses: Sequence[str]) -> Iterator[PrivateNetwork]:
    """Yield a private network that exists until the context ends, and as long as a process in it.

    ``addresses``: of this machine, which its loopback interface gets too."""
    command = [sys.executable, "-I", "-S", HERE, *addresses]
    files: List[int] = []
    try:
        with subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
        ) as maker:
            assert maker.stdout is not None
            answer = maker.stdout.readline().strip()
            if answer == _READY:
                files += _namespaces(maker.pid)
        yield _tried(files) if files else PrivateNetwork(None, answer or "its maker has ended")
    finally:
        for file in files:
            os.close(file)


def _namespaces(process: int) -> List[int]:
    """Return open files of the process's namespaces that differ from this process's, in the order
    to enter them."""
    opened = []
    for name in ("user", "net"):
        path = f"/proc/{process}/ns/{name}"
        if os.readlink(path) != os.readlink(f"/proc/self/ns/{name}"):
            opened.append(os.open(path, os.O_RDONLY))
    return opened


def _tried(files: Sequence[int]) -> PrivateNetwork:
    """Return the network of these namespaces after a process has entered it."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)

    def enter() -> None:
        for file in files:
            if libc.setns(file, 0) != 0:
                raise OSError(ctypes.get_errno(), "setns")

    try:
        subprocess.run([sys.executable, "-I", "-S", "-c", ""], preexec_fn=enter, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        return PrivateNetwork(None, f"no process can enter one: {error}")
    return PrivateNetwork(enter)


def main(addresses: Sequence[str]) -> None:
    """Make a private network, report success or the reason, and keep it until the caller
    holds it."""
    try:
        _make(addresses)
    except (ImportError, OSError) as error:
        print(f"the kernel gives this user no network of its own: {error}", flush=True)
        return
    print(_READY, flush=True)
    sys.stdin.read()


def _make(addresses: Sequence[str]) -> None:
    import ctypes
    import fcntl

    libc = ctypes.CDLL(None, use_errno=True)
    user, group = os.geteuid(), os.getegid()
    if libc.unshare(_CLONE_NEWNET) != 0:  # which takes rights that one has among one's own alone
        if libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        for name, content in (
            ("setgroups", "deny"),
            ("uid_map", f"{user} {user} 1"),
            ("gid_map", f"{group} {group} 1"),
        ):
            with open(f"/proc/self/{name}", "w", encoding="utf-8") as file:
                file.write(content)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        up = struct.pack("16sH22x", b"lo", _UP_AND_RUNNING)
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, up)
        for number, address in enumerate(addresses):
            alias, raw = f"lo:{number}".encode(), socket.inet_aton(address)
            also = struct.pack("16sHH4s16x", alias, socket.AF_INET, 0, raw)
            fcntl.ioctl(any_socket, _SIOCSIFADDR, also)


if __name__ == "__main__":
    main(sys.argv[1:])
