"""Progress view of a call: a line for each result, and a status line.

The driver makes the view when it knows the jobs, and sends it in a log record to the logger plugin,
which passes Snakemake's events on to it. Without the plugin the view stays silent, and Snakemake
prints its own lines.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from logging import LogRecord
from pathlib import Path
from typing import Any, TextIO

from core.text import duration

from ..plan.job import NOUNS, Job, count_of, name_of
from . import status_lines
from .screen import Screen
from .status_lines import RunOutcome, end_of_log, figures_in, outcome_of

#: Kinds of jobs with a line each; others are only counted in the status line.
_WITH_LINE = ("run", "search")


class ProgressView:
    """Progress of a call.

    ``jobs``: those known at the start; ``results``: folder, below which jobs without a line write.
    ``budget``: seconds of measuring, None without one. ``at_once``: seconds of work done per
    second. ``here``: jobs start when Snakemake says so. On a cluster they wait first, and their
    durations come from records."""

    def __init__(
        self,
        jobs: Iterable[Job],
        results: str,
        budget: float | None,
        at_once: float,
        here: bool,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._lock = threading.RLock()
        self._jobs: dict[str, Job] = {}
        self._results, self._budget = results, budget
        self._at_once = at_once
        self._left: dict[str, Job] = {}
        #: Seconds that jobs took, and those expected of them, by kind.
        self._took, self._expected = defaultdict[str, float](float), defaultdict[str, float](float)
        self._total: Counter[str] = Counter()
        self._done: Counter[str] = Counter()
        self._failed, self._here = 0, here
        self._is_stopping = False
        self._running: dict[int, tuple[Job, float]] = {}
        self._built: list[str] = []
        self._verified: list[Path] = []
        #: Frameworks whose missing features were already reported.
        self._lacking: set[str] = set()
        self._ahead: list[str] = []
        self._now = now
        #: Seconds of measuring until ``_since``, and running jobs whose time does not count as
        #: measuring.
        self._counted, self._since, self._apart = 0.0, now(), set[int]()
        self._screen: Screen | None = None
        self._drained = threading.Event()
        self.add(jobs)

    def add(self, jobs: Iterable[Job]) -> None:
        """Add jobs that are not known yet."""
        with self._lock:
            named = {job.name: job for job in jobs if job.name not in self._jobs}
            self._jobs.update(named)
            new = [part for job in named.values() for part in job.parts or [job]]
            self._left.update((job.name, job) for job in new)
            self._total.update(job.kind for job in new)

    def count(self, kind: str) -> int:
        """Return the number of jobs of a kind."""
        return self._total[kind]

    def counts(self) -> str:
        """Return the number of jobs of each kind but environments, as text."""
        kinds = [kind for kind in NOUNS if kind != "environment"]
        return ", ".join(
            count_of(self._total[kind], kind)
            for kind in kinds
            if self._total[kind] > (kind == "tables")
        )

    @property
    def left(self) -> float:
        """Seconds until all jobs are done. Estimates are corrected by the durations of jobs of the
        same kind in this call."""
        now, work = self._now(), 0.0
        # On a cluster, jobs wait before they start.
        begun = {job.name: at for job, at in self._running.values()} if self._here else {}
        for name, job in self._left.items():
            expected = self._expected[job.kind]
            ratio = self._took[job.kind] / expected if expected else 1.0
            work += max(0.0, ratio * job.seconds - (now - begun.get(name, now)))
        return work / self._at_once

    def clock(self) -> float:
        """Return the seconds of measuring so far, without building environments."""
        with self._lock:
            running = 0.0 if self._apart else max(0.0, self._now() - self._since)
            return self._counted + running

    def status(self) -> str:
        """Return the status line."""
        with self._lock:
            if len(self._built) < self._total["environment"]:
                return status_lines.environments(self._total["environment"], self._built)
            parts = list(self._ahead)
            if self._budget is None:
                parts = [f"about {duration(self.left)} left", *self._done_of_all()]
            running = [job.label for job, _ in self._running.values() if job.kind != "tables"]
            parts += [f"now: {running[0]}"] if running else []
            return status_lines.progress(self.clock(), self._budget, parts, self._failed)

    def _done_of_all(self) -> list[str]:
        return [
            f"{self._done[kind]} of {count_of(self._total[kind], kind)}"
            for kind in NOUNS
            if self._done[kind] < self._total[kind] > (kind == "tables")
        ]

    # Called by the logger plugin, from the one thread that prints.

    def attach(self, stream: TextIO, is_terminal: bool) -> None:
        """Set the output stream."""
        self._screen = Screen(stream, is_terminal, self.status)

    def say(self, text: str) -> None:
        """Print a message of Snakemake."""
        if self._screen and text:
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

    def begin_round(self, jobs: Iterable[Job], ahead: list[str]) -> None:
        """Add the jobs of a round, and show its description."""
        self.add(jobs)
        with self._lock:
            self._ahead = ahead
        if self._screen:
            self._screen.show_status(self._now(), is_due=True)

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
        if job is None or job.kind == "tables":
            self.say(status_lines.verified(self._verified))
            self._verified = []
        if job is None:
            made = map(str, said.get("output") or ())
            return any(path.startswith(f"{self._results}/") for path in made)
        with self._lock:
            self._running[int(said["jobid"])] = (job, now)
            if job.kind == "environment":
                self._counted, self._since = self.clock(), now
                self._apart.add(int(said["jobid"]))
        self._show(now)
        return True

    def _ends(self, number: int, now: float) -> bool:
        job, started = self._running.get(number, (None, now))
        for part in job.parts or [job] if job else []:
            outcome = outcome_of(Path(part.record)) if part.record else RunOutcome("ok")
            self._over(number, part, started, now, outcome)
        return job is not None

    def _breaks(self, number: int, now: float) -> bool:
        """Show a failed job, and return whether that is enough.
        On a cluster it is not, because Snakemake knows more than the job's log."""
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
        seconds = now - started
        is_shared = job.name not in self._jobs  # with other parts of a job
        if (is_shared or not self._here) and outcome.wall_seconds is not None:
            seconds = outcome.wall_seconds
        is_bad = outcome.status not in ("ok", "unsupported")
        with self._lock:
            self._running.pop(number, None)
            if number in self._apart:
                self._apart.remove(number)
                self._since = now
            self._done[job.kind] += 1
            self._failed += is_bad
            if self._left.pop(job.name, None):
                self._took[job.kind] += seconds
                self._expected[job.kind] += job.seconds
            if job.kind == "environment":
                self._built.append(job.path.rpartition("-")[0])
        if job.kind == "verification" and job.record:
            self._verified.append(Path(job.record))
        self._say_result(job, outcome, is_bad)
        self._show(now)

    def _say_result(self, job: Job, outcome: RunOutcome, is_bad: bool) -> None:
        """Print the line of a run or search, or of another job that failed.
        If a framework lacks a feature, one line says so for all its runs."""
        if not self._screen:
            return
        if job.kind == "environment" and not is_bad:
            if len(self._built) == self._total["environment"]:
                self.say(status_lines.environments(len(self._built), self._built))
            return
        framework = job.software.partition("@")[0]
        is_said = outcome.status == "unsupported" and framework in self._lacking
        if is_said or not (is_bad or job.kind in _WITH_LINE):
            return
        if outcome.status == "unsupported":
            self._lacking.add(framework)
        repeats = figures_in(Path(job.record).parent) if job.kind == "run" else []
        lines = [status_lines.result(self.clock(), job.label, outcome, repeats)]
        lines += end_of_log(Path(job.log)) if is_bad and job.log else []
        self._screen.say("\n".join(lines))

    def _show(self, now: float) -> None:
        if self._screen:
            self._screen.show_status(now)
