"""Make a report fifty times while signals reach the process group; print how often it was made."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from pathlib import Path

from core import signals
from framebench.runs import partial

for number in signals.ENDING:
    signal.signal(number, lambda number, frame: None)


def send() -> None:
    while True:
        for number in signals.ENDING:
            os.killpg(0, number)


threading.Thread(target=send, daemon=True).start()
made = [partial.make(["true"], ["report"], Path(), subprocess.Popen.wait) for _ in range(50)]
print(made.count(True), flush=True)
