"""Handlers that Snakemake calls before the first job and after the last, and handlers of signals,
which end the call and its runs and report existing results."""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import psutil
from core import bounded, programs
from core.text import printable

from ..plan import plan_text, targets
from ..plan.job import Job, name_of
from ..records import sidecars
from ..runs import slurm
from ..terminal import call_text
from ..terminal.call_text import outcome_of
from ..terminal.view import ProgressView
from .call import checked, refuse, warn

if TYPE_CHECKING:
    from . import Driver

#: Rules that make tables and report.
_REPORTING = {"tables", "verification"}
#: Rule that marks a call whose runs all have a record.
_OUTCOME = "outcome"


class Handlers:
    """Handlers of a call."""

    def __init__(self, driver: Driver) -> None:
        self._driver, self._call = driver, driver.call
        self._started = time.time()
        #: First signal that stops the call; later ones do nothing.
        self._signal: signal.Signals | None = None
        #: Snakemake's own signal handler, after which it starts no further job.
        self._stop_starting: object = None
        self._view: ProgressView | None = None
        #: True while the call measures and its closing lines are still to be printed.
        self._measures = False
        self._log: Sequence[str] = ()
        #: True if the exit status depends on failed runs.
        self._judges = False
        self._is_over = threading.Event()

    def start(self, log: Sequence[str]) -> None:
        """Prepare the call for measuring, if it measures."""
        if not self._driver.has_begun:
            return
        self._log = log
        self._watch_signals()
        waiting = self._call.jobs_to_run()
        self._judges = any(rule == _OUTCOME for rule, _ in waiting)
        state, plan = self._driver.state, self._driver.state.plan
        found = (state.table.find(name_of(wildcards)) for _, wildcards in waiting)
        known = [job for job in found if job]
        submitted = [job for job in known if job.nodes]
        if not submitted:
            return
        if plan.settings.cluster:
            self._prepare_cluster(submitted)
        elif not self._call.runs_here:
            refuse(
                "config: cluster: found nothing, but jobs would not run on this machine; allowed "
                "with such an executor: a description of the cluster, as in --workflow-profile "
                "profiles/slurm. docs/cluster.md says which executors run what"
            )
        self._measures = True
        # At exit, so that it follows Snakemake's last output and errors in Snakemake itself, for
        # which it calls no handler.
        atexit.register(self._close)
        # On a cluster the budget is node time, which no clock shows.
        budget = None if plan.settings.cluster else plan.settings.budget
        at_once = plan.capacity.devices_per_node if plan.settings.side_by_side else 1
        here = self._call.runs_here
        view = self._view = ProgressView(known, state.results, budget, at_once, here)
        state.clock, state.on_growth = view.clock, self._show_round
        first = plan_text.opening(plan, view.counts(), view.left)
        # Our logger plugin displays the view; other loggers print its text.
        logging.getLogger("snakemake.logging").info(first, extra={"framebench_view": view})
        if budget and plan.pending:
            view.begin_round((), plan_text.ahead(plan, plan.pending))

    def success(self) -> None:
        """Show new results, and exit with 1 after a failed run."""
        self._measures = False
        statuses = self._statuses() if self._judges else []
        # Exit functions run in reverse order, after Snakemake's last output.
        if failed := call_text.failed(statuses):
            atexit.register(_say, call_text.failures(failed, len(statuses)))
        logs = self._driver.settings.results / "logs"
        for summary in (logs / "tables.log", logs / "report.log"):
            if summary.exists() and summary.stat().st_mtime >= self._started:
                atexit.register(_say, ["", *bounded.read_text(summary).splitlines()])
        if failed:
            raise SystemExit(1)

    def error(self) -> None:
        """End the call with the status of its signal."""
        self._is_over.set()
        if not self._signal:
            raise SystemExit(1)
        # Further signals would kill this process once Python has dropped its handlers.
        programs.ignore_signals(programs.ENDING_SIGNALS)
        raise SystemExit(128 + self._signal)  # as in shells

    def _statuses(self) -> list[str]:
        """Return the status of each run of the plan by its record; "" without one."""
        return [
            run.status or (outcome_of(path).status if (path := Path(run.output)).exists() else "")
            for run in self._driver.state.plan.runs
        ]

    def _watch_signals(self) -> None:
        """Handle signals that stop the call. Those that are ignored at the start (``nohup``) stay
        ignored."""
        if threading.current_thread() is not threading.main_thread():
            return
        self._stop_starting = signal.getsignal(signal.SIGTERM)
        for number in programs.ENDING_SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._stop)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        """Stop running jobs after a signal; Snakemake then calls the handler of errors."""
        if self._signal:
            return
        self._signal = signal.Signals(number)
        if self._view:
            self._view.stop()
        if not self._call.runs_here:
            raise KeyboardInterrupt  # the executor cancels its jobs
        # Done outside the signal handler, which may have interrupted the holder of a lock.
        threading.Thread(target=self._end_jobs, daemon=True).start()

    def _end_jobs(self) -> None:
        """Let Snakemake start no further jobs, and end the running ones."""
        if callable(self._stop_starting):
            self._stop_starting(signal.SIGTERM, None)
        _end_descendants(self._is_over)

    def _note_interruptions(self, logged: str) -> None:
        """Note the runs that ended without a record."""
        settings = self._driver.settings
        try:
            if settings.cluster and self._signal:
                slurm.cancel(settings.results)
        except slurm.SlurmError as error:
            warn(str(error))
        try:
            sidecars.note_interruptions(logged, settings.results)
        except OSError as error:
            warn(f"{error.filename or settings.results}: {error.strerror}")

    def _report(self, logged: str) -> bool:
        """Make tables and report of the existing records, if the call was to make them; return
        whether that succeeded."""
        asked = _REPORTING & {rule for rule, _ in self._call.jobs_to_run()}
        if not self._signal:
            asked = {rule for rule in asked if f"Error in rule {rule}:" not in logged}
        results = self._driver.settings.results
        if not asked or not any((results / "runs").rglob("*.json")):
            return False
        words = ["report", "--records", f"{results}/runs", "--results", str(results)]
        call = [*self._driver.lookups.framebench, *words]
        # Start the command in its own session, so that another Ctrl-C does not reach it; its output
        # precedes ours.
        ran = subprocess.run(call, stdout=sys.stderr, start_new_session=True, check=False)
        return ran.returncode == 0

    def _close(self) -> None:
        """End a call that has not succeeded: note runs without a record, make tables and report of
        the records, and say what is missing and how to continue."""
        if not self._measures:
            return
        logged = self._logged
        self._note_interruptions(logged)
        report = f"{self._driver.results}/report.html" if self._report(logged) else ""
        searches = self._driver.state.table.jobs_of_kind("search")
        missing = sum(not Path(job.output).exists() for job in searches)
        _say(call_text.unfinished(self._statuses(), missing, self._call.command, report))

    @property
    def _logged(self) -> str:
        """Text of Snakemake's log so far."""
        return "".join(bounded.read_end(path, bounded.LARGEST_FILE) for path in self._log)

    def _prepare_cluster(self, submitted: Sequence[Job]) -> None:
        if self._call.runs_here:
            refuse(
                "config: cluster: found, but jobs would run on this machine; allowed with "
                "--workflow-profile profiles/slurm"
            )
        if arrays := self._call.slurm_arrays:
            refuse(
                f"--slurm-array-jobs: found {arrays!r}; allowed: nothing, because all jobs of an "
                "array would measure the same run. For short runs: groups in "
                "profiles/slurm/config.yaml"
            )
        state = self._driver.state
        checked(targets.check_node_hours, state.plan, [*submitted, *state.further])
        slurm.note(self._logged, self._driver.settings.results)

    def _show_round(self, runs: Sequence[Job], jobs: Iterable[Job]) -> None:
        """Show the jobs of a round."""
        if self._view:
            self._view.begin_round(jobs, plan_text.ahead(self._driver.state.plan, runs))


def _say(lines: Iterable[str]) -> None:
    """Print lines to stderr; a closed terminal or a full disk is ignored."""
    with contextlib.suppress(OSError, ValueError):
        for line in lines:
            print(printable(line), file=sys.stderr)
        sys.stderr.flush()


def _end_descendants(is_over: threading.Event) -> None:
    """Ask all descendants in this process's group to end, each once, until ``is_over``."""
    asked = set[int]()
    while not is_over.wait(0.05):
        for process in psutil.Process().children(recursive=True):
            with contextlib.suppress(OSError):  # the process may have ended
                if process.pid not in asked and os.getpgid(process.pid) == os.getpgrp():
                    asked.add(process.pid)
                    os.kill(process.pid, signal.SIGTERM)
