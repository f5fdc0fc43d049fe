"""Handlers that Snakemake calls before the first job and after the last."""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from core import bounded
from core.text import printable

from ..config.validation import ConfigError
from ..plan import labels, limits, noting, plan_text, repeats
from ..plan.jobs import Job, kind_of
from ..plan.planning import Plan
from ..records.record_sets import RecordsError
from ..records.sidecars import calls, interruptions
from ..runs import partial, private_variables, requests, slurm, slurm_nodes
from ..terminal import closing, screen
from ..terminal.closing import Failed
from ..terminal.nouns import NOUNS
from ..terminal.outcome import outcome_of
from .call import Invocation, checked, refuse, warn
from .internals import Snakemake, SnakemakeJob, one_by_one
from .progress import Progress
from .provisioning import Provisioning
from .resources import Resources
from .signals import StopSignals
from .tables import Tables
from .work import Work


class Handlers:
    """Handlers of a call. ``log``: paths of Snakemake's logs so far."""

    def __init__(
        self,
        work: Work,
        call: Invocation,
        resources: Resources,
        provisioning: Provisioning,
        tables: Tables,
        snakemake: Snakemake,
        signals: StopSignals,
    ) -> None:
        self._work, self._resources, self._tables = work, resources, tables
        self._provisioning, self._snakemake = provisioning, snakemake
        self._outlook = Progress(work, snakemake, tables.report)
        self._started = time.time()
        self._signals = signals
        #: Snakemake's own signal handler, after which it starts no further job.
        self._start_no_more: object = None
        #: True while the call measures and its closing lines are still to be printed.
        self._measures = False
        #: True if the exit status depends on failed runs.
        self._judges = False
        self._is_reported = False
        self._interrupted: list[str] = []
        if call.starts and (work.plan.settings.side_by_side or work.plan.settings.cluster):
            snakemake.select_among(self._startable)
        if call.starts:
            snakemake.track_submissions()

    def start(self, log: Sequence[str]) -> None:
        """Prepare the call for measuring, if it measures."""
        jobs = self._snakemake.jobs_to_run()
        self._start_no_more = signal.getsignal(signal.SIGTERM)
        self._signals.watch(self._stop)
        self._snakemake.watch_jobs(lambda wildcards: kind_of(wildcards) == "environment")
        self._judges = any(self._tables.outcome in map(str, job.output) for job in jobs)
        if not any(self._submitted(jobs)):
            return
        self._measures = True
        # After an error of Snakemake itself no handler is called.
        atexit.register(self._close)
        plan = self._work.plan
        if self._work.is_locked:  # however this call ends
            atexit.register(private_variables.remove, plan.settings.results)
        if plan.settings.cluster:
            self._prepare_cluster(jobs, log)
        elif not self._snakemake.runs_here:
            refuse(
                "config: cluster: found nothing, but jobs would not run on this machine; allowed "
                "with such an executor: a description of the cluster, as in --workflow-profile "
                "profiles/slurm. docs/cluster.md says which executors run what"
            )
        try:
            suite = plan.settings.suite.name
            calls.note(plan.settings.results, suite, self._snakemake.command)
            noting.note(plan)
        except OSError as error:
            refuse(f"{error.filename or plan.settings.results}: {error.strerror}")
        for line in plan_text.of_other_machines(plan):
            warn(line)
        self._outlook.show(jobs)
        self._snakemake.rest_between_jobs()

    def success(self) -> None:
        """Show new results, and exit with a command's non-zero status, or with 1 after a failed
        run."""
        self._outlook.end()
        self._measures = False
        closing_lines, status = self._verdict()
        # Exit functions run in reverse order, after Snakemake's last output.
        atexit.register(_say, closing_lines)
        logs = self._work.plan.settings.results / "logs"
        for summary in (logs / "tables.log", logs / "report.log"):
            if summary.exists() and summary.stat().st_mtime >= self._started:
                columns = screen.columns_of(sys.stderr)
                lines = bounded.read_text(summary).splitlines()
                atexit.register(_say, ["", *(screen.wrapped(line, columns) for line in lines)])
        if status:
            raise SystemExit(status)

    def error(self, log: Sequence[str], made_by: Mapping[str, str]) -> None:
        """Note runs without a record, make tables and report of the records, and print how to
        continue.

        ``made_by``: command of each rule for tables and report, by the rule's name.
        """
        if self._snakemake.is_dry_run:
            return
        self._outlook.end()
        if self._measures:
            self._note_interruptions(log)
            self._report(made_by)
            self._close()
        self._signals.ignore()
        if self._signals.received or not self._snakemake.is_module:
            raise SystemExit(self._signals.status or 1)

    def _verdict(self) -> tuple[list[str], int]:
        """Return closing lines and exit status of a call that completed all jobs."""
        if status := self._tables.ended():
            return [], status
        failed = self._failed() if self._judges else []
        runs = len(self._work.plan.runs)
        return closing.failures(failed, runs), int(bool(failed))

    def _failed(self) -> list[Failed]:
        plan = self._renewed()
        named = labels.label_cases(plan.cases, plan.larger)
        runs = plan.settings.results / "runs"
        return [
            Failed(f"{named[run.case]}  repeat {run.repeat}", run.status, reason)
            for run in plan.runs
            if closing.is_failure(run.status)
            for reason in [outcome_of(runs / f"{run.name}.json").reason]
        ]

    def _renewed(self) -> Plan:
        """Return the plan with the records that exist now; the old plan if they cannot be read."""
        try:
            return self._work.renewed()
        except (ConfigError, RecordsError, OSError) as error:
            warn(str(error))
            return self._work.plan

    def _stop(self) -> None:
        """Stop running jobs after a signal."""
        self._interrupted = [self._outlook.label(job) for job in self._measuring()]
        self._outlook.stop()
        if callable(self._start_no_more):
            self._snakemake.stop(self._start_no_more)

    def _measuring(self) -> list[SnakemakeJob]:
        running = one_by_one(self._snakemake.running_jobs())
        return [job for job in running if self._kind(job)]

    def _note_interruptions(self, log: Sequence[str]) -> None:
        settings = self._work.plan.settings
        logged = _text_of(log)
        states = functools.partial(slurm.endings, logged) if settings.cluster else None
        try:
            interruptions.note(logged, settings.results, states)
        except OSError as error:
            warn(f"{error.filename or settings.results}: {error.strerror}")
        for message in slurm.refusals(logged) if settings.cluster else ():
            warn(message)

    def _report(self, made_by: Mapping[str, str]) -> None:
        """Make tables and report of the existing records, if the call was to make them."""
        kept = {job.rule.name for job in self._snakemake.jobs_to_run()}
        if not self._signals.received:
            kept -= {job.rule.name for job in self._snakemake.failed_jobs()}
        commands = [command for rule, command in made_by.items() if rule in kept]
        results = self._work.plan.settings.results
        if commands and any((results / "runs").rglob("*.json")):
            wait = self._signals.wait_for_report
            self._is_reported = partial.make(self._provisioning.framebench, commands, results, wait)

    def _close(self) -> None:
        """Print once the summary of a call: finished and missing runs, and how to continue."""
        if not self._measures:
            return
        self._measures = False
        plan = self._renewed()
        unfinished = self._snakemake.jobs_to_run()
        known = (self._work.job(job.wildcards) for job in unfinished)
        measuring = [job for job in known if job and job.record]
        missing = Counter(part.kind for job in measuring for part in job.parts or [job])
        missing["run"], missing["search"] = len(plan.pending), len(plan.unsearched)
        begun = [job for job in self._snakemake.failed_jobs() if self._kind(job)]
        begun = [job for job in begun if not os.path.exists(str(job.output[0]))]
        lines = closing.unfinished(
            [run.status for run in plan.runs],
            {name: missing[name] for name in NOUNS},
            list(dict.fromkeys([*self._interrupted, *map(self._outlook.label, begun)])),
            self._snakemake.command,
            self._tables.report if self._is_reported else "",
        )
        _say(lines)

    def _prepare_cluster(self, jobs: Sequence[SnakemakeJob], log: Sequence[str]) -> None:
        results = self._work.plan.settings.results
        if self._snakemake.runs_here:
            refuse(
                "config: cluster: found, but jobs would run on this machine; allowed with "
                "--workflow-profile profiles/slurm"
            )
        if arrays := self._snakemake.slurm_arrays:
            refuse(
                f"--slurm-array-jobs: found {arrays!r}; allowed: nothing, because all jobs of an "
                "array would measure the same run. For short runs: runs_per_allocation in "
                "profiles/slurm/cluster.yaml"
            )
        plan = self._work.plan
        # What a time budget adds is counted as a whole.
        further = map(self._work.job_of_run, () if plan.settings.budget else plan.reserve)
        asked = [job.request for job in [*self._submitted(jobs), *further] if job.request]
        checked(requests.check, plan, asked)
        self._resources.warn_of_those_without_effect()
        slurm.note(_text_of(log), results)
        if self._work.plan.settings.each_node:
            slurm_nodes.note(results, self._work.plan.capacity.unusable)
        limits.write_minutes(results, self._work.plan.minutes_by_folder)

    def _startable(self, waiting: Collection[SnakemakeJob]) -> list[SnakemakeJob]:
        """Return the jobs that may start: none before all of earlier rounds have started.

        On a cluster, where starting is queueing, earlier rounds must have ended if ``whole_rounds``
        is set.
        """
        startable = repeats.of_first_round(waiting, self._round)
        cluster = self._work.plan.settings.cluster
        if cluster and cluster.whole_rounds:
            return repeats.after_earlier_rounds(
                startable, self._snakemake.running_jobs(), self._round
            )
        return startable

    def _round(self, job: SnakemakeJob) -> int | None:
        """Return the repeat of a run's job, the first in a group of jobs; None for other jobs."""
        if job.is_group():
            rounds = (self._round(snakemake_job) for snakemake_job in job)
            return min((number for number in rounds if number is not None), default=None)
        known = self._work.job(job.wildcards)
        return self._work.run(known).repeat if known and known.kind == "run" else None

    def _kind(self, job: SnakemakeJob) -> str:
        """Return the kind of a job that measures; "" for another one."""
        known = self._work.job(job.wildcards)
        return known.kind if known and known.record else ""

    def _submitted(self, jobs: Iterable[SnakemakeJob]) -> list[Job]:
        """Return the jobs that measure or compute a reference, which a cluster gets."""
        known = (self._work.job(job.wildcards) for job in jobs)
        return [job for job in known if job and job.request]


def _say(lines: Iterable[str]) -> None:
    """Print lines to stderr; a closed terminal or a full disk is ignored."""
    with contextlib.suppress(OSError, ValueError):
        for line in lines:
            print(printable(line), file=sys.stderr)
        sys.stderr.flush()


def _text_of(logs: Sequence[str]) -> str:
    return "".join(bounded.read_end(path, bounded.LARGEST_FILE) for path in logs)
