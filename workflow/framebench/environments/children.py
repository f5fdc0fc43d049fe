"""Children that end with this process, however it ends, and take along what they have started."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from types import FrameType

_PR_SET_PDEATHSIG = 1


def end_on_signals() -> None:
    """Leave by an exception where a signal asks this process to end, so that :func:`run` can end
    its child."""

    def leave(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, leave)


def run(
    command: Sequence[str],
    environment: Mapping[str, str] | None = None,
    keep: Sequence[int] = (),
    capture: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Wait for the command, whose output is caught where ``capture`` says so; ``keep``: files that
    stay open in it. It gets a process group, which is killed when this process is told to end; and
    a signal of the kernel's, should this one be killed itself."""
    prctl, parent = ctypes.CDLL(None).prctl, os.getpid()

    def die_with_parent() -> None:
        prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)

    output = subprocess.PIPE if capture else None
    process = subprocess.Popen(
        command,
        env=environment,
        pass_fds=keep,
        stdout=output,
        stderr=output,
        text=True,
        process_group=0,
        preexec_fn=die_with_parent,
    )
    try:
        out, err = process.communicate()
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise
    return subprocess.CompletedProcess(command, process.returncode, out, err)
