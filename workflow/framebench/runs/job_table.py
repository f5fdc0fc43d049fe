"""The jobs of a call: one table with a row for each, which the rules look up by name."""

from __future__ import annotations

import hashlib
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, partial

from core.case import Case

from ..config import own_model
from ..config.catalog import Catalog
from ..environments.soundness import is_sound
from ..plan import case_settings, estimates
from ..plan.job import FIRST, NO_CASE, Job, files_of, label_cases
from ..plan.planning import Plan
from ..records.verifications import SMALL
from . import commands, peak_flops, verify
from .verify import Verification

#: Rough seconds of a small reference, and of tables and report.
REFERENCE_SECONDS, TABLES_SECONDS = 1.0, 3.0
#: Most checks in a process: their arguments fit into one command line.
MOST_CHECKS = 50


class JobTable:
    """Jobs of a call by name. The table grows with its plan; a row stays as it was made.

    ``checks``: small verifications and peak-FLOPS benchmarks, which every call makes; ``full``:
    verifications that the target of that name makes.
    """

    def __init__(self, plan: Plan, catalog: Catalog) -> None:
        self.plan, self._catalog = plan, catalog
        self.checks: list[Job] = []
        self.full: list[Job] = []
        self._rows: dict[str, Job] = {}
        #: Runs of the plan, whose rows are completed when they are asked for.
        self._runs: dict[str, Job] = {}
        #: Verifications and peak-FLOPS benchmarks with a row: each is made once in a call.
        self._known: set[Verification | Case] = set()
        #: Job that makes a check together with others, by the name of the check.
        self._shared: dict[str, Job] = {}
        #: File that says that software is built, by the name of what is to be built.
        self._built: dict[str, str] = {}
        # With a time budget, one run need not wait for the environments of others, so that a first
        # figure comes soon.
        pending = plan.pending if plan.settings.budget else []
        on_gpus = plan.capacity.accelerator == "cuda"
        # On GPUs PyTorch's environment is the smallest download, and its files have hashes.
        self._early = min(
            pending,
            key=lambda run: (on_gpus and run.case.framework != "pytorch", run.seconds),
            default=None,
        )
        self._add_environments()
        for search in plan.searches:
            if search.result is None:
                # Before all runs, so that those with the largest batches are interleaved.
                self._add(
                    "search", search.name,
                    estimates.search_seconds(search.case, plan.settings, plan.capacity, catalog),
                    f"largest batch of {self._label(search.case)}", search.case,
                    case_settings.software(search.case, plan.settings.suite),
                    partial(commands.search_arguments, plan, search.case), FIRST,
                )  # fmt: skip
        log = f"{plan.settings.results}/logs/tables.log"
        self._rows["tables"] = Job("tables", "", TABLES_SECONDS, log=log, label="tables and report")
        self.grow(plan)

    def grow(self, plan: Plan) -> list[Job]:
        """Add what a later plan has more; return the jobs that make its new checks."""
        if plan.folders.keys() != self.plan.folders.keys():
            vars(self).pop("_labels", None)
        self.plan = plan
        self._runs.update((run.name, run) for run in [*plan.runs, *plan.reserve])
        before = len(self.checks)
        self._add_checks()
        return self.made_by(self.checks[before:])

    def find(self, name: str) -> Job | None:
        """Return the job of a name; None if the call has none."""
        return self.run(self._runs[name]) if name in self._runs else self._rows.get(name)

    def run(self, run: Job) -> Job:
        """Return the complete row of a run of the plan."""
        if job := self._rows.get(run.name):
            return job
        is_early = self._early is not None and run.name == self._early.name
        job = run._replace(
            label=self._label(run.case),
            waits_for=self._environment_of(run),
            priority=FIRST + 2 if is_early else run.priority,
            arguments=partial(commands.arguments, self.plan, run),
        )
        return self._rows.setdefault(job.name, job)

    def made_by(self, jobs: Iterable[Job]) -> list[Job]:
        """Return the jobs that make these: one for checks that share a process."""
        return [*dict.fromkeys(self._shared.get(job.name, job) for job in jobs)]

    def of_kind(self, kind: str) -> list[Job]:
        """Return all jobs of a kind; those runs alone that were asked for."""
        return [job for job in self._rows.values() if job.kind == kind]

    @property
    def to_do(self) -> list[Job]:
        """Jobs of a call for the plan, but for runs that depend on a pending search; [] if nothing
        is to be measured."""
        jobs = [*self.of_kind("search"), *map(self.run, self.plan.pending)]
        jobs += [job for job in self.checks if not job.status]
        files = {file for job in jobs for file in job.waits_for}
        first = [job for job in self._rows.values() if job.output in files and not job.status]
        return [*first, *jobs, self._rows["tables"]] if jobs else []

    def _add(
        self,
        kind: str,
        path: str,
        seconds: float,
        label: str,
        case: Case,
        software: str,
        arguments: Callable[[], list[str]],
        priority: int = 0,
        reference: str = "",
    ) -> Job:
        """Add a job, and return its row. It is done if its output exists; else it waits for its
        environment and for the ``reference``."""
        output, log = files_of(self.plan.settings.results, kind, path)
        status = "ok" if os.path.exists(output) else ""
        job = Job(
            kind, path, seconds, output, log, case, 0, status, software, label, priority,
            arguments=arguments,
        )  # fmt: skip
        if not status:
            references = (reference,) if reference else ()
            job = job._replace(waits_for=(*self._environment_of(job), *references))
        return self._rows.setdefault(job.name, job)

    def _environment_of(self, job: Job) -> tuple[str, ...]:
        """Return the file that says that the environment of a job is built; () if none is to be."""
        return () if job.status else tuple(filter(None, [self._built.get(job.software)]))

    def _add_environments(self) -> None:
        """Add a job for each environment that we build. They come before all runs, because those of
        a framework whose environment comes later would not be interleaved; that of the early run
        comes first."""
        plan, early = self.plan, self._early
        first = plan.software[early.software].file if early else None
        hashes = [] if plan.settings.require_hashes else ["--without-hashes"]
        for key, software in plan.software.items():
            file, marker = software.file, software.marker
            if file is None or marker is None:
                continue
            words = ["--file", str(file.path), "--marker", str(marker), *hashes]
            output, log = files_of(plan.settings.results, "environment", file.name)
            job = Job(
                "environment", file.name, estimates.ENVIRONMENT_SECONDS, output, log,
                status="ok" if is_sound(marker) else "",
                label=f"environment {file.name.rpartition('-')[0]}",
                priority=FIRST + (3 if first and first.name == file.name else 1),
                arguments=partial(list, words),
            )  # fmt: skip
            self._rows.setdefault(job.name, job)
            if not job.status:
                self._built[key] = output

    def _add_checks(self) -> None:
        """Add verifications and peak-FLOPS benchmarks of the cases in the plan. Those on one device
        share a process if they have software and variables in common."""
        plan, catalog = self.plan, self._catalog
        wanted = [each for each in verify.full_size(plan, catalog) if each not in self._known]
        full = verify.names(plan, catalog, wanted) if wanted else {}
        small = verify.small(plan, catalog, full) if full else {}
        together: dict[tuple[str, tuple[tuple[str, str], ...]], list[Job]] = defaultdict(list)
        new = []
        for name, verification in small.items():
            if verification not in self._known:
                new.append(self._verification(name, verification))
                if verification.scale == SMALL and verification.case.devices == 1:
                    together[verification.software, verification.variables].append(new[-1])
        self.full += [self._verification(name, each) for name, each in full.items()]
        self._known.update(full.values(), small.values())
        for name, case in peak_flops.names(plan).items():
            what = case._replace(model="", sequence_length=None)
            if what not in self._known:
                self._known.add(what)
                new.append(self._add(
                    "peak_flops", name, estimates.peak_seconds(case.framework, plan.capacity),
                    peak_flops.label(case), case, case.framework,
                    partial(peak_flops.arguments, plan, case),
                ))  # fmt: skip
                if case.devices == 1:
                    together[case.framework, ()].append(new[-1])
        self.checks += new
        if not plan.settings.cluster:
            for jobs in together.values():
                self._share([job for job in jobs if not job.status])

    def _verification(self, name: str, verification: Verification) -> Job:
        """Add a verification, and the reference that it needs."""
        plan, reference = self.plan, ""
        if verification.scale != own_model.SCALE:
            model, seed = verification.case.model, plan.settings.seed
            digest = verify.reference_digest(self._catalog, model, seed)
            reference = self._add(
                "reference", f"{verification.reference}-{digest}",
                REFERENCE_SECONDS * estimates.slowness(plan.capacity),
                f"reference of {verification.reference}", NO_CASE._replace(nodes=1), "",
                partial(verify.reference_arguments, plan, verification),
                FIRST + 3,  # before environments: the early run waits for its reference
            ).output  # fmt: skip
        return self._add(
            "verification", name, verify.seconds_of(plan, verification),
            f"verification of {verification}", verification.case, verification.software,
            partial(verify.arguments, plan, verification, reference), reference=reference,
        )  # fmt: skip

    def _share(self, jobs: Sequence[Job]) -> None:
        """Let checks share processes, as many as their number asks for."""
        for start in range(0, len(jobs), MOST_CHECKS):
            parts = tuple(jobs[start : start + MOST_CHECKS])
            if len(parts) > 1:
                names = " ".join(part.name for part in parts)
                digest = hashlib.sha256(names.encode()).hexdigest()[:8]
                path = f"{parts[0].path.partition('/')[0]}/{digest}"
                output, log = files_of(self.plan.settings.results, "checks", path)
                job = parts[0]._replace(
                    kind="checks", path=path, seconds=0.0,
                    label=f"{len(parts)} checks of {parts[0].software}", output=output, log=log,
                    waits_for=tuple(sorted({file for part in parts for file in part.waits_for})),
                    arguments=partial(commands.check_arguments, parts), parts=parts,
                )  # fmt: skip
                self._rows.setdefault(job.name, job)
                self._shared.update(dict.fromkeys((part.name for part in parts), job))

    def _label(self, case: Case) -> str:
        return self._labels.get(case) or str(case)

    @cached_property
    def _labels(self) -> dict[Case, str]:
        return label_cases(self.plan.cases, self.plan.larger)
