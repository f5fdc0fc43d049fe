"""Child processes that end with this process, together with their descendants."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from types import FrameType
from typing import IO

from core import bounded, signals

#: Limits of a program that may run a user's code to answer: seconds, bytes of output, and bytes of
#: memory.
LONGEST_ANSWER = 60.0
LARGEST_ANSWER = 4 * 2**20
_MOST_MEMORY = 4 * 2**30
_PR_SET_PDEATHSIG = 1
#: Seconds that a descendant gets to end after SIGTERM.
_PATIENCE = 30.0


class NoAnswer(Exception):
    """Program that gave no answer, with the reason in one line."""


def end_on_signals() -> None:
    """Raise SystemExit on signals that end this process, so that :func:`run` can end its child."""

    left = list[int]()

    def leave(number: int, frame: FrameType | None) -> None:
        if not left:
            left.append(number)
            signals.ignore(signals.ENDING)  # a second signal must not interrupt the clean-up
            raise SystemExit(128 + number)

    for number in signals.ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, leave)


def end_descendants(busy: Callable[[], object]) -> None:
    """Ask all descendants in this process's group to end, each once, while ``busy`` returns true.
    Those that still run after _PATIENCE seconds are killed."""
    asked = dict[int, float]()
    while busy():
        now = time.monotonic()
        for process in _descendants():
            patient = now - asked.setdefault(process, now) < _PATIENCE
            if asked[process] == now or not patient:
                with contextlib.suppress(OSError):
                    os.kill(process, signal.SIGTERM if patient else signal.SIGKILL)
        time.sleep(0.05)


def _descendants() -> list[int]:
    """Return the ids of this process's descendants in its process group."""
    parents: dict[int, int] = {}
    own, group = os.getpid(), os.getpgrp()
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError, ValueError):  # the process may have ended meanwhile
            fields = bounded.read_bytes(f"/proc/{name}/stat").rpartition(b")")[2].split()
            if int(fields[2]) == group:
                parents[int(name)] = int(fields[1])
    found, new = set[int](), {own}
    while new:
        new = {process for process, parent in parents.items() if parent in new} - found
        found |= new
    return sorted(found)


def run(
    command: Sequence[str],
    environment: Mapping[str, str] | None = None,
    keep: Sequence[int] = (),
    capture: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Run a command and wait for it. ``capture``: capture its output; ``keep``: files to keep open.
    The command gets its own process group, which is killed when this process is told to end. If
    this process is killed, the kernel kills the command."""
    output = subprocess.PIPE if capture else None
    process = subprocess.Popen(
        command,
        env=environment,
        pass_fds=keep,
        stdout=output,
        stderr=output,
        text=True,
        process_group=0,
        preexec_fn=_dying_with_parent(),
        encoding="utf-8",
        errors="replace",
    )
    try:
        out, err = process.communicate()
    except BaseException:
        _kill(process)
        raise
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def ask(command: Sequence[str], given: str = "", longest: float | None = None) -> str:
    """Return the output of a command that reads the text ``given``.
    Time (``longest``, default: LONGEST_ANSWER), output and memory are limited. The command and its
    descendants end with this process. Raises :class:`NoAnswer` if it fails."""
    longest = longest or LONGEST_ANSWER
    die_with_parent = _dying_with_parent()

    def bound() -> None:
        die_with_parent()
        resource.setrlimit(resource.RLIMIT_FSIZE, (LARGEST_ANSWER, LARGEST_ANSWER))
        resource.setrlimit(resource.RLIMIT_DATA, (_MOST_MEMORY, _MOST_MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    # Files instead of pipes: a background process could keep a pipe open.
    with contextlib.ExitStack() as open_files:
        text, out, err = (open_files.enter_context(tempfile.TemporaryFile()) for _ in range(3))
        text.write(given.encode())
        text.seek(0)
        process = subprocess.Popen(
            command, stdin=text, stdout=out, stderr=err, start_new_session=True, preexec_fn=bound
        )
        try:
            status = process.wait(longest)
        except subprocess.TimeoutExpired:
            raise NoAnswer(f"was stopped after {longest:.0f} s without an answer") from None
        finally:
            _kill(process)
        answer, said = _content(out), _content(err)
    if max(len(answer), len(said)) >= LARGEST_ANSWER:
        raise NoAnswer(f"wrote more than {LARGEST_ANSWER} bytes")
    if status or not answer:
        ended = f"signal {-status}" if status < 0 else f"exit status {status} and no answer"
        # some, such as nvidia-smi, write their errors as an answer
        lines = said.strip().splitlines() or (answer.strip().splitlines() if status > 0 else [])
        raise NoAnswer((lines or [f"ended with {ended}"])[-1][:500])
    return answer


def _content(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read(LARGEST_ANSWER).decode("utf-8", "replace")


def _dying_with_parent() -> Callable[[], None]:
    """Return a function for ``preexec_fn`` that ends a child together with this process."""
    prctl, parent = ctypes.CDLL(None).prctl, os.getpid()

    def die_with_parent() -> None:
        prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)

    return die_with_parent


def _kill(process: subprocess.Popen[bytes] | subprocess.Popen[str]) -> None:
    """Kill a child and its process group."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
