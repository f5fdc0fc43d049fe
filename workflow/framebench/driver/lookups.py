"""Jobs as the rules see them: what they wait for, their command, order, cores and resources."""

from __future__ import annotations

import functools
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core import surroundings

from .. import PROJECT
from ..cases import fitting
from ..config.settings import Settings
from ..environments.software import Software
from ..environments.venvs import EnvironmentFile
from ..plan import case_settings
from ..plan.job import Job
from ..runs import commands, private_variables, verify
from .call import SnakemakeCall, Wildcards, refuse
from .work import Work

#: Priority of jobs before all runs; runs follow in the order of the plan, below it.
FIRST = 10_000_000


@dataclass(frozen=True)
class JobTexts:
    """Shell command of the harness for a job, and its label.

    No tuple: Snakemake would note its values.
    """

    command: str
    label: str


class Lookups:
    """Jobs of a call. ``work``: returns its work, which is known once a rule is looked at.

    ``framebench``: starts our command next to a run. ``driver``: starts a command that makes
    tables; with ``--sdm conda`` its packages come from ``workflow/envs/driver.yaml``.
    ``cores``: of a job that runs alone; ``threads``: of any job that measures. ``resources``: by
    name, those requested of the cluster, or the default folder of temporary files.
    """

    first = FIRST

    def __init__(
        self, settings: Settings, call: SnakemakeCall, work: Callable[[], Work], cores: int
    ) -> None:
        self._settings, self._call, self._work = settings, call, work
        described = settings.cluster
        self.cores = described.cores_per_node if described else cores
        self._cores_here = cores
        self.threads = self._share_of_cores if settings.side_by_side else self.cores
        entry = [str(PROJECT / "workflow" / "framebench")]
        # Isolated: our packages ignore PYTHONPATH and PYTHONHOME.
        self.framebench = [sys.executable, "-I", *entry]
        self.python = "python" if settings.deployment == "conda" else sys.executable
        self.driver = [self.python, "-I", *entry]
        # Snakemake's own value, which it would evaluate for each job.
        self.resources: dict[str, Any] = {"tmpdir": tempfile.gettempdir()}
        if described:
            self._cuda = fitting.accelerator_of(settings, described.machine) == "cuda"
            asked = described.asked(self._cuda, bool(settings.each_node))
            self.resources = {name: self._resource(name) for name in asked}
        elif call.default_resources:
            self.resources = {}
        self.container = self._image if settings.deployment == "apptainer" else None
        # Without --sdm conda Snakemake ignores it, but would call a function for each job.
        self.conda = self._conda if settings.deployment == "conda" else "../envs/driver.yaml"

    @functools.cached_property
    def work(self) -> Work:
        return self._work()

    def job(self, wildcards: Wildcards) -> Job:
        """Return the job of a rule that measures."""
        job = self.work.job(wildcards)
        assert job is not None, "rules ask for known jobs only"
        return job

    def before(self, wildcards: Wildcards) -> list[str]:
        """Return the files that a job waits for: the marker of its environment, if that is to be
        built."""
        job, work = self.job(wildcards), self.work
        if work.is_measured(job) or job.software not in work.to_build:
            return []
        return work.inputs([self._marker_of(job.software)])

    def references(self, wildcards: Wildcards) -> list[str]:
        """Return the reference folders of a verification, or of several; a user's own model has
        none."""
        work, job = self.work, self.job(wildcards)
        if work.is_measured(job):
            return []
        folders = {part.reference for part in job.parts or [job]} - {""}
        return work.inputs(sorted(folders))

    def texts(self, wildcards: Wildcards) -> JobTexts:
        """Return command and label, by one function: Snakemake's call of each takes a while."""
        job, plan = self.job(wildcards), self.work.plan
        start = [*commands.interpreter(plan, job.software), f"{plan.scripts}/harness"]
        arguments = job.arguments()
        if not self._call.is_dry_run:
            arguments = private_variables.hide(plan.settings.results, arguments)
        # An image has libraries of its own.
        image = plan.software[job.software].image
        loader = [] if image else surroundings.for_loader(os.environ)
        caller = ["env", *map("=".join, loader)] if loader else []
        # The harness prints a result line for those who start it by hand.
        aside = "> /dev/null " if self._call.shows_results else ""
        # Quoted here, because Snakemake takes seconds to quote 10,000 commands.
        command = shlex.join([*caller, *start, *arguments])
        return JobTexts(f"{aside}{command} {self._origin(job.software)}", job.title)

    def priority(self, wildcards: Wildcards) -> int:
        """Return the priority of a job.

        Searches precede all runs, so that those with the largest batches are interleaved with the
        others. Runs follow the order of the plan, and verifications of small models all runs.
        """
        job, work = self.job(wildcards), self.work
        if job.kind == "run":
            is_early = work.early is not None and job.path == work.early.name
            return FIRST + 2 if is_early else FIRST - 1 - work.run(job).position
        if job.kind == "verification" and job.path in work.verifications:
            later = len(work.verifications) - list(work.verifications).index(job.path)
            return 0 if work.verifications[job.path].is_short else later
        return FIRST if job.kind == "search" else 0

    def priority_of_environment(self, wildcards: Wildcards) -> int:
        """Return the priority of the job that builds an environment: before all runs, because those
        of a framework whose environment comes later would not be interleaved. That of the early run
        is first, and it alone comes before that run."""
        return FIRST + (3 if self._is_of_early(wildcards) else 1)

    def cores_of_environment(self, wildcards: Wildcards) -> int:
        """Return the cores of the job that builds an environment: all for that of the early run."""
        return self._cores_here if self._is_of_early(wildcards) else 1

    def environment_file(self, wildcards: Wildcards) -> str:
        """Return the path of an environment's file."""
        return str(self._environment(wildcards)[0].path)

    def environment_marker(self, wildcards: Wildcards) -> str:
        """Return the path of the file that marks a complete environment."""
        return str(self._environment(wildcards)[1].marker)

    def environment_options(self, wildcards: Wildcards) -> list[str]:
        """Return arguments of an environment's build: whether package hashes are checked."""
        return commands.hashing(self.work.plan)

    def reference_arguments(self, wildcards: Wildcards) -> list[str]:
        """Return the script that computes a reference, and its arguments."""
        work = self.work
        every = [*work.verifications.values(), *work.small_verifications.values()]
        named = (each for each in every if each.reference == wildcards.reference)
        script = f"{work.plan.scripts}/reference"
        return [script, *verify.reference_arguments(work.plan, next(named))]

    def _conda(self, wildcards: Wildcards) -> str | None:
        """Return the environment file of a job for ``--sdm conda``; None if none is needed."""
        file = commands.conda_file(self.work.plan, self.job(wildcards).software)
        return None if file is None else str(file)

    def prepare(self) -> None:
        """Prepare a call that measures, before its first job starts: built markers of an earlier
        call are stale, and containers get access to GPUs and project."""
        for name in self.work.to_build:
            Path(self._marker_of(name)).unlink(missing_ok=True)
        if self.container:
            self._prepare_containers()

    @functools.cache  # noqa: B019 - there is one object for the whole call
    def _origin(self, name: str) -> str:
        return commands.origin(self.work.plan, self.work.catalog, name)

    def _marker_of(self, name: str) -> str:
        """Return the built marker of some software."""
        file = self.work.plan.software[name].file
        assert file is not None, "only what is made from a file is built"
        return f"{self.work.results}/logs/environments/{file.name}"

    def _environment(self, wildcards: Wildcards) -> tuple[EnvironmentFile, Software]:
        name = f"{wildcards.environment}-{wildcards.digest}"
        known = self.work.plan.software.values()
        return next((each.file, each) for each in known if each.file and each.file.name == name)

    def _is_of_early(self, wildcards: Wildcards) -> bool:
        early, plan = self.work.early, self.work.plan
        if early is None:
            return False
        file = plan.software[case_settings.software(early.case, plan.settings.suite)].file
        return file is not None and file.name == f"{wildcards.environment}-{wildcards.digest}"

    def _share_of_cores(self, wildcards: Wildcards) -> int:
        """Return the cores of a job: all, or a GPU's share of them for a job side by side with
        others, of which as many run at a time as there are GPUs."""
        job, plan = self.job(wildcards), self.work.plan
        assert job.request is not None, "jobs that measure have a request"
        beside = job.kind in ("run", "verification", "checks")
        if not beside or not plan.is_beside(job.request.devices * job.request.nodes):
            return self.cores
        return -(-self._cores_here // plan.capacity.devices_per_node)

    def _resource(self, name: str) -> Callable[[Wildcards], Any]:
        """Return the function of one cluster resource."""
        described = self._settings.cluster
        assert described is not None, "only a cluster is asked for something"

        def value(wildcards: Wildcards) -> Any:
            request = self.job(wildcards).request
            assert request is not None, "only known jobs are submitted"
            nodes, devices, minutes, node = request
            extra = self._call.default_resource(name, wildcards) if name == "slurm_extra" else ""
            return described.resources(nodes, devices, minutes, self._cuda, node, extra)[name]

        return value

    def _image(self, wildcards: Wildcards) -> str | None:
        """Return the image of a job; None for a dry run without Apptainer.

        Snakemake would require Apptainer even for a dry run.
        """
        tools = ("apptainer", "singularity")
        if self._call.is_dry_run and not any(shutil.which(tool) for tool in tools):
            return None
        return commands.image(self.work.plan, self.job(wildcards).software)

    def _prepare_containers(self) -> None:
        """Give containers access to GPUs and project, without the host's modules and libraries.

        An image's own PYTHONPATH stays in effect.
        """
        plan, folder = self.work.plan, self._call.container_folder
        names = [software.image.name for software in plan.software.values() if software.image]
        if any("://" in name for name in names) and len(str(folder).split()) > 1:
            refuse(
                f"--apptainer-prefix: found {str(folder)!r} for images that are pulled; allowed: "
                "a path without blanks, which Snakemake cannot take"
            )
        if plan.capacity.accelerator == "cuda":
            _tell_containers("NV", "1")
        # Snakemake binds the working directory as the home folder.
        if not PROJECT.is_relative_to(Path.cwd()):
            _tell_containers("BIND", str(PROJECT))
        os.environ.pop("PYTHONPATH", None)


def _tell_containers(option: str, value: str) -> None:
    """Give containers an option, next to what the user gives them.

    Snakemake starts them by Apptainer or by Singularity.
    """
    for tool in ("APPTAINER", "SINGULARITY"):
        name = f"{tool}_{option}"
        given = os.environ.get(name, "").split(",")
        os.environ[name] = ",".join(filter(None, dict.fromkeys([*given, value])))
