"""Foreign process that keeps a core busy."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def hog(core: int) -> Iterator[subprocess.Popen[bytes]]:
    """Keep ``core`` busy until the end of the context."""
    spin = "print(flush=True)\nwhile True: pass"
    process = subprocess.Popen(
        [sys.executable, "-S", "-c", spin],
        stdout=subprocess.PIPE,
        preexec_fn=lambda: os.sched_setaffinity(0, [core]),
    )
    try:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
    finally:
        process.kill()
        process.communicate()
