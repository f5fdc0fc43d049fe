"""Network interfaces of this machine, from the standard library and Linux."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import socket
import struct
import sys
from typing import Any, Dict, List, Optional, Set

from harness.machine.sources import file_line

_SIOCGIFADDR = 0x8915
_LISTENS = "0A"
_SOCKET = re.compile(r"socket:\[(\d+)\]$")


def addresses() -> Dict[str, str]:
    """Return the IPv4 address of each interface that has one."""
    by_interface: Dict[str, str] = {}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        for _, name in socket.if_nameindex():
            request = struct.pack("256s", name.encode()[:15])
            try:
                answer = fcntl.ioctl(any_socket.fileno(), _SIOCGIFADDR, request)
            except OSError:
                continue  # it has none
            by_interface[name] = socket.inet_ntoa(answer[20:24])
    return by_interface


def with_address(address: str) -> Dict[str, Any]:
    """Return name, address and speed (bit/s, as the driver states) of the interface with
    ``address``; None for unknown values."""
    name = next((name for name, own in addresses().items() if own == address), None)
    return {"name": name, "address": address, "bits_per_second": _speed(name) if name else None}


def listening() -> List[str]:
    """Return ``address:port`` of each TCP socket at which this process or one that it started
    listens, as the kernel tells."""
    own = _sockets(os.getpid())
    with contextlib.suppress(OSError), open(
        f"/proc/self/task/{os.getpid()}/children", encoding="utf-8"
    ) as file:
        for child in file.read().split():
            own |= _sockets(int(child))
    sockets = set()
    for name, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6)):
        with contextlib.suppress(OSError), open(f"/proc/self/net/{name}", encoding="utf-8") as file:
            for fields in map(str.split, file.readlines()[1:]):
                if fields[3] == _LISTENS and fields[9] in own:
                    host, _, port = fields[1].partition(":")
                    sockets.add(f"{_address(host, family)}:{int(port, 16)}")
    return sorted(sockets)


def _sockets(process: int) -> Set[str]:
    """Return the numbers of the sockets that a process has open."""
    numbers: Set[str] = set()
    with contextlib.suppress(OSError):
        for name in os.listdir(f"/proc/{process}/fd"):
            with contextlib.suppress(OSError):
                match = _SOCKET.match(os.readlink(f"/proc/{process}/fd/{name}"))
                numbers.update(match.groups() if match else ())
    return numbers


def _address(text: str, family: int) -> str:
    """Parse an address in hexadecimal words of 32 bits in the machine's byte order."""
    groups = [int(text[start : start + 8], 16) for start in range(0, len(text), 8)]
    raw = b"".join(word.to_bytes(4, sys.byteorder) for word in groups)
    host = socket.inet_ntop(family, raw)
    return f"[{host}]" if family == socket.AF_INET6 else host


def _speed(name: str) -> Optional[int]:
    megabits = file_line(f"/sys/class/net/{name}/speed") or ""
    return int(megabits) * 10**6 or None if megabits.isdigit() else None  # -1 where it is unknown
