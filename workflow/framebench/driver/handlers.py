"""Handlers that Snakemake calls before the first job and after the last."""

from __future__ import annotations

import atexit
import contextlib
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from core import bounded
from core.text import printable

from ..config.validation import ConfigError
from ..plan import call_text, plan_text
from ..plan.job import Job, label_cases, name_of
from ..plan.plan import Plan
from ..records import sidecars
from ..records.record_sets import RecordsError
from ..runs import forecast, slurm
from ..terminal import closing, screen
from ..terminal.status_lines import RunOutcome, outcome_of
from ..terminal.view import ProgressView
from .call import checked, refuse, warn
from .signals import StopSignals, end_descendants

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
        self._signals = StopSignals()
        self._view: ProgressView | None = None
        #: True while the call measures and its closing lines are still to be printed.
        self._measures = False
        #: True if the exit status depends on failed runs.
        self._judges = False
        self._is_over = threading.Event()

    def start(self, log: Sequence[str]) -> None:
        """Prepare the call for measuring, if it measures."""
        if not self._driver.has_begun:
            return
        stop_starting = signal.getsignal(signal.SIGTERM)
        self._signals.watch(lambda: self._stop(stop_starting))
        waiting = self._call.jobs_to_run()
        self._judges = any(rule == _OUTCOME for rule, _ in waiting)
        state, plan = self._driver.state, self._driver.state.plan
        found = (state.table.find(name_of(wildcards, rule)) for rule, wildcards in waiting)
        known = [job for job in found if job]
        submitted = [job for job in known if job.nodes]
        if not submitted:
            return
        self._measures = True
        # After an error of Snakemake itself no handler is called.
        atexit.register(self._close, [])
        if plan.settings.cluster:
            self._prepare_cluster(submitted, log)
        elif not self._call.runs_here:
            refuse(
                "config: cluster: found nothing, but jobs would not run on this machine; allowed "
                "with such an executor: a description of the cluster, as in --workflow-profile "
                "profiles/slurm. docs/cluster.md says which executors run what"
            )
        for line in plan_text.other_machine_lines(plan):
            warn(line)
        # On a cluster the budget is node time, which no clock shows.
        budget = None if plan.settings.cluster else plan.settings.budget
        view = self._view = ProgressView(
            known, state.results, budget, forecast.at_once(plan), self._call.runs_here
        )
        state.clock, state.on_growth = view.clock, self._show_round
        lines = call_text.opening(plan, view.count("environment"), view.counts(), view.left)
        # Our logger plugin shows the view; other loggers show its text.
        self._call.send({"framebench_view": view}, "\n".join(lines))
        if budget and plan.pending:
            view.begin_round((), call_text.ahead(plan, plan.pending))

    def success(self) -> None:
        """Show new results, and exit with 1 after a failed run."""
        self._end_view()
        self._measures = False
        failed = self._failed() if self._judges else {}
        # Exit functions run in reverse order, after Snakemake's last output.
        if failed:
            atexit.register(_say, closing.failures(failed, len(self._driver.state.plan.runs)))
        logs = self._driver.settings.results / "logs"
        for summary in (logs / "tables.log", logs / "report.log"):
            if summary.exists() and summary.stat().st_mtime >= self._started:
                columns = screen.columns_of(sys.stderr)
                lines = bounded.read_text(summary).splitlines()
                atexit.register(_say, ["", *(screen.wrapped(line, columns) for line in lines)])
        if failed:
            raise SystemExit(1)

    def error(self, log: Sequence[str]) -> None:
        """Note runs without a record, make tables and report of the records, and print how to
        continue."""
        self._is_over.set()
        self._end_view()
        if self._measures:
            logged = "".join(bounded.read_end(path, bounded.LARGEST_FILE) for path in log)
            begun = self._note_interruptions(logged)
            is_reported = self._report(logged)
            self._close(begun, is_reported)
        self._signals.ignore()
        raise SystemExit(self._signals.status or 1)

    def _failed(self) -> dict[str, RunOutcome]:
        """Return the outcome of each failed run, by label and repeat."""
        plan = self._renewed()
        named = label_cases(plan.cases, plan.larger)
        return {
            run._replace(label=named[run.case]).title: outcome_of(Path(run.output))
            for run in closing.failed(plan.runs)
        }

    def _renewed(self) -> Plan:
        """Return the plan with the records that exist now; the old plan if they cannot be read."""
        try:
            return self._driver.state.next_plan()
        except (ConfigError, RecordsError, OSError) as error:
            warn(str(error))
            return self._driver.state.plan

    def _stop(self, stop_starting: object) -> None:
        """Stop running jobs after a signal; Snakemake then calls the handler of errors.

        ``stop_starting``: Snakemake's own signal handler, after which it starts no further job.
        """
        if self._view:
            self._view.stop()
        if not self._call.runs_here:
            raise KeyboardInterrupt  # the executor cancels its jobs
        if callable(stop_starting):
            stop_starting(signal.SIGTERM, None)
        # Done outside the signal handler, which may have interrupted the holder of a lock.
        threading.Thread(target=end_descendants, args=(self._is_over,), daemon=True).start()

    def _note_interruptions(self, logged: str) -> list[str]:
        """Note the runs that ended without a record, and return their labels."""
        table, settings = self._driver.state.table, self._driver.settings
        try:
            if settings.cluster and self._signals.received:
                slurm.cancel(settings.results)
        except slurm.SlurmError as error:
            warn(str(error))
        try:
            found = sidecars.note_interruptions(logged, settings.results)
        except OSError as error:
            warn(f"{error.filename or settings.results}: {error.strerror}")
            return []
        for message in slurm.refusals(logged) if settings.cluster else ():
            warn(message)
        begun = {entry.run: table.find(f"run/{entry.run}") for entry in found}
        return [job.title if job else name for name, job in begun.items()]

    def _report(self, logged: str) -> bool:
        """Make tables and report of the existing records, if the call was to make them; return
        whether that succeeded."""
        asked = _REPORTING & {rule for rule, _ in self._call.jobs_to_run()}
        if not self._signals.received:
            asked = {rule for rule in asked if f"Error in rule {rule}:" not in logged}
        results = self._driver.settings.results
        if not asked or not any((results / "runs").rglob("*.json")):
            return False
        words = ["report", "--records", f"{results}/runs", "--results", str(results)]
        call = [*self._driver.lookups.framebench, *words]
        # Started in its own session, so that another Ctrl-C does not reach it; its output precedes
        # ours.
        ran = subprocess.run(call, stdout=sys.stderr, start_new_session=True, check=False)
        return ran.returncode == 0

    def _close(self, begun: Sequence[str], is_reported: bool = False) -> None:
        """Print once the summary of a call: finished and missing runs, and how to continue."""
        if not self._measures:
            return
        self._measures = False
        plan = self._renewed()
        _say(
            closing.unfinished(
                [run.status for run in plan.runs],
                len(plan.unsearched),
                begun,
                self._call.command,
                f"{self._driver.results}/report.html" if is_reported else "",
            )
        )

    def _prepare_cluster(self, submitted: Sequence[Job], log: Sequence[str]) -> None:
        results, plan = self._driver.settings.results, self._driver.state.plan
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
        # Jobs that a time budget adds are counted as a whole.
        reserve = () if plan.settings.budget else plan.reserve
        further = self._driver.state.table.rows(reserve)
        checked(forecast.check_node_hours, plan, [*submitted, *further])
        slurm.note("".join(bounded.read_end(path, bounded.LARGEST_FILE) for path in log), results)

    def _show_round(self, runs: Sequence[Job], jobs: Iterable[Job]) -> None:
        """Show the jobs of a round."""
        if self._view:
            self._view.begin_round(jobs, call_text.ahead(self._driver.state.plan, runs))

    def _end_view(self) -> None:
        """End the view before the call's closing output."""
        if self._view:
            self._view.end(self._call.send)


def _say(lines: Iterable[str]) -> None:
    """Print lines to stderr; a closed terminal or a full disk is ignored."""
    with contextlib.suppress(OSError, ValueError):
        for line in lines:
            print(printable(line), file=sys.stderr)
        sys.stderr.flush()
