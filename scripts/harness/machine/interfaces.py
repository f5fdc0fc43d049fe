"""Network interfaces of this machine, from the standard library and Linux."""

from __future__ import annotations

import fcntl
import socket
import struct
from typing import Optional

_SIOCGIFADDR = 0x8915


def interface_with(address: str) -> Optional[str]:
    """Return the name of the interface with this IPv4 ``address``; None without one."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        for _, name in socket.if_nameindex():
            request = struct.pack("256s", name.encode()[:15])
            try:
                answer = fcntl.ioctl(any_socket.fileno(), _SIOCGIFADDR, request)
            except OSError:
                continue  # the interface has no IPv4 address
            if socket.inet_ntoa(answer[20:24]) == address:
                return name
    return None


def address_towards(address: str) -> str:
    """Return the address that this machine uses to reach another."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as unsent:
        unsent.connect((address, 9))  # a UDP connect sends nothing
        return str(unsent.getsockname()[0])
