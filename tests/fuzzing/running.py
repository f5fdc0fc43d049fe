"""Run of inputs in watched, forked workers, which finds violated invariants."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import random
import resource
import select
import signal
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from framebench.files.problem import cause

from . import mutations
from .targets import Target, make_input

#: Limits of one input: seconds, and bytes of memory.
LONGEST = 60.0
_MEMORY = 6 * 2**30
_LONGEST_MESSAGE = 3000


@dataclass
class Outcome:
    """Outcome of inputs: numbers accepted and refused by target, and the faults."""

    counts: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)


def target_of(number: int, targets: Sequence[Target]) -> Target:
    """Return the target of an input; targets take turns by their weight."""
    turns = [target for target in targets for _ in range(target.weight)]
    if number % 200 == 199:  # a process each
        return next((target for target in targets if not target.weight), turns[0])
    return turns[number % len(turns)]


def examine(seed: int, number: int, folder: Path, targets: Sequence[Target]) -> tuple[str, str]:
    """Make one input and read it. Returns "taken" or "refused" with "", or "fault" with
    its text."""
    rng, target = random.Random(f"{seed}-{number}"), target_of(number, targets)
    made = make_input(rng, target, folder, mutations)
    before = _tree(folder, target.written)
    silent = io.StringIO()
    try:
        with contextlib.redirect_stdout(silent), contextlib.redirect_stderr(silent):
            said = target.read(folder)
    except target.errors as error:
        texts = [cause(error)] if isinstance(error, OSError) else [str(error)]
        fault = _unclear(texts, target, refused=True)
        state = "refused"
    except Exception:
        return "fault", f"{made}: {traceback.format_exc()[-1500:]}"
    else:
        fault = _unclear(said, target, refused=False)
        state = "refused" if said else "taken"
    if not fault and _tree(folder, (*target.written, "out")) != before:
        fault = "what was there before has changed"
    return ("fault", f"{made}: {fault}") if fault else (state, "")


def _unclear(messages: Sequence[str], target: Target, refused: bool) -> str:
    """Return the fault of messages; "" if they name the input in a bounded line."""
    names = (Path(target.file).name, Path(target.file).stem, *target.words)
    for message in messages:
        if len(message) > _LONGEST_MESSAGE:
            return f"a message of {len(message)} characters: {message[:200]}"
        if "Traceback" in message:
            return f"a traceback in a message: {message[:300]}"
    if refused and not any(name in messages[0] for name in names):
        return f"not named in: {messages[0][:300]}"
    return ""


def _tree(folder: Path, without: Sequence[str]) -> str:
    """Return a digest of names, kinds, sizes and contents of files."""
    digest = hashlib.sha256()
    for top, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in without)
        for name in sorted(names):
            if name.startswith(tuple(without)) and without:
                continue
            path = os.path.join(top, name)
            actual = os.lstat(path)
            digest.update(f"{path}\0{actual.st_mode}\0{actual.st_size}\n".encode())
            if os.path.isfile(path) and actual.st_size < 2**22 and not os.path.islink(path):
                digest.update(Path(path).read_bytes())
    return digest.hexdigest()


def run(
    seed: int,
    numbers: Sequence[int],
    targets: Sequence[Target],
    tell: Callable[[str], None] = lambda fault: None,
    workers: int = 2,
) -> Outcome:
    """Examine the inputs of these numbers in forked workers; each fault is reported at once.
    An input that takes too long is killed, and is a fault."""
    outcome = Outcome()
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        crews = [
            _Worker(seed, numbers[at::workers], Path(folder, str(at)), targets)
            for at in range(workers)
        ]
        while busy := [crew for crew in crews if crew.is_busy]:
            ready, _, _ = select.select([worker.pipe for worker in busy], [], [], 1.0)
            for worker in busy:
                for number, state, what in worker.results(worker.pipe in ready):
                    name = target_of(number, targets).name
                    outcome.counts[f"{name}: {state}"] += 1
                    if state == "fault":
                        outcome.faults.append(f"seed {seed}, input {number}, {name}: {what}")
                        tell(outcome.faults[-1])
    return outcome


class _Worker:
    """Process that examines its numbers one after the other; forked anew after a hang."""

    def __init__(
        self, seed: int, numbers: Sequence[int], folder: Path, targets: Sequence[Target]
    ) -> None:
        self._seed, self._left, self._folder = seed, list(numbers), folder
        self._targets = targets
        self.is_busy = bool(self._left)
        if self.is_busy:
            self._start()

    def _start(self) -> None:
        reading, writing = os.pipe()
        self._process = os.fork()
        if not self._process:
            os.close(reading)
            with contextlib.suppress(BaseException):
                self._work(writing)
            os._exit(0)
        os.close(writing)
        self.pipe, self._text = reading, b""
        self._since = os.times().elapsed

    def _work(self, writing: int) -> None:
        resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY, _MEMORY))
        for number in self._left:
            state, what = examine(self._seed, number, self._folder, self._targets)
            os.write(writing, json.dumps([number, state, what]).encode() + b"\n")

    def results(self, is_ready: bool) -> Iterator[tuple[int, str, str]]:
        """Yield the results since the last call."""
        content = os.read(self.pipe, 2**16) if is_ready else b""
        *lines, self._text = (self._text + content).split(b"\n")
        for line in lines:
            self._since = os.times().elapsed
            number, state, what = json.loads(line)
            self._left.remove(number)
            yield number, state, what
        ended = is_ready and not content
        if ended or os.times().elapsed - self._since > LONGEST:
            os.kill(self._process, signal.SIGKILL)
            _, status = os.waitpid(self._process, 0)
            os.close(self.pipe)
            if self._left:
                number = self._left.pop(0)
                why = f"ended with status {status}" if ended else f"took more than {LONGEST:.0f} s"
                yield number, "fault", why
            self.is_busy = bool(self._left)
            if self.is_busy:
                self._start()


def report(outcome: Outcome) -> str:
    """Return the counts by target, and the faults."""
    lines = [f"{count:6d}  {name}" for name, count in sorted(outcome.counts.items())]
    total: dict[str, Any] = Counter()
    for name, count in outcome.counts.items():
        total[name.rpartition(": ")[2]] += count
    return "\n".join([*lines, f"total: {dict(total)}"])


def check_sample(target: Target, folder: Path) -> None:
    """Fail if the valid sample of a target is not accepted."""
    target.around(folder)
    path = folder / target.file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(target.sample)
    assert not target.read(folder)


def check_run(seed: int, inputs: int, targets: Sequence[Target]) -> None:
    """Fail if an input of a run violates an invariant, or few of them are bad."""
    outcome = run(seed, range(inputs), targets)
    assert not outcome.faults, "\n".join(outcome.faults[:10])
    assert sum(outcome.counts.values()) == inputs
    refused = sum(count for name, count in outcome.counts.items() if name.endswith("refused"))
    assert refused > inputs / 2, "hardly anything is spoiled"
