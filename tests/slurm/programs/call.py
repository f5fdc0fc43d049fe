"""Print what a server says: call.py HOST PORT"""

from __future__ import annotations

import socket
import sys

with socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=60) as connection:
    print(connection.recv(100).decode())
