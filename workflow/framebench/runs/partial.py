"""Tables and report after a call that did not measure everything."""

from __future__ import annotations

import functools
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from core import signals

#: File in the results that marks a complete call: every run has a record, tables and report are
#: made.
OUTCOME = Path("logs", "outcome")

#: Lets the caller end a process whose other signals stay ignored.
_heed_termination = functools.partial(signals.heed, [signal.SIGTERM])


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
        arguments = [command, "--records", f"{results}/runs", "--results", str(results)]
        try:
            # A signal to our group may come while the process is still in it.
            with signals.ignored(signals.ENDING):
                process = subprocess.Popen(
                    [*framebench, *arguments],
                    stdout=sys.stderr,  # keeps later output below that of the commands
                    process_group=0,
                    preexec_fn=_heed_termination,  # called in its own group
                )
        except OSError:
            return False
        if wait(process):
            return False
    return True
