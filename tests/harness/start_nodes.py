"""Starts a command once for each of N nodes, as ``srun`` does: ``start_nodes.py N COMMAND ..``.

All are this machine. FRAMEBENCH_START leaves out the node of that number (``without=1``), gives it
another interpreter (``python1=PATH``), fails (``fail=1``) or has others call the launcher before
the nodes do (``strangers=1``).
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys


def call_as_strangers() -> list[socket.socket]:
    """Connections to the launcher: one that says nothing, one with a guess, one with nonsense."""
    host, _, port = os.environ["FRAMEBENCH_LAUNCHER"].split(",")[-1].rpartition(":")
    calls = [socket.create_connection((host, int(port))) for _ in range(3)]
    calls[1].sendall(b'{"token": "guess", "node": "n9", "index": 0}\n')
    calls[2].sendall(b"GET / HTTP/1.1\r\n\r\n")
    return calls


def main() -> int:
    does = dict(
        word.split("=", 1) for word in os.environ.get("FRAMEBENCH_START", "").split(",") if word
    )
    nodes, command = int(sys.argv[1]), sys.argv[2:]
    if "fail" in does:
        print("start_nodes: error: no such partition", file=sys.stderr)
        return 3
    strangers = call_as_strangers() if "strangers" in does else []
    started = [
        subprocess.Popen(
            [does.get(f"python{number}", command[0]), *command[1:]],
            env={**os.environ, "SLURM_NODEID": str(number), "SLURMD_NODENAME": f"n{number}"},
        )
        for number in reversed(range(nodes))
        if does.get("without") != str(number)
    ]
    status = max(process.wait() for process in started)
    for stranger in strangers:
        stranger.close()
    return status


if __name__ == "__main__":
    sys.exit(main())
