"""Start a command once per node, like ``srun``: ``start_nodes.py N COMMAND ..``.

All nodes are this machine. FRAMEBENCH_START leaves out a node (``without=1``), gives it another
interpreter (``python1=PATH``), fails (``fail=1``), starts nothing and stays (``silent=1``) or has
others call the launcher before the nodes (``strangers=some`` talk, ``strangers=many`` are silent).
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import socket
import subprocess
import sys

SAYINGS = (
    b"",
    b'{"token": "guess", "node": "n9", "index": 0}\n',
    b"GET / HTTP/1.1\r\n\r\n",
    b"[" * 200_000 + b"\n",  # deeper than JSON parsers go
    b'{"token": "\\ud800"}\n',  # text that cannot be encoded
)
MANY = 1200  # more than select's limit of open files


def call_as_strangers(which: str) -> list[socket.socket]:
    """Open connections to the launcher, and return them."""
    host, _, port = os.environ["FRAMEBENCH_LAUNCHER"].split(",")[-1].rpartition(":")
    if which == "many":
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    calls = []
    for saying in SAYINGS if which == "some" else [b""] * MANY:
        calls.append(socket.create_connection((host, int(port))))
        with contextlib.suppress(OSError):  # it may have hung up
            calls[-1].sendall(saying)
    return calls


def main() -> int:
    does = dict(
        word.split("=", 1) for word in os.environ.get("FRAMEBENCH_START", "").split(",") if word
    )
    nodes, command = int(sys.argv[1]), sys.argv[2:]
    if "fail" in does:
        print("start_nodes: error: no such partition", file=sys.stderr)
        return 3
    if "silent" in does:
        signal.pause()
    strangers = call_as_strangers(does["strangers"]) if "strangers" in does else []
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
