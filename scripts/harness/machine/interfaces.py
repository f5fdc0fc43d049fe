"""The network interfaces of this machine, as far as the standard library and Linux tell."""

from __future__ import annotations

import fcntl
import socket
import struct
from typing import Any, Dict, Optional

_SIOCGIFADDR = 0x8915


def addresses() -> Dict[str, str]:
    """IPv4 address of each interface that has one."""
    found: Dict[str, str] = {}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        for _, name in socket.if_nameindex():
            request = struct.pack("256s", name.encode()[:15])
            try:
                answer = fcntl.ioctl(any_socket.fileno(), _SIOCGIFADDR, request)
            except OSError:
                continue  # it has none
            found[name] = socket.inet_ntoa(answer[20:24])
    return found


def with_address(address: str) -> Dict[str, Any]:
    """Name of the interface that has ``address``, the address, and the speed in bit/s that the
    driver states; None for what is not known."""
    name = next((name for name, own in addresses().items() if own == address), None)
    return {"name": name, "address": address, "bits_per_second": _speed(name) if name else None}


def _speed(name: str) -> Optional[int]:
    try:
        with open(f"/sys/class/net/{name}/speed") as file:
            megabits = int(file.read())
    except (OSError, ValueError):
        return None
    return megabits * 10**6 if megabits > 0 else None
