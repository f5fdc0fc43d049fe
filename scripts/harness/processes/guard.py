"""No process stays behind: find and kill every process of a run, also when its launcher is gone.

Started as a program of its own (``python -I -S guard.py RUN FOLDER FILE``) it waits until the
launcher's end of its standard input is closed, which the kernel does however the launcher ends.
Processes are found by FRAMEBENCH_RUN in their environment, because compiler workers may have made
sessions of their own. Standard library only and no import from the harness.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import time
from typing import List

RUN_VARIABLE = "FRAMEBENCH_RUN"


def processes_of(run: str) -> List[int]:
    """Process ids, without this one, whose environment holds the run's id."""
    wanted = f"{RUN_VARIABLE}={run}".encode()
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            with open(f"/proc/{name}/environ", "rb") as file:
                if wanted in file.read().split(b"\0"):
                    found.append(int(name))
        except OSError:
            continue  # ended meanwhile, or another user's
    return found


def sweep(run: str, seconds: float = 10.0) -> List[int]:
    """Kill every process of the run; again until none is left, because one may have forked
    meanwhile. Returns those still there after ``seconds``."""
    end = time.monotonic() + seconds
    left = processes_of(run)
    while left and time.monotonic() < end:
        for process in left:
            with contextlib.suppress(OSError):
                os.kill(process, signal.SIGKILL)
        time.sleep(0.01)
        left = processes_of(run)
    return left


def main(run: str, folder: str, file: str) -> None:
    """Wait for the launcher's end; then kill what is left of ``run`` and remove its temporary
    ``folder`` and the reserved ``file``, which a launcher that ended properly has done already."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    while sys.stdin.buffer.read(1):
        pass
    sweep(run)
    shutil.rmtree(folder, ignore_errors=True)
    with contextlib.suppress(OSError):
        os.unlink(file)


if __name__ == "__main__":
    main(*sys.argv[1:])
