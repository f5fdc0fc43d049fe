"""Double of ``srun``: starts a command once per node; all nodes are this machine.

FRAMEBENCH_START leaves out a node (``without=1``), fails (``fail=1``), or starts nothing and stays
(``silent=1``).
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time

#: Default of SLURM's KillWait in seconds.
KILL_WAIT = 30.0


def main() -> int:
    does = dict(
        word.split("=", 1) for word in os.environ.get("FRAMEBENCH_START", "").split(",") if word
    )
    words = [word for word in sys.argv[1:] if word.startswith("--")]
    options = dict(word.partition("=")[::2] for word in words)
    command = sys.argv[1 + len(words) :]
    assert options["--kill-on-bad-exit"] == "1"
    if "fail" in does:
        print("srun: error: no such partition", file=sys.stderr)
        return 3
    if "silent" in does:
        signal.pause()
    started = [
        subprocess.Popen(
            command,
            env={
                **os.environ,
                "SLURM_NODEID": str(number),
                "SLURMD_NODENAME": f"n{number}",
                "SLURM_LAUNCH_NODE_IPADDR": "127.0.0.1",
            },
        )
        for number in reversed(range(int(options["--nodes"])))
        if does.get("without") != str(number)
    ]
    ends = [False]
    signal.signal(signal.SIGTERM, lambda number, frame: ends.__setitem__(0, True))
    asked = 0.0
    while any(process.poll() is None for process in started):
        ends[0] = ends[0] or any(process.poll() for process in started)
        if ends[0]:
            late = asked and time.monotonic() > asked + KILL_WAIT
            number = signal.SIGKILL if late else signal.SIGTERM
            for process in started if late or not asked else ():
                with contextlib.suppress(ProcessLookupError):
                    process.send_signal(number)
            asked = asked or time.monotonic()
        time.sleep(0.05)
    return max(abs(process.returncode) for process in started)


if __name__ == "__main__":
    sys.exit(main())
