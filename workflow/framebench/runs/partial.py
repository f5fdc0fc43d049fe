"""Tables and report of what there is, made behind a call that did not measure everything."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

#: File in the results that says that each run of the call has a record, and that tables and report
#: were made of them.
OUTCOME = Path("logs", "outcome")


def make(
    framebench: Sequence[str],
    commands: Sequence[str],
    results: Path,
    wait: Callable[[subprocess.Popen[bytes]], int],
) -> bool:
    """Run the ``commands`` that make tables and report, and return whether all have ended well.

    Each has a process group of its own: a second Ctrl-C at the terminal does not reach it. ``wait``
    returns the exit status of a process.
    """
    for command in commands:
        words = [command, "--records", f"{results}/runs", "--results", str(results)]
        try:
            # What follows must stand below what it prints.
            process = subprocess.Popen([*framebench, *words], stdout=sys.stderr, process_group=0)
        except OSError:
            return False
        if wait(process):
            return False
    return True
