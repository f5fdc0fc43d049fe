"""Software that jobs run in, and the commands that start the harness in it."""

from __future__ import annotations

import functools
import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from core import axes, surroundings

from .. import PROJECT
from ..environments.software import Software
from ..environments.venvs import EnvironmentFile
from ..plan import case_settings
from ..plan.jobs import Job
from ..runs import commands, private_variables
from .call import refuse
from .internals import Snakemake, Wildcards, for_rules
from .work import Work


class Provisioning:
    """Environments of jobs, and commands that run in them.

    ``framebench``: starts our command next to a run. ``driver``: starts a command that makes
    tables; with ``--sdm conda`` its packages come from ``workflow/envs/driver.yaml``.
    ``hashing``: arguments of the job that builds an environment. ``container``,
    ``conda``: functions that return a job's container or conda file; None if unused, because
    Snakemake calls them for every job.
    """

    def __init__(self, work: Work, snakemake: Snakemake) -> None:
        self._work, self._snakemake = work, snakemake
        kinds = ["--kinds", str(work.plan.settings.kinds)] if axes.further() else []
        entry = [str(PROJECT / "workflow" / "framebench"), *kinds]
        # Isolated: our packages ignore PYTHONPATH and PYTHONHOME.
        self.framebench = [sys.executable, "-I", *entry]
        self.python = "python" if work.plan.settings.deployment == "conda" else sys.executable
        self.driver = [self.python, "-I", *entry]
        self.hashing = commands.hashing(work.plan)
        #: Missing or damaged environments that are built once for all nodes.
        self._to_build = commands.to_build(work.plan)
        # The harness prints a result line for those who start it by hand.
        self._aside = "> /dev/null " if snakemake.shows_results else ""
        self._origin = functools.cache(lambda name: commands.origin(work.plan, work.catalog, name))
        deployment = work.plan.settings.deployment
        self.container = self._image if deployment == "apptainer" else None
        # Snakemake's linter wants one even if it would be ignored.
        self.conda = self._conda if deployment == "conda" or snakemake.is_lint else None
        if self.container:
            self._prepare_containers()
        # Built markers of an earlier call are stale.
        for name in self._to_build if work.is_locked else ():
            Path(self._built_marker(name)).unlink(missing_ok=True)

    def environment(self, job: Job) -> list[str]:
        """Return the built marker of a job's environment, if that is to be built."""
        name = job.software
        return [self._built_marker(name)] if name in self._to_build else []

    @for_rules
    def priority(self, wildcards: Wildcards) -> int:
        """Return the priority of the job that builds an environment.

        Environments come before all runs, because those of a framework whose environment comes
        later would not be interleaved. The environment of the early run is first, and it alone
        comes before that run.
        """
        before_runs = self._work.plan.places + 2
        return before_runs + 2 if self._is_early(wildcards) else before_runs

    @for_rules
    def threads(self, wildcards: Wildcards) -> int:
        """Return the cores of the job that builds an environment: all for that of the early run."""
        return self._snakemake.cores if self._is_early(wildcards) else 1

    def _is_early(self, wildcards: Wildcards) -> bool:
        early, plan = self._work.early, self._work.plan
        if early is None:
            return False
        file = plan.software[case_settings.software(early.case, plan.settings.suite)].file
        return file is not None and file.name == f"{wildcards.environment}-{wildcards.digest}"

    @for_rules
    def _conda(self, wildcards: Wildcards) -> str | None:
        file = commands.conda_file(self._work.plan, self._software(wildcards))
        return None if file is None else str(file)

    @for_rules
    def file(self, wildcards: Wildcards) -> str:
        """Return the path of the environment file."""
        return str(self._wanted(wildcards)[0].path)

    @for_rules
    def marker(self, wildcards: Wildcards) -> str:
        """Return the path of the file that marks a complete environment."""
        return str(self._wanted(wildcards)[1].marker)

    def preparation(self, job: Job) -> list[str]:
        """Return the command prefix of a measuring job that builds its environment."""
        nodes = job.request.nodes if job.request and self._work.plan.settings.cluster else 1
        return commands.preparation(self._work.plan, job.software, self.framebench, nodes)

    def harness(self, job: Job, before: Sequence[str]) -> str:
        """Return the shell command of the harness, with the words of ``before`` as prefix.

        It is quoted here, because Snakemake takes seconds to quote 10,000 commands.
        """
        plan, name = self._work.plan, job.software
        start = [*commands.interpreter(plan, name), f"{plan.scripts}/harness"]
        hidden = arguments = job.arguments()
        if not self._snakemake.is_dry_run:
            hidden = private_variables.hide(plan.settings.results, arguments)
        # An image has libraries of its own.
        loader = [] if plan.software[name].image else surroundings.for_loader(os.environ)
        caller = ["env", *map("=".join, loader)] if loader else []
        command = [*caller, *before, *start, *hidden]
        return f"{self._aside}{shlex.join(command)} {self._origin(name)}"

    def _software(self, wildcards: Wildcards) -> str:
        """Return the software name of a measuring job."""
        job = self._work.job(wildcards)
        assert job is not None, "only jobs that measure run in software"
        return job.software

    def _built_marker(self, name: str) -> str:
        """Return the path of the built marker of some software."""
        file = self._work.plan.software[name].file
        assert file is not None, "only what is made from a file is built"
        return f"{self._work.results}/logs/environments/{file.name}"

    def _wanted(self, wildcards: Wildcards) -> tuple[EnvironmentFile, Software]:
        name = f"{wildcards.environment}-{wildcards.digest}"
        known = [
            (software.file, software)
            for software in self._work.plan.software.values()
            if software.file
        ]
        return next((file, software) for file, software in known if file.name == name)

    def _image_name(self, wildcards: Wildcards) -> str | None:
        """Return the image of a job; None for a dry run without Apptainer.

        Snakemake would require Apptainer even for a dry run.
        """
        tools = ("apptainer", "singularity")
        if self._snakemake.is_dry_run and not any(shutil.which(tool) for tool in tools):
            return None
        return commands.image(self._work.plan, self._software(wildcards))

    _image = for_rules(_image_name)

    def _prepare_containers(self) -> None:
        """Give containers access to GPUs and project, without the host's modules and libraries.

        An image's own PYTHONPATH stays in effect.
        """
        plan, folder = self._work.plan, self._snakemake.container_folder
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
