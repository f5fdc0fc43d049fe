"""Tables and report after a call that did not measure everything."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

#: File in the results that marks a complete call: every run has a record, tables and report are
#: made.
OUTCOME = Path("logs", "outcome")


def make(
    framebench: Sequence[str],
    commands: Sequence[str],
    results: Path,
    wait: Callable[[subprocess.Popen[bytes]], int],
) -> bool:
    """Run the ``commands`` that make tables and report; return whether all succeeded.

    Each has its own process group, which a second Ctrl-C at the terminal does not reach. ``wait``
    returns the exit status of a process.
    """
    for command in commands:
        words = [command, "--records", f"{results}/runs", "--results", str(results)]
        try:
            # Keep later output below the output of the commands.
            process = subprocess.Popen([*framebench, *words], stdout=sys.stderr, process_group=0)
        except OSError:
            return False
        if wait(process):
            return False
    return True
