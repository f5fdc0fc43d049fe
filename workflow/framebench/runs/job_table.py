"""The jobs of a call: one table with a row for each, which the rules look up by name."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import partial

from core.case import Case

from ..config.catalog import SCALE, Catalog
from ..environments.building import is_sound
from ..plan import case_settings, estimates
from ..plan.job import FIRST, NO_CASE, Job, files_of, label_cases
from ..plan.plan import Plan
from ..records.verifications import SMALL
from . import checks, commands
from .checks import Verification

#: Rough seconds of a small reference, and of a verification of a full-size model.
REFERENCE_SECONDS, FULL_SECONDS = 1.0, 60.0
#: Most checks in a process: their arguments fit into one command line.
MOST_CHECKS = 50


class JobTable:
    """Jobs of a call by name. The table grows with its plan; a row stays as it was made.
    ``checks``: small verifications and peak-FLOPS benchmarks, which every call makes; ``full``:
    verifications that the target of that name makes."""

    def __init__(self, plan: Plan, catalog: Catalog) -> None:
        self.plan, self._catalog = plan, catalog
        self.checks: list[Job] = []
        self.full: list[Job] = []
        self._rows: dict[str, Job] = {}
        #: Verifications and peak-FLOPS benchmarks that have a row, because each is made once per
        #: call.
        self._known: set[Verification | Case] = set()
        #: Job that makes several checks, by the name of each check.
        self._shared: dict[str, Job] = {}
        #: Marker file of built software, by the name of its job.
        self._built: dict[str, str] = {}
        # With a time budget, one run does not wait for other runs' environments, so that a first
        # figure appears soon.
        pending = plan.pending if plan.settings.budget else []
        on_gpus = plan.capacity.accelerator == "cuda"
        # On GPUs PyTorch's environment is a small download, and its files have hashes.
        self._early = min(
            pending,
            key=lambda run: (on_gpus and run.case.framework != "pytorch", run.seconds),
            default=None,
        )
        self._add_environments()
        self._add_searches()
        self.grow(plan)

    def grow(self, plan: Plan) -> list[Job]:
        """Add the new jobs of a later plan; return those that make its new checks."""
        self.plan, before = plan, len(self.checks)
        early = self._early.name if self._early else ""
        new = [run for run in (*plan.runs, *plan.reserve) if run.name not in self._rows]
        for run in new:
            self._rows[run.name] = run._replace(
                waits_for=self._waits_for(run),
                priority=FIRST + 2 if run.name == early else run.priority,
                arguments=partial(commands.arguments, plan, run),
            )
        self._add_checks()
        return self.made_by(self.checks[before:])

    def find(self, name: str) -> Job | None:
        """Return the job with a name; None if the call has no such job."""
        return self._rows.get(name)

    def rows(self, runs: Iterable[Job]) -> list[Job]:
        """Return the complete rows of runs of the plan."""
        return [self._rows[run.name] for run in runs]

    def made_by(self, jobs: Iterable[Job]) -> list[Job]:
        """Return the jobs that make these jobs' outputs; checks in one process have one job."""
        return [*dict.fromkeys(self._shared.get(job.name, job) for job in jobs)]

    def jobs_of_kind(self, kind: str) -> list[Job]:
        """Return all jobs of a kind."""
        return [job for job in self._rows.values() if job.kind == kind]

    @property
    def to_do(self) -> list[Job]:
        """Pending jobs of a call, except runs that depend on a pending search."""
        jobs = [*self.jobs_of_kind("search"), *self.rows(self.plan.pending)]
        jobs += [job for job in self.checks if not job.status]
        files = {file for job in jobs for file in job.waits_for}
        first = [job for job in self._rows.values() if job.output in files and not job.status]
        return [*first, *jobs]

    def _add(self, job: Job, reference: str = "", is_done: bool | None = None) -> Job:
        """Add a job with its files, and return its row. It is done if its output exists, or as
        ``is_done`` says; otherwise it waits for its environment and for the ``reference``."""
        output, log = files_of(self.plan.settings.results, job.kind, job.path)
        done = os.path.exists(output) if is_done is None else is_done
        job = job._replace(output=output, log=log, status="ok" if done else "")
        job = job._replace(waits_for=job.waits_for or self._waits_for(job, reference))
        return self._rows.setdefault(job.name, job)

    def _waits_for(self, job: Job, reference: str = "") -> tuple[str, ...]:
        """Return the files that a job waits for: the marker of its environment, if it is to be
        built, and the reference."""
        built = self._built.get(job.software, "")
        return () if job.status else tuple(filter(None, [built, reference]))

    def _add_environments(self) -> None:
        """Add a job for each environment that we build. They come before all runs, because runs of
        a framework whose environment comes later would not be interleaved. The early run's
        environment comes first."""
        plan, early = self.plan, self._early
        first = plan.software[early.software].file if early else None
        hashes = [] if plan.settings.require_hashes else ["--without-hashes"]
        for key, software in plan.software.items():
            file, marker = software.file, software.marker
            if file is None or marker is None:
                continue
            words = ["--file", str(file.path), "--marker", str(marker), *hashes]
            job = Job(
                "environment", file.name, estimates.environment_seconds(file.path, plan.capacity),
                label=f"environment {file.name.rpartition('-')[0]}",
                priority=FIRST + (3 if first and first.name == file.name else 1),
                arguments=partial(list, words),
            )  # fmt: skip
            job = self._add(job, is_done=is_sound(marker))
            if not job.status:
                self._built[key] = job.output

    def _add_searches(self) -> None:
        """Add the pending searches. They come before all runs, so that those with the largest
        batches are interleaved."""
        plan = self.plan
        labels = label_cases(plan.cases) if plan.unsearched else {}
        for search in plan.unsearched:
            case = search.case
            start = estimates.start_seconds(case.framework, case.mode, case.compiler, plan.capacity)
            job = Job(
                "search", search.name, estimates.SEARCH_RUNS * start,
                case=case, label=f"largest batch of {labels[case]}", priority=FIRST,
                software=case_settings.software(case, plan.settings.suite),
                arguments=partial(commands.search_arguments, plan, case),
            )  # fmt: skip
            self._add(job)

    def _add_checks(self) -> None:
        """Add verifications and peak-FLOPS benchmarks of the cases in the plan. Checks on one
        device share a process if they have the same software and no variables."""
        plan, catalog = self.plan, self._catalog
        wanted = [each for each in checks.full_size(plan, catalog) if each not in self._known]
        full = checks.verification_names(plan, catalog, wanted)
        small = checks.small(plan, catalog, full)
        together: dict[str, list[Job]] = defaultdict(list)
        new = []
        for name, verification in small.items():
            if verification not in self._known:
                new.append(self._verification(name, verification))
                is_alone = verification.variables or verification.case.devices > 1
                if verification.scale == SMALL and not is_alone:
                    together[verification.software].append(new[-1])
        self.full += [self._verification(name, each) for name, each in full.items()]
        self._known.update(full.values(), small.values())
        for name, case in checks.peak_benchmarks(plan).items():
            what = case._replace(model="", sequence_length=None)
            if what not in self._known:
                self._known.add(what)
                job = Job(
                    "peak_flops", name, estimates.peak_seconds(case.framework, plan.capacity),
                    case=case, software=case.framework, label=f"peak of {name}",
                    arguments=partial(checks.peak_arguments, plan, case),
                )  # fmt: skip
                new.append(self._add(job))
                if case.devices == 1:
                    together[case.framework].append(new[-1])
        self.checks += new
        if not plan.settings.cluster:
            for jobs in together.values():
                self._share([job for job in jobs if not job.status])

    def _verification(self, name: str, verification: Verification) -> Job:
        """Add a verification, and the reference that it needs."""
        plan, reference = self.plan, ""
        if verification.scale != SCALE:
            model, seed = verification.case.model, plan.settings.seed
            digest = checks.reference_digest(self._catalog, model, seed)
            job = Job(
                "reference", f"{verification.reference}-{digest}",
                REFERENCE_SECONDS * estimates.slowness(plan.capacity),
                case=NO_CASE._replace(nodes=1), label=f"reference of {verification.reference}",
                priority=FIRST + 3,  # before environments, because the early run waits for this job
                arguments=partial(checks.reference_arguments, plan, verification),
            )  # fmt: skip
            reference = self._add(job).output
        case, is_small = verification.case, verification.scale == SMALL
        seconds = FULL_SECONDS
        if verification.is_short:
            seconds = estimates.start_seconds(
                case.framework, case.mode, case.compiler, plan.capacity, is_small
            )
        job = Job(
            "verification", name, seconds, case=case,
            software=verification.software, label=f"verification of {name}",
            arguments=partial(checks.verification_arguments, plan, verification, reference),
        )  # fmt: skip
        return self._add(job, reference)

    def _share(self, jobs: Sequence[Job]) -> None:
        """Distribute checks over as few processes as possible."""
        for start in range(0, len(jobs), MOST_CHECKS):
            parts = tuple(jobs[start : start + MOST_CHECKS])
            if len(parts) > 1:
                digest = checks.digest([part.name for part in parts])
                job = parts[0]._replace(
                    kind="checks", path=f"{parts[0].path.partition('/')[0]}/{digest}", seconds=0.0,
                    label=f"{len(parts)} checks of {parts[0].software}",
                    waits_for=tuple(sorted({file for part in parts for file in part.waits_for})),
                    arguments=partial(commands.check_arguments, parts), parts=parts,
                )  # fmt: skip
                shared = self._add(job, is_done=False)
                self._shared.update(dict.fromkeys((part.name for part in parts), shared))
