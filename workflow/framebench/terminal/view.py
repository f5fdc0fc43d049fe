"""Progress view of a call: a line for each result, and a status line, which a terminal rewrites in
place.

The driver makes the view when it knows the jobs, and sends it in a log record to the logger plugin,
which passes Snakemake's events on to it. Without the plugin the view stays silent, and Snakemake
prints its own lines.
"""

from __future__ import annotations

import contextlib
import shutil
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from logging import LogRecord
from pathlib import Path
from typing import Any, TextIO

from core.text import clock, duration

from ..plan.job import NOUNS, Job, count_of, name_of
from . import call_text
from .call_text import RunOutcome, end_of_log, figures_in, outcome_of

#: Kinds of jobs with a line each; others are only counted in the status line.
_WITH_LINE = ("run", "search")
#: Seconds after which the status line of a terminal is written anew.
_EVERY = 10.0
_CLEAR = "\r\033[K"


class ProgressView:
    """Progress of a call.

    ``jobs``: jobs known at the start; ``results``: folder; other jobs that write there are hidden.
    ``budget``: seconds of measuring, None without one. ``at_once``: jobs that run at a time.
    ``here``: jobs run on this machine."""

    def __init__(
        self,
        jobs: Iterable[Job],
        results: str,
        budget: float | None,
        at_once: int,
        here: bool,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._lock = threading.RLock()
        self._jobs: dict[str, Job] = {}
        #: Jobs by name, or the checks that share a job; and the seconds that each took.
        self._parts: dict[str, Job] = {}
        self._took: dict[str, float] = {}
        self._results, self._budget, self._at_once = results, budget, at_once
        self._here, self._is_stopping = here, False
        self._running: dict[int, tuple[Job, float]] = {}
        self._verified: list[Path] = []
        #: Frameworks whose missing features a line has reported.
        self._lacking: set[str] = set()
        self._ahead: list[str] = []
        self._now = now
        #: Seconds of measuring until ``_since``, and running jobs whose time does not count as
        #: measuring.
        self._counted, self._since, self._apart = 0.0, now(), set[int]()
        self._stream: TextIO | None = None
        self._is_terminal, self._closed = False, threading.Event()
        self.add(jobs)

    def add(self, jobs: Iterable[Job]) -> None:
        """Add jobs that are not known yet."""
        with self._lock:
            named = {job.name: job for job in jobs if job.name not in self._jobs}
            self._jobs.update(named)
            parts = (part for job in named.values() for part in job.parts or [job])
            self._parts.update((part.name, part) for part in parts)

    def counts(self) -> dict[str, int]:
        """Return the number of jobs of each kind."""
        return Counter(job.kind for job in self._parts.values())

    @property
    def left(self) -> float:
        """Seconds until all jobs are done. The times of finished jobs correct the estimates."""
        expected = sum(self._parts[name].seconds for name in self._took)
        ratio = sum(self._took.values()) / expected if expected else 1.0
        to_do = sum(job.seconds for job in self._parts.values()) - expected
        return ratio * to_do / self._at_once

    def clock(self) -> float:
        """Return the seconds of measuring so far, without building environments."""
        with self._lock:
            running = 0.0 if self._apart else max(0.0, self._now() - self._since)
            return self._counted + running

    def status(self) -> str:
        """Return the status line, such as ``4:10 of 10:00 · leads settled: 1 of 3 · next: ..``."""
        with self._lock:
            total, done = self.counts(), Counter(self._parts[name].kind for name in self._took)
            if done["environment"] < total["environment"]:
                return self._environments()
            if self._budget is None:
                parts = [clock(self.clock()), f"about {duration(self.left)} left"]
                parts += [
                    f"{done[kind]} of {count_of(total[kind], kind)}"
                    for kind in NOUNS
                    if done[kind] < total[kind]
                ]
            else:
                parts = [f"{clock(self.clock())} of {clock(self._budget)}", *self._ahead]
            running = [job.label for job, _ in self._running.values()]
            parts += [f"now: {running[0]}"] if running else []
            return " \N{MIDDLE DOT} ".join(parts)

    def _environments(self) -> str:
        """Return the line on environments: ``Environments: 2 of 9 built (jax, mxnet)``."""
        named = {
            name: job.path.rpartition("-")[0]
            for name, job in self._parts.items()
            if job.kind == "environment"
        }
        built = [named[name] for name in self._took if name in named]
        which = f" ({', '.join(built)})" if 0 < len(built) < len(named) else ""
        return f"Environments: {len(built)} of {len(named)} built{which}"

    # The logger plugin calls the methods below from the one thread that prints.

    def attach(self, stream: TextIO, is_terminal: bool) -> None:
        """Set the output stream."""
        self._stream, self._is_terminal = stream, is_terminal
        if is_terminal:
            threading.Thread(target=self._refresh, daemon=True).start()

    def say(self, text: str) -> None:
        """Print one or more lines above the status line."""
        if text:
            with self._lock:
                self._write(f"{text}\n")

    def takes(self, event: str, record: LogRecord) -> bool:
        """Show an event of Snakemake, and return whether the view handles it."""
        if event == "job_info":
            return self._begins(record.__dict__, record.created)
        if event == "job_finished":
            return self._ends(int(record.__dict__["job_id"]), record.created)
        if event == "job_error":
            return self._breaks(int(record.__dict__["jobid"]), record.created)
        return event == "group_info"

    def close(self) -> None:
        """Remove the status line for good."""
        with self._lock:
            if not self._closed.is_set():
                self._closed.set()
                if self._is_terminal:
                    self._write(_CLEAR)

    # The driver calls the methods below.

    def begin_round(self, jobs: Iterable[Job], ahead: list[str]) -> None:
        """Add the jobs of a round, and show its description."""
        self.add(jobs)
        with self._lock:
            self._ahead = ahead
        self._show(in_log=True)

    def stop(self) -> None:
        """Expect running jobs to be interrupted."""
        self._is_stopping = True

    def _begins(self, said: dict[str, Any], now: float) -> bool:
        job = self._jobs.get(name_of(said.get("wildcards") or {}))
        if job is None:
            self.say(call_text.verified(self._verified))
            self._verified = []
            made = map(str, said.get("output") or ())
            return any(path.startswith(f"{self._results}/") for path in made)
        with self._lock:
            self._running[int(said["jobid"])] = (job, now)
            if job.kind == "environment":
                self._counted, self._since = self.clock(), now
                self._apart.add(int(said["jobid"]))
        self._show()
        return True

    def _ends(self, number: int, now: float) -> bool:
        job, started = self._running.get(number, (None, now))
        for part in job.parts or [job] if job else []:
            outcome = outcome_of(Path(part.record)) if part.record else RunOutcome("ok")
            self._over(number, part, started, now, outcome)
        return job is not None

    def _breaks(self, number: int, now: float) -> bool:
        """Show a failed job, and return whether Snakemake's message is to be hidden.
        On a cluster it is shown, because it tells more than the job's log."""
        job, started = self._running.get(number, (None, now))
        if job is None:
            return self._is_stopping
        if self._is_stopping:
            with self._lock:
                self._running.pop(number)
            self.say(f"{job.title}  interrupted")
            return True
        reason = "ended without a record" if job.record else "see above or its log"
        for part in job.parts or [job]:
            is_made = part is not job and Path(part.record).exists()
            outcome = outcome_of(Path(part.record)) if is_made else RunOutcome("failed", reason)
            self._over(number, part, started, now, outcome)
        return self._here

    def _over(self, number: int, job: Job, started: float, now: float, outcome: RunOutcome) -> None:
        is_bad = outcome.status not in ("ok", "unsupported")
        with self._lock:
            self._running.pop(number, None)
            if number in self._apart:
                self._apart.remove(number)
                self._since = now
            self._took[job.name] = outcome.wall_seconds or now - started
        if job.kind == "verification" and job.record:
            self._verified.append(Path(job.record))
        self._say_result(job, outcome, is_bad)
        self._show()

    def _say_result(self, job: Job, outcome: RunOutcome, is_bad: bool) -> None:
        """Print the line of a run or search, or of another job that failed.
        For each framework, only the first missing feature has a line."""
        if not self._stream:
            return
        if job.kind == "environment" and not is_bad:
            if not (line := self._environments()).endswith(")"):
                self.say(line)
            return
        framework = job.software.partition("@")[0]
        is_said = outcome.status == "unsupported" and framework in self._lacking
        if is_said or not (is_bad or job.kind in _WITH_LINE):
            return
        if outcome.status == "unsupported":
            self._lacking.add(framework)
        repeats = figures_in(Path(job.record).parent) if job.kind == "run" else []
        lines = [call_text.result(self.clock(), job.label, outcome, repeats)]
        lines += end_of_log(Path(job.log)) if is_bad and job.log else []
        self.say("\n".join(lines))

    def _show(self, in_log: bool = False) -> None:
        """Show the status line on a terminal; in a log only if ``in_log`` is set."""
        with self._lock:
            if self._is_terminal:
                self._write("")
            elif in_log:
                self._write(f"{self.status()}\n")

    def _write(self, text: str) -> None:
        """Write text and status line in one call, so that nothing flickers.
        The cursor stays at the start of the status line, so that other output overwrites it. The
        line is cut below the terminal's width, because some terminals wrap a full line."""
        if not self._stream:
            return
        if self._is_terminal and not self._closed.is_set():
            status, room = self.status(), shutil.get_terminal_size().columns - 1
            status = status if len(status) <= room else f"{status[: room - 2]}.."
            text = f"{_CLEAR}{text}{status}\r"
        self._stream.write(text)
        self._stream.flush()

    def _refresh(self) -> None:
        while not self._closed.wait(_EVERY):
            # A vanished terminal stops no measurement.
            with self._lock, contextlib.suppress(OSError, ValueError):
                if not self._closed.is_set():
                    self._write("")
