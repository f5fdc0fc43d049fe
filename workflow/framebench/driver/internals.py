"""Snakemake's own objects, as far as Framebench needs more of them than its documentation offers.

Nothing else in the project touches them. :data:`USED` says what is used, and why there is no public
way to it; a test looks whether the Snakemake that is installed has it all.
"""

from __future__ import annotations

import inspect
import logging
import operator
import queue
import shlex
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar

import snakemake
from packaging.version import Version
from snakemake.exceptions import WorkflowError

from ..files import children

_Self = TypeVar("_Self")
_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")

#: The name of our logger plugin, as ``--logger`` has it.
LOGGER = "framebench"

#: The first version that is known, and the first that is not.
KNOWN_FROM, KNOWN_BELOW = "9.27", "10"
VERSION = str(snakemake.__version__)

#: Attributes of Snakemake's workflow, by what they are needed for.
USED = {
    # What this call is. The documentation offers rules the config and nothing of the command line.
    "is_main_process": "only the process that its user started takes the lock and speaks",
    "remote_exec": "a job of a cluster takes the plan's estimates from the call that submitted it",
    "local_exec": "jobs of a cluster's plan must not run on this machine",
    "output_settings.dryrun": "a dry run takes no lock and starts no container",
    "output_settings.log_handler_settings": "what our logger says the harness need not say",
    "output_settings.verbose": "see log_handler_settings",
    "output_settings.debug_dag": "see log_handler_settings",
    "cores": "a run takes all of them, so that nothing runs beside it",
    "configfiles": "they are read strictly, with a message that names the line",
    "config_settings.config_args": "they are quoted once more on the way to a job of a cluster",
    "deployment_settings.deployment_method": "the software of --sdm is part of what is measured",
    "deployment_settings.apptainer_prefix": "Snakemake takes no blanks in it",
    "deployment_settings.apptainer_args": "a container must see the GPUs and the project",
    "resource_settings.default_resources": "what has no effect on runs is said",
    "executor_settings": "arrays of SLURM are refused",
    # Modules: the documentation has no way to know one's own prefix, or to have handlers called.
    "modifier.is_main_snakefile": "of a module Snakemake calls no handlers and reads no config",
    "modifier.path_modifier.replace_prefix": "results are written where the rules expect them",
    "_onstart": "see is_main_snakefile",
    "_onsuccess": "see is_main_snakefile",
    "_onerror": "see is_main_snakefile",
    # The order and the place of jobs. Plugins could change the order, but a workflow cannot bring
    # one along.
    "scheduler._job_selector": "repeats stay interleaved",
    "scheduler.job_rate_limiter": "nothing looks at the waiting jobs while one is measured",
    "register_resource": "what a job of a cluster takes is its node's, not this machine's",
    "parent_groupids": "jobs that are not connected share an allocation, by a computed name",
    # What came of it. Handlers are given the path of a log.
    "dag.needrun_jobs": "which rules were to run, and which of them a failed job kept from it",
    "scheduler.failed": "see needrun_jobs",
    "scheduler.running": "on a cluster a round may wait for the one before",
    "scheduler.exit_gracefully": "a signal starts no further job, and lets handlers run",
}


class Wildcards(Protocol):
    """What a job's file names say, as rules hand it to functions."""

    def keys(self) -> Collection[str]: ...

    def __getattr__(self, name: str) -> str: ...


class SnakemakeJob(Protocol):
    """A job, or a group of jobs: then it is iterable and has no wildcards."""

    wildcards: Wildcards
    rule: Any
    output: Sequence[object]
    log: Sequence[object]

    def is_group(self) -> bool: ...

    def __iter__(self) -> Iterator[SnakemakeJob]: ...


class for_rules(Generic[_Self, _Given, _Result]):
    """A method that rules call, as a plain function whose signature is at hand: Snakemake asks for
    it several times a job, and to work out a method's takes half a second with 10,000 of them."""

    def __init__(self, method: Callable[Concatenate[_Self, _Given], _Result]) -> None:
        self._method = method
        signature = inspect.signature(method)
        self._signature = signature.replace(parameters=list(signature.parameters.values())[1:])

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: _Self, owner: type | None = None) -> Callable[_Given, _Result]:
        method = self._method

        def function(*given: _Given.args, **named: _Given.kwargs) -> _Result:
            return method(instance, *given, **named)

        vars(function)["__signature__"] = self._signature
        instance.__dict__[self._name] = function
        return function


_LOGGER = logging.getLogger("snakemake.logging")


def await_log(seconds: float = 2.0) -> None:
    """Wait until Snakemake's thread has printed what was said before, at most ``seconds``: that
    thread may have ended."""
    until = time.monotonic() + seconds
    for handler in _LOGGER.handlers:
        waiting: object = getattr(handler, "queue", None)
        if isinstance(waiting, queue.Queue):
            while waiting.unfinished_tasks and time.monotonic() < until:
                time.sleep(0.001)


class Snakemake:
    """One call of Snakemake."""

    def __init__(self, workflow: Any) -> None:
        self._workflow = workflow
        #: The words of the command line, options without their values. While rules are read
        #: Snakemake itself does not know its targets.
        self.words = frozenset(word.partition("=")[0] for word in sys.argv[1:])

    def why_unknown(self) -> str:
        """Return what is unknown of this Snakemake, "" where all is known. What comes into being
        with the jobs is not looked at."""
        version = Version(VERSION)
        if version >= Version(KNOWN_BELOW) or version < Version(KNOWN_FROM):
            return "its internals are not known"
        for name in USED:
            if name.partition(".")[0] not in ("dag", "scheduler"):
                try:
                    operator.attrgetter(name)(self._workflow)
                except AttributeError:
                    return f"it has no {name}"
                except WorkflowError:  # it is there, but has no value: cores on a cluster
                    continue
        return ""

    @property
    def forces_runs(self) -> bool:
        """Return whether the command line forces the rule ``benchmark``, perhaps with a module's
        prefix, or all rules."""
        forced, is_value = [], False
        for word in sys.argv[1:]:
            if word.startswith("-"):
                option, equals, value = word.partition("=")
                is_value = option in ("--forcerun", "-R") and not equals
                forced += [value] if option == "--forcerun" and equals else []
            elif is_value:
                forced.append(word)
        named = any(rule == "benchmark" or rule.endswith("_benchmark") for rule in forced)
        return named or not self.words.isdisjoint(("--forceall", "-F"))

    @property
    def command(self) -> str:
        """This call, quoted for a shell."""
        return shlex.join(["snakemake", *sys.argv[1:]])

    @property
    def is_main_process(self) -> bool:
        """Whether this is no job's own Snakemake."""
        return bool(self._workflow.is_main_process)

    @property
    def is_cluster_job(self) -> bool:
        return bool(self._workflow.remote_exec)

    @property
    def runs_here(self) -> bool:
        """Whether jobs run on this machine. Known when jobs are about to start."""
        return bool(self._workflow.local_exec)

    @property
    def is_dry_run(self) -> bool:
        return bool(self._workflow.output_settings.dryrun)

    @property
    def shows_results(self) -> bool:
        """Whether our logger plugin has a line for each result."""
        is_ours = LOGGER in self._workflow.output_settings.log_handler_settings
        everything = self._workflow.output_settings.verbose
        return is_ours and not (everything or self._workflow.output_settings.debug_dag)

    @property
    def is_lint(self) -> bool:
        """Whether Snakemake looks at the rules and does nothing else."""
        return "--lint" in self.words

    @property
    def is_module(self) -> bool:
        """Whether the rules are read by another workflow, as its module."""
        return not self._workflow.modifier.is_main_snakefile()

    @property
    def cores(self) -> int:
        return int(self._workflow.cores)

    @property
    def config_files(self) -> list[Path]:
        """Those read so far, and those of the command line."""
        return [Path(file) for file in self._workflow.configfiles]

    @property
    def config_arguments(self) -> list[str]:
        """The entries of ``--config``, as they were typed."""
        return list(self._workflow.config_settings.config_args or ())

    @property
    def methods(self) -> list[str]:
        """What ``--sdm`` asks for."""
        asked = self._workflow.deployment_settings.deployment_method
        return sorted(method.name.lower().replace("_", "-") for method in asked)

    @property
    def default_resources(self) -> Collection[str]:
        """The names of those given with ``--default-resources``."""
        return self._workflow.resource_settings.default_resources or ()

    @property
    def slurm_arrays(self) -> str:
        """The value of ``--slurm-array-jobs``; "" where there is none."""
        return str(getattr(self._workflow.executor_settings, "array_jobs", None) or "")

    @property
    def container_folder(self) -> Path:
        """Where images are kept that are pulled."""
        given = self._workflow.deployment_settings.apptainer_prefix
        return Path(given or ".snakemake").absolute()

    def add_container_arguments(self, *words: str) -> None:
        """Further words of Apptainer's, quoted for the shell, unless it is given them already."""
        settings = self._workflow.deployment_settings
        text = shlex.join(words)
        if f" {text} " not in f" {settings.apptainer_args} ":
            settings.apptainer_args += f" {text}"

    def place_of_results(self, folder: Path) -> Path:
        """Where the rules write what they name below ``folder``: a module may have a ``prefix``.
        Absolute then, because Snakemake leaves absolute paths alone from there on."""
        inner = str(folder / "runs")
        modified = self._workflow.modifier.path_modifier.replace_prefix(inner)
        return folder if modified == inner else Path(modified).absolute().parent

    def limit_cores(self, cores: int) -> None:
        """What one job takes at most."""
        self._workflow.register_resource("_cores", cores)

    def join_groups(self, groups: Iterable[str], name: str) -> None:
        """Let a profile speak of all these ``groups`` by one ``name`` (``group-components``)."""
        self._workflow.parent_groupids.update(dict.fromkeys(groups, name))

    def adopt_handlers(self, start: _Handler, success: _Handler, error: _Handler) -> None:
        """Have the handlers of a module called, behind those that there are. A Snakefile with
        handlers of its own below ``use rule`` replaces them; it can call them, as
        ``NAME.onstart(log=log)``."""
        if not self.is_module:
            return
        for name, own in (("_onstart", start), ("_onsuccess", success), ("_onerror", error)):
            setattr(self._workflow, name, _one_after_the_other(getattr(self._workflow, name), own))

    def send_view(self, view: object, text: str) -> None:
        """Hand a view to the logger plugin, if it is ours; all else sees the text. Snakemake's
        loggers have no other way from a workflow to a plugin."""
        self.send({"framebench_view": view}, text)

    def send(self, attributes: Mapping[str, object], text: str = "") -> None:
        """Make a log record with these attributes."""
        _LOGGER.info(text, extra=dict(attributes))

    def jobs_to_run(self) -> list[SnakemakeJob]:
        """Those that have not finished."""
        return list(self._workflow.dag.needrun_jobs())

    def failed_jobs(self) -> list[SnakemakeJob]:
        """Those of groups one by one."""
        return one_by_one(self._workflow.scheduler.failed)

    def running_jobs(self) -> list[SnakemakeJob]:
        """Those that were handed to the executor and have not ended: on a cluster they wait in its
        queue, too."""
        return list(self._workflow.scheduler.running)

    def stop(self) -> None:
        """Start no further job and end those that run, from a signal handler: jobs on this machine
        by a signal to their processes, all others as Snakemake does it. The handler of errors is
        called then."""
        if not self.runs_here:
            raise KeyboardInterrupt
        threading.Thread(target=self._end_jobs, daemon=True).start()

    def _end_jobs(self) -> None:
        # Not in the handler itself, which may have interrupted whoever holds the scheduler's lock.
        self._workflow.scheduler.exit_gracefully()
        children.end_descendants(self.running_jobs)

    def rest_between_jobs(self) -> None:
        """By default Snakemake looks at every waiting job again once a second, in case its limit of
        submissions allows more of them: with 10,000 jobs, a whole core beside the benchmark."""
        if self.runs_here:
            self._workflow.scheduler.job_rate_limiter = None

    def select_among(
        self, startable: Callable[[Collection[SnakemakeJob]], Sequence[SnakemakeJob]]
    ) -> None:
        """Start none but the ``startable`` of the jobs that wait. By default the first that fits is
        started, whatever waits before it."""
        select = self._workflow.scheduler._job_selector

        def selected(waiting: Collection[SnakemakeJob], *others: Any) -> Any:
            return select(startable(waiting), *others)

        self._workflow.scheduler._job_selector = selected


def one_by_one(jobs: Iterable[SnakemakeJob]) -> list[SnakemakeJob]:
    """The jobs of groups, and those that are in none."""
    return [one for job in jobs for one in (job if job.is_group() else [job])]


class _Handler(Protocol):
    def __call__(self, *, log: Sequence[str]) -> None: ...


def _one_after_the_other(
    first: Callable[[Sequence[str]], object], second: _Handler
) -> Callable[[Sequence[str]], None]:
    def both(log: Sequence[str]) -> None:
        first(log)
        second(log=log)

    return both
