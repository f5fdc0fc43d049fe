"""Jobs as the rules see them: the files that they wait for, their command, order, cores and
resources."""

from __future__ import annotations

import functools
import os
import shlex
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from core import programs

from .. import PROJECT
from ..cases import fitting
from ..plan.case_settings import is_beside
from ..plan.job import FIRST
from ..runs import commands
from .call import Wildcards
from .call_state import CallState

if TYPE_CHECKING:
    from . import Driver


@dataclass(frozen=True)
class JobTexts:
    """Shell command of a job, and its label.

    Not a tuple, because Snakemake would record its values.
    """

    command: str
    label: str


class Lookups:
    """Jobs of a call.

    ``driver``: starts a command that makes tables; with ``--sdm conda`` its packages come from
    ``workflow/envs/driver.yaml``. ``cores``: cores of a job that runs alone; ``threads``: threads
    of any job that measures. ``resources``: by name, those requested from the cluster, or the
    default folder of temporary files.
    """

    first = FIRST

    def __init__(self, driver: Driver, cores: int) -> None:
        self._driver, self._call, settings = driver, driver.call, driver.settings
        described = settings.cluster
        self.cores = described.cores_per_node if described else cores
        self._cores_here = cores
        self.threads = self._share_of_cores if settings.side_by_side else self.cores
        entry = [str(PROJECT / "workflow" / "framebench")]
        # Isolated mode, so that PYTHONPATH and PYTHONHOME do not affect our packages.
        self.framebench = [sys.executable, "-I", *entry]
        self._python = "python" if settings.deployment == "conda" else sys.executable
        self.driver = [self._python, "-I", *entry]
        # Snakemake's default value, which it would otherwise evaluate for each job.
        self.resources: dict[str, Any] = {"tmpdir": tempfile.gettempdir()}
        if described:
            self._cuda = fitting.accelerator_of(settings, described.machine) == "cuda"
            asked = described.asked(self._cuda, bool(settings.each_node))
            self.resources = {name: self._resource(name) for name in asked}
        elif self._call.default_resources:
            self.resources = {}
        self.container = self._image if settings.deployment == "apptainer" else None
        if self.container:
            os.environ.pop("PYTHONPATH", None)  # remove the host's value; an image keeps its own
        # A constant, because without --sdm conda Snakemake ignores the value, but would call a
        # function for each job.
        self.conda = self._conda if settings.deployment == "conda" else "../envs/driver.yaml"

    @functools.cached_property
    def state(self) -> CallState:
        return self._driver.state

    def before(self, wildcards: Wildcards) -> list[str]:
        """Return the files that a job waits for: the marker of its environment, if it is to be
        built, and the references that it compares with."""
        return self.state.inputs(self.state.job(wildcards).waits_for)

    def texts(self, wildcards: Wildcards) -> JobTexts:
        """Return command and label by one function, because Snakemake takes long to call each
        function."""
        job, plan = self.state.job(wildcards), self.state.plan
        arguments = job.arguments()
        # Quoted here, because Snakemake takes seconds to quote 10,000 commands.
        if job.kind == "environment":
            return JobTexts(shlex.join([*self.framebench, "environment", *arguments]), job.title)
        if job.kind == "reference":
            start = [self._python, "-I", f"{plan.scripts}/reference"]
            return JobTexts(shlex.join([*start, *arguments]), job.title)
        start = [*plan.software[job.software].python, f"{plan.scripts}/harness"]
        # An image has its own libraries.
        image = plan.software[job.software].image
        loader = {} if image else programs.callers_loader()
        caller = ["env", *map("=".join, loader.items())] if loader else []
        command = shlex.join([*caller, *start, *arguments])
        # The harness prints a result line for those who start it by hand.
        return JobTexts(f"> /dev/null {command} {self._origin(job.software)}", job.title)

    def priority(self, wildcards: Wildcards) -> int:
        """Return the priority of a job."""
        return self.state.job(wildcards).priority

    def cores_of_environment(self, wildcards: Wildcards) -> int:
        """Return the cores of the job that builds an environment: all for the first, which is the
        only one before the early run."""
        return self._cores_here if self.priority(wildcards) > FIRST + 1 else 1

    def _conda(self, wildcards: Wildcards) -> str | None:
        """Return the environment file of a job for ``--sdm conda``; None if the job needs no
        file."""
        file = self.state.plan.software[self.state.job(wildcards).software].file
        return str(file.path) if file else None

    @functools.cache  # noqa: B019 - there is one object for the whole call
    def _origin(self, name: str) -> str:
        return commands.origin(self.state.plan, self._driver.catalog, name)

    def _share_of_cores(self, wildcards: Wildcards) -> int:
        """Return the cores of a job: all, or a GPU's share of them for a job side by side with
        others, of which as many run at a time as there are GPUs."""
        job, plan = self.state.job(wildcards), self.state.plan
        kinds = ("run", "verification", "checks")
        if job.kind not in kinds or not is_beside(job.case.devices, plan.settings):
            return self.cores
        return -(-self._cores_here // plan.capacity.devices_per_node)

    def _resource(self, name: str) -> Callable[[Wildcards], Any]:
        """Return the function of one cluster resource."""
        described = self._driver.settings.cluster
        assert described is not None, "resources are requested from clusters only"
        minutes = described.minutes(self._driver.settings.seconds_per_run)

        def value(wildcards: Wildcards) -> Any:
            job = self.state.job(wildcards)
            extra = self._call.default_resource(name, wildcards) if name == "slurm_extra" else ""
            asked = described.resources(
                job.nodes, job.case.devices_per_node, minutes, self._cuda, job.case.node, extra
            )
            return asked[name]

        return value

    def _image(self, wildcards: Wildcards) -> str | None:
        """Return the image of a job."""
        return self.state.plan.software[self.state.job(wildcards).software].image or None
