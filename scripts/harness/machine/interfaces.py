"""Network interfaces of this machine, from the standard library and Linux."""

from __future__ import annotations

import fcntl
import socket
import struct
from typing import Any, Dict, Optional

from harness.machine.sources import file_line

_SIOCGIFADDR = 0x8915


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


def _speed(name: str) -> Optional[int]:
    megabits = file_line(f"/sys/class/net/{name}/speed") or ""
    return int(megabits) * 10**6 or None if megabits.isdigit() else None  # -1 where it is unknown
