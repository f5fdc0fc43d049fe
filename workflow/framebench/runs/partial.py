"""Tables and report of what there is, after a call in which a job failed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

#: What Snakemake logs when it is told to end: whoever does that does not want to wait.
_STOPPED = ("Terminating processes on user request", "Will exit after finishing currently running")


def make(framebench: Sequence[str], commands: Sequence[str], log: str, results: Path) -> None:
    """Run those ``commands`` of ours that a failed job kept from running, and say on stderr how to
    get the rest. ``log``: what Snakemake has logged. Raises nothing: the failed job is what its
    user must hear of."""
    if not commands or any(words in log for words in _STOPPED):
        return
    again = "The same call again runs what is missing."
    if not any((results / "runs").rglob("*.json")):
        _say(f"There is no record yet, and so no report. {again}")
        return
    for command in commands:
        words = ["--records", f"{results}/runs", "--results", str(results)]
        try:
            # What follows must stand below what it prints.
            status = subprocess.call([*framebench, command, *words], stdout=sys.stderr)
        except (OSError, KeyboardInterrupt):
            status = 1
        if status:
            how = f'snakemake report --config records="{results}/runs"'
            _say(f"Tables and report could not be made. To try that alone: {how}")
            return
    _say(f"A job failed: tables and report hold what there is. {again}")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
