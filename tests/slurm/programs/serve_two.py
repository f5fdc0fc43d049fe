"""Tell two callers their address; the port is written to a file: serve_two.py FILE"""

from __future__ import annotations

import os
import socket
import sys

with socket.create_server(("", 0)) as server:
    with open(sys.argv[1] + ".part", "w") as file:
        file.write(str(server.getsockname()[1]))
    os.rename(sys.argv[1] + ".part", sys.argv[1])
    for _ in range(2):
        connection, (host, _) = server.accept()
        connection.sendall(host.encode())
        connection.close()
