"""Interface for the rules: ``Driver`` has configuration, plan, input files and handlers, and
``Lookups`` the files that a job waits for, its command, cores and resources."""

from __future__ import annotations

import functools
import gc
import os
import shlex
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core import programs
from core.text import accept_any_text

from .. import PROJECT
from ..cases import fitting
from ..config import catalog, validation
from ..config.settings import Settings, load_settings
from ..config.validation import ConfigError, NotAllowed
from ..plan import plan_text, targets
from ..plan.case_settings import is_beside
from ..plan.job import FIRST, OUTCOME
from ..plan.plan import note_expected
from ..records import sidecars
from ..records.record_sets import write_list_of_files
from ..runs import commands
from ..terminal import call_text
from .call import SnakemakeCall, Wildcards, checked, refuse, warn
from .call_state import CallState
from .handlers import Handlers


def results_folder(config: Mapping[str, Any]) -> str:
    """Return the results folder, before the configuration is checked."""
    default = str(Settings.model_fields["results"].default)
    try:
        return str(validation.folder(config.get("results", default)))
    except NotAllowed:  # checking the configuration reports this error
        return default


class Driver:
    """Driver of a call, made once when the rules are read. Ends the call with one message on a
    fault. Its plan is made when Snakemake first asks for a record or for the plan."""

    def __init__(
        self,
        workflow: Any,
        config: Mapping[str, Any],
        checkpoints: Any,
        module: str | None,
        outcome: str,
    ) -> None:
        """``module``: name under which another workflow includes these rules as a module, None in
        the main workflow. ``outcome``: output of the rule ``outcome``."""
        # Nearly all objects of Snakemake live to the end; garbage collection would take a fifth of
        # a dry run.
        gc.set_threshold(50_000, 50, 50)
        accept_any_text()
        self.call = SnakemakeCall(workflow, module)
        self.checkpoints, self._outcome = checkpoints, outcome
        try:
            known = catalog.load_catalog(PROJECT)
            given = load_settings(config, known, self.call.methods)
        except ConfigError as error:
            refuse(error)
        # A module's prefix moves the results.
        folder = Path(outcome.removesuffix(str(OUTCOME)))
        self.settings, self.results = given.model_copy(update={"results": folder}), str(folder)
        for own_model in self.settings.own_models:
            known = own_model.among(known)
        self.catalog = known
        self._state: CallState | None = None
        self.records_folder = f"{self.results}/runs"
        self.lookups = Lookups(self, workflow.resource_settings.cores or 1)
        self.handlers = Handlers(self)

    @property
    def state(self) -> CallState:
        """State of this call; one that measures, unless Snakemake asked for the plan first."""
        return self._state or self._begin()

    @property
    def has_begun(self) -> bool:
        """Return whether the call has locked the results to measure into them."""
        return self._state is not None and self._state.is_locked

    def full_verifications(self, wildcards: Wildcards) -> list[str]:
        """Return the missing full-size verification records."""
        state = self.state
        checked(targets.check_measurement, state.plan)
        return state.missing(state.table.full)

    def list_of_files(self) -> list[str]:
        """Return the path of the file that lists the sources of runs.csv; [] without records.

        Existing records are an input of the rule by this list: as separate inputs they would put
        thousands of finished jobs into the graph, and a forced rule would let Snakemake remove
        their output.
        """
        if self.call.is_cluster_job:
            return []
        try:
            path = write_list_of_files(Path(self.results))
        except OSError as error:
            if not self.call.measures:  # for example --summary of another user's results
                return []
            refuse(f"{error.filename or self.results}: {error.strerror}")
        return self.state.inputs([str(path)] if path else [])

    def plan_text(self, wildcards: Wildcards) -> str:
        """Return the text of the plan."""
        state = self._state or self._begin(measures=False)
        plan = state.plan
        state.check()
        further = state.further if plan.settings.cluster else []
        total = plan_text.total_lines(plan, state.table.to_do, further)
        return "\n".join([plan_text.describe(plan), *total])

    def _begin(self, measures: bool = True) -> CallState:
        """Return the state of this call. For a call that measures, lock the results and print the
        excluded cases. This is no handler, because Snakemake calls no handlers of a module."""
        self._state = state = CallState(self, measures)
        if not state.is_locked:
            return state
        self.call.start_at_any_rate()
        for text in (plan_text.left_out, plan_text.other_machine_lines, plan_text.most_pairs):
            for line in text(state.plan):
                warn(line)
        self._note()
        return state

    def _note(self) -> None:
        """Note next to the results that this call began and what it will measure. Remove the file
        of the rule ``outcome`` after a failed run, so that the rule decides the exit status."""
        plan, results = self.state.plan, self.settings.results
        try:
            if call_text.failed([run.status for run in plan.runs]):
                Path(self._outcome).unlink(missing_ok=True)
            if plan.pending or plan.unsearched:
                sidecars.note_call(results, self.settings.suite.name, self.call.command)
                note_expected(plan)
        except OSError as error:
            refuse(f"{error.filename or results}: {error.strerror}")


@dataclass(frozen=True)
class JobTexts:
    """Shell command of a job, and its label.

    Not a tuple, because Snakemake would record its values.
    """

    command: str
    label: str


class Lookups:
    """Properties of a call's jobs.

    ``driver``: first words of a command that makes tables; with ``--sdm conda`` its packages come
    from ``workflow/envs/driver.yaml``. ``cores``: cores of a job that runs alone; ``threads``:
    threads of any job that measures. ``resources``: resources requested from the cluster, by name;
    without a cluster only ``tmpdir``.
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
        """Return command and label of a job. One function returns both, because Snakemake takes
        long to call a function."""
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
        # Discard the result line, which is for people who start the harness by hand.
        return JobTexts(f"> /dev/null {command} {self._origin(job.software)}", job.title)

    def priority(self, wildcards: Wildcards) -> int:
        """Return the priority of a job."""
        return self.state.job(wildcards).priority

    def cores_of_environment(self, wildcards: Wildcards) -> int:
        """Return the cores of the job that builds an environment: all for the first, because no
        other environment is built before the early run."""
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
        """Return the cores of a job: all, or for a job side by side with others all / GPUs, because
        one such job runs on each GPU."""
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
