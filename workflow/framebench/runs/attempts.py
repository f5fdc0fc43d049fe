"""``framebench attempts --most N -- HARNESS ..``: a run, repeated while it was disturbed.

Every attempt leaves a record under the next retry's name, and the latest one counts. The choice
depends on the disturbance monitor only, never on the throughput.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from core import bounded, signals

from ..files.attempt_names import attempt_name, next_attempt, split_attempt
from ..records.fields.disturbance import disturbed

_PR_SET_PDEATHSIG = 1
PARENT_VARIABLE = "FRAMEBENCH_DIE_WITH_PARENT"


def main(arguments: list[str]) -> int:
    """Return the exit status of the last attempt; 128 + N after signal N, which is passed on."""
    parser = argparse.ArgumentParser(prog="framebench attempts", description=__doc__)
    parser.add_argument("--most", type=int, required=True, help="retries of a repeat, at most")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="with --output and --log")
    options = parser.parse_args(arguments)
    command = [word for word in options.command if word != "--"]
    end_with_parent()
    caught: list[int] = []
    while True:
        status = run(command, caught)
        if status or caught:
            return 128 + caught[0] if caught else status
        output = Path(_value(command, "--output"))
        following = next_attempt(output.stem, output.parent)
        why = _why_again(output)
        if not why or following > options.most:
            return 0
        # The result lines on stdout stay free of this message.
        again = f"disturbed: {why}; measuring again ({following} of at most {options.most})"
        print(again, file=sys.stderr, flush=True)
        command = renamed(command, following)


def renamed(command: Sequence[str], attempt: int) -> list[str]:
    """Return the command with record and log named after retry number ``attempt``."""
    words = list(command)
    for option in ("--output", "--log"):
        path = Path(_value(words, option))
        name = attempt_name(split_attempt(path.stem)[0], attempt)
        words[words.index(option) + 1] = str(path.with_name(f"{name}{path.suffix}"))
    return words


def _value(command: Sequence[str], option: str) -> str:
    return command[command.index(option) + 1]


def _why_again(output: Path) -> str:
    record = json.loads(bounded.read_text(output))
    return disturbed(record) if record["status"] == "ok" else ""


def end_with_parent() -> None:
    """Request SIGTERM for this process when its parent ends, if the workflow asks for that.

    The variable holds the parent's process id, because the parent may have ended before the
    request.
    """
    parent = os.environ.get(PARENT_VARIABLE)
    if parent:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)
        if str(os.getppid()) != parent:
            os.kill(os.getpid(), signal.SIGTERM)


def run(command: Sequence[str], caught: list[int]) -> int:
    """Run the command, pass on signals that ask this process to end, and return its exit status.

    ``caught`` gets the numbers of the signals. The parent variable is passed on with this process's
    id.
    """
    process: subprocess.Popen[bytes] | None = None

    def leave(number: int, frame: FrameType | None) -> None:
        caught.append(number)
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(number)

    before = {number: signal.signal(number, leave) for number in signals.ENDING}
    try:
        if caught:
            return 0
        variables = dict(os.environ)
        if PARENT_VARIABLE in variables:
            variables[PARENT_VARIABLE] = str(os.getpid())
        process = subprocess.Popen(command, env=variables)
        if caught:
            process.send_signal(caught[0])
        return process.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
