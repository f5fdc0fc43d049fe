"""What is done before the first job and behind the last."""

from __future__ import annotations

import atexit
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from ..comparison import gate
from ..files import bounded
from ..plan import estimates, plan_text, side_by_side
from ..records.beside import calls, interruptions
from ..runs import partial, slurm, slurm_nodes
from .call import refuse, warn
from .internals import Job, Snakemake
from .outlook import Outlook
from .provisioning import Provisioning
from .resources import Resources
from .tables import Tables
from .work import Work, kind


class Handlers:
    """``log``: the paths of what Snakemake has logged by now."""

    def __init__(
        self,
        work: Work,
        resources: Resources,
        provisioning: Provisioning,
        tables: Tables,
        snakemake: Snakemake,
    ) -> None:
        self._work, self._resources, self._tables = work, resources, tables
        self._provisioning, self._snakemake = provisioning, snakemake
        self._outlook = Outlook(work, snakemake, tables.report)
        self._started = time.time()

    def start(self, log: Sequence[str]) -> None:
        """Prepare for measuring, where something is to be measured."""
        jobs = self._snakemake.jobs_to_run()
        if not any(kind(job.wildcards) for job in jobs):
            return
        plan = self._work.plan
        if plan.settings.cluster:
            self._prepare_cluster(log)
        try:
            suite = plan.settings.suite.name
            calls.note(plan.settings.results, suite, self._snakemake.command)
        except OSError as error:
            refuse(f"{error.filename}: {error.strerror}")
        for line in plan_text.of_other_machines(plan):
            warn(line)
        self._outlook.show(jobs)
        self._snakemake.rest_between_jobs()
        if plan.room or plan.settings.cluster:
            self._snakemake.select_among(self._startable)

    def success(self) -> None:
        """Show the answers, where they are new, and end with the status of ``compare`` or
        ``nodes``."""
        self._outlook.end()
        target, status = self._tables.status()
        if status:
            names = gate.NODE_NAMES if target == "nodes" else gate.NAMES
            # What is registered first comes last.
            atexit.register(warn, f"{target}: {names[status]} ({status})")
        for summary in map(Path, (self._tables.summary, self._tables.reported)):
            if summary.exists() and summary.stat().st_mtime >= self._started:
                # Below what Snakemake itself says when all is done.
                atexit.register(print, f"\n{bounded.read_text(summary)}", end="", file=sys.stderr)
        if status:
            raise SystemExit(status)

    def error(self, log: Sequence[str], made_by: Mapping[str, str]) -> None:
        """Note which runs have left no record, and make tables and report of what there is.
        ``made_by``: the command of each rule that makes these, by the rule's name."""
        if self._snakemake.is_dry_run:
            return
        self._outlook.end()
        logged = _text_of(log)
        settings = self._work.plan.settings
        states = slurm.states if settings.cluster else None
        try:
            interruptions.note(logged, settings.results, states)
        except OSError as error:
            warn(f"{error.filename}: {error.strerror}")
        kept = {job.rule.name for job in self._snakemake.jobs_to_run()}
        kept -= {job.rule.name for job in self._snakemake.failed_jobs()}
        commands = [command for rule, command in made_by.items() if rule in kept]
        partial.make(self._provisioning.framebench, commands, logged, settings.results)

    def _prepare_cluster(self, log: Sequence[str]) -> None:
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
        self._resources.warn_of_those_without_effect()
        slurm.note(_text_of(log), results)
        if self._work.plan.settings.each_node:
            slurm_nodes.note(results, self._work.plan.place.unusable)
        estimates.tell(results, self._work.plan.expected)

    def _startable(self, waiting: Collection[Job]) -> list[Job]:
        """Of a round, none before those of an earlier one have been started; on a cluster, where
        that means handed to its queue, none before they have ended, if that is asked for."""
        startable = side_by_side.of_first_round(waiting, self._round)
        cluster = self._work.plan.settings.cluster
        if cluster and cluster.whole_rounds:
            return side_by_side.behind(startable, self._snakemake.running_jobs(), self._round)
        return startable

    def _round(self, job: Job) -> int | None:
        """The repeat that a run's job is for, the first of several that share one; None of other
        jobs."""
        if job.is_group():
            rounds = (self._round(one) for one in job)
            return min((number for number in rounds if number is not None), default=None)
        return self._work.run(job.wildcards).repeat if kind(job.wildcards) == "run" else None


def _text_of(logs: Sequence[str]) -> str:
    return "".join(bounded.read_end(path, bounded.LARGEST_FILE) for path in logs)
