"""Jobs that the harness carries out, and references, as the rules see them."""

from __future__ import annotations

from dataclasses import dataclass

from ..plan import targets
from ..plan.jobs import Job
from ..runs import commands, jobs, verify
from .call import Invocation, checked
from .internals import Snakemake, Wildcards, for_rules
from .provisioning import Provisioning
from .work import Work


@dataclass(frozen=True)
class JobTexts:
    """Shell command of the harness for a job, and its label.

    No tuple: Snakemake would note its values.
    """

    command: str
    label: str


class Jobs:
    """Inputs, command, label and priority of a job.

    ``first``: priority of jobs that precede all runs, also those of later rounds. ``priority``:
    function that returns a job's priority; 0 in a dry run, which shows all jobs at once, because
    Snakemake calls it for each.
    """

    def __init__(
        self, work: Work, provisioning: Provisioning, call: Invocation, snakemake: Snakemake
    ) -> None:
        self._work, self._provisioning, self._call = work, provisioning, call
        self.first = work.plan.places + 1
        self.priority = 0 if snakemake.is_dry_run else self._priority
        self._early = work.early.name if work.early else None

    @for_rules
    def texts(self, wildcards: Wildcards) -> JobTexts:
        """Return command and label, by one function: Snakemake's call of each takes a while."""
        job = self._job(wildcards)
        return JobTexts(self._command(job), job.title)

    def _command(self, job: Job) -> str:
        plan = self._work.plan
        before = self._provisioning.preparation(job)
        if job.kind == "run":
            before += commands.attempts(plan, job.software, self._provisioning.framebench)
        return self._provisioning.harness(job, before)

    @for_rules
    def before(self, wildcards: Wildcards) -> list[str]:
        """Return the files that a job waits for: the marker of its environment, if that is to be
        built."""
        self._call.check_measurement()
        work, job = self._work, self._job(wildcards)
        return [] if work.is_measured(job) else work.inputs(self._provisioning.environment(job))

    @for_rules
    def _priority(self, wildcards: Wildcards) -> int:
        """Return the priority of a job.

        Searches precede all runs, so that those with the largest batches are interleaved with the
        others. Runs follow the order of the plan, and verifications of small models all runs.
        """
        job = self._job(wildcards)
        if job.kind == "run" and job.path == self._early:
            return self.first + 2
        if job.kind == "run":
            return self._work.plan.places - self._work.run(job).position
        verifications = self._work.verifications
        if job.kind == "verification" and job.path in verifications:
            later = len(verifications) - list(verifications).index(job.path)
            return 0 if verifications[job.path].is_short else later
        return self.first if job.kind == "search" else 0

    def _job(self, wildcards: Wildcards) -> Job:
        job = self._work.job(wildcards)
        assert job is not None, "rules ask for known jobs only"
        return job


class VerificationJobs:
    """Checks of the call, and references. ``script``: computes a reference."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self.script = f"{work.plan.scripts}/reference"

    @for_rules
    def reference_arguments(self, wildcards: Wildcards) -> list[str]:
        work = self._work
        every = [*work.verifications.values(), *work.small_verifications.values()]
        verification = next(
            verification for verification in every if verification.reference == wildcards.reference
        )
        return verify.reference_arguments(work.plan, verification)

    @for_rules
    def reference(self, wildcards: Wildcards) -> list[str]:
        """Return the reference folders of a verification, or of several; a user's own model has
        none."""
        work, job = self._work, self._work.job(wildcards)
        if job is None or work.is_measured(job):
            return []
        named = [each for each in job.parts or [job] if each.kind == "verification"]
        folders = {
            jobs.reference_folder(work.plan, work.catalog, work.verification(each))
            for each in named
        }
        return work.inputs(sorted(filter(None, folders)))

    @for_rules
    def all(self, wildcards: Wildcards) -> list[str]:
        """Return the missing full-size verification records."""
        work = self._work
        checked(targets.check_measurement, work.plan, "a target that measures")
        return work.inputs(work.files_of("verification", work.verifications))

    @for_rules
    def small(self, wildcards: Wildcards) -> list[str]:
        """Return files for the missing records of small models and peak-FLOPS benchmarks."""
        return self._work.inputs(self._work.checks)
