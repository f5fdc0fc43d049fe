"""Progress view of a call: a line for each result, and a status line.

The driver makes the view when it knows the jobs, and sends it in a log record to the logger plugin,
which passes Snakemake's events on to it. Without the plugin the view stays silent, and Snakemake
prints its own lines.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from logging import LogRecord
from pathlib import Path
from typing import Any, TextIO

from ..plan.forecast import Forecast
from ..plan.jobs import Job, name_of
from . import status_lines
from .nouns import NOUNS, count_of
from .outcome import RunOutcome, end_of_log, outcome_of
from .screen import Screen

#: Kinds of jobs with a line each; others are only counted in the status line.
_WITH_LINE = ("run", "search")
#: Kinds of jobs that take a minute before any result; Snakemake's start message is shown.
_ANNOUNCED = ("environment",)


class ProgressView:
    """Progress of a call.
    ``at_once``: seconds of work done per second; ``may_grow``: more runs may be added; ``here``:
    jobs start when Snakemake says so. On a cluster they wait first, and their durations come from
    records."""

    def __init__(
        self,
        jobs: Iterable[Job],
        at_once: float,
        may_grow: bool,
        here: bool,
    ) -> None:
        self._lock = threading.RLock()
        self._jobs: dict[str, Job] = {}
        self._forecast = Forecast((), at_once)
        self._total: Counter[str] = Counter()
        self._done: Counter[str] = Counter()
        self._failed = 0
        self._may_grow, self._here = may_grow, here
        self._is_stopping = False
        self._running: dict[int, tuple[Job, float]] = {}
        self._start = time.time()
        self._screen: Screen | None = None
        self._drained = threading.Event()
        self.add(jobs)

    def add(self, jobs: Iterable[Job]) -> None:
        """Add jobs that are not known yet."""
        with self._lock:
            named = {job.name: job for job in jobs if job.name not in self._jobs}
            self._jobs.update(named)
            new = [part for job in named.values() for part in job.parts or [job]]
            self._forecast.add(new)
            self._total.update(job.kind for job in new)

    def counts(self) -> str:
        """Return the number of jobs of each kind, as text."""
        kinds = (kind for kind in NOUNS if self._total[kind] > (kind == "tables"))
        return ", ".join(count_of(self._total[kind], kind) for kind in kinds)

    @property
    def left(self) -> float:
        """Seconds until all jobs are done."""
        return self._forecast.left(time.time() - self._start)

    def status(self, width: int = 0) -> str:
        """Return the status line, at most ``width`` columns wide."""
        with self._lock:
            running = [job.label for job, _ in self._running.values()]
            return status_lines.status(
                self._done, self._total, self._failed, running, self.left, width
            )

    # Called by the logger plugin, from the one thread that prints.

    def attach(self, stream: TextIO, is_terminal: bool, is_coloured: bool) -> None:
        """Set the output stream."""
        self._screen = Screen(stream, is_terminal, is_coloured, self.status)

    def say(self, text: str) -> None:
        """Print a message of Snakemake."""
        if self._screen:
            self._screen.say(text)

    def takes(self, event: str, record: LogRecord) -> bool:
        """Show an event of Snakemake, and return whether the view handles it."""
        if record.__dict__.get("framebench_end") is self:
            self._drained.set()
            return True
        if event == "job_info":
            return self._begins(record.__dict__, record.created)
        if event == "job_finished":
            return self._ends(int(record.__dict__["job_id"]), record.created)
        if event == "job_error":
            return self._breaks(int(record.__dict__["jobid"]), record.created)
        return event == "group_info"

    def close(self) -> None:
        """Remove the status line for good."""
        if self._screen:
            self._screen.close()

    # Called by the driver.

    def stop(self) -> None:
        """Expect running jobs to be interrupted."""
        self._is_stopping = True

    def end(self, send: Callable[[dict[str, Any]], None]) -> None:
        """Wait until all events so far are shown, then remove the status line.
        ``send`` makes a log record with the given attributes."""
        if self._screen:
            send({"framebench_end": self})
            self._drained.wait(5)
            self.close()

    def _begins(self, said: dict[str, Any], now: float) -> bool:
        job = self._jobs.get(name_of(said.get("wildcards") or {}, said["rule_name"]))
        if job is None:
            return False
        with self._lock:
            self._running[int(said["jobid"])] = (job, now)
            if self._here:
                self._forecast.start(job.name, now - self._start)
        self._show(now)
        return job.kind not in _ANNOUNCED

    def _ends(self, number: int, now: float) -> bool:
        job, started = self._running.get(number, (None, now))
        if job is None:
            return False
        for part in job.parts or [job]:
            outcome = outcome_of(Path(part.record)) if part.record else RunOutcome("ok")
            self._over(number, part, started, now, outcome)
        return True

    def _breaks(self, number: int, now: float) -> bool:
        """Show a failed job, and return whether that is enough.
        On a cluster it is not: Snakemake knows more than the job's log."""
        job, started = self._running.get(number, (None, now))
        if job is None:
            return self._is_stopping
        if self._is_stopping:
            with self._lock:
                self._running.pop(number)
            self.say(f"{job.label} interrupted")
            return True
        reason = "ended without a record" if job.record else "see above or its log"
        failed = RunOutcome("failed", reason)
        for part in job.parts or [job]:
            is_made = part is not job and Path(part.record).exists()
            outcome = outcome_of(Path(part.record)) if is_made else failed
            self._over(number, part, started, now, outcome)
        return self._here

    def _over(self, number: int, job: Job, started: float, now: float, outcome: RunOutcome) -> None:
        seconds = now - started
        is_shared = job.name not in self._jobs  # with other parts of a job
        if (is_shared or not self._here) and outcome.wall_seconds is not None:
            seconds = outcome.wall_seconds
        is_bad = outcome.status not in ("ok", "unsupported")
        with self._lock:
            self._running.pop(number, None)
            self._done[job.kind] += 1
            self._failed += is_bad
            self._forecast.finish(job.name, seconds)
            position = f"{self._done[job.kind]}/{self._total[job.kind]}"
            position += "+" * (self._may_grow and job.kind == "run")
        if self._screen and (is_bad or job.kind in _WITH_LINE):
            lines = [status_lines.result(position, job.label, outcome, seconds)]
            lines += end_of_log(Path(job.log)) if is_bad and job.log else []
            self._screen.say("\n".join(lines), "red" if is_bad else "")
        self._show(now)

    def _show(self, now: float) -> None:
        if self._screen:
            self._screen.show_status(now)
