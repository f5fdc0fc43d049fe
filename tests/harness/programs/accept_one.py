"""Listen at an address, print the port, and accept one caller: itself, if told to call."""

from __future__ import annotations

import socket
import sys

address, who = sys.argv[1:]
server = socket.create_server((address, 0))
print(server.getsockname()[1], flush=True)
if who == "call":
    socket.create_connection(server.getsockname()).close()
server.accept()
print("called", flush=True)
