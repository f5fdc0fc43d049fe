"""Starts a command once for each of N nodes, as ``srun`` does: ``start_nodes.py N COMMAND ..``.

All are this machine. FRAMEBENCH_START leaves out the node of that number (``without=1``) or gives
it another interpreter (``python1=PATH``).
"""

from __future__ import annotations

import os
import subprocess
import sys


def main() -> int:
    does = dict(
        word.split("=", 1) for word in os.environ.get("FRAMEBENCH_START", "").split(",") if word
    )
    nodes, command = int(sys.argv[1]), sys.argv[2:]
    if "fail" in does:
        print("start_nodes: error: no such partition", file=sys.stderr)
        return 3
    started = [
        subprocess.Popen(
            [does.get(f"python{number}", command[0]), *command[1:]],
            env={**os.environ, "SLURM_NODEID": str(number), "SLURMD_NODENAME": f"n{number}"},
        )
        for number in reversed(range(nodes))
        if does.get("without") != str(number)
    ]
    return max(process.wait() for process in started)


if __name__ == "__main__":
    sys.exit(main())
