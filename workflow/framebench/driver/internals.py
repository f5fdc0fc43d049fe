"""Access to Snakemake's undocumented objects, which no other module uses.

:data:`USED` lists the attributes and why no public way exists. A test checks that the installed
Snakemake has them all.
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

#: Name of our logger plugin, for ``--logger``.
LOGGER = "framebench"

#: First supported version, and first unsupported one.
KNOWN_FROM, KNOWN_BELOW = "9.27", "10"
VERSION = str(snakemake.__version__)

#: Attributes of Snakemake's workflow, with their use.
USED = {
    # Kind of this call. Rules get the config, but nothing of the command line.
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
    # Modules have no documented way to know their prefix, or to have handlers called.
    "modifier.is_main_snakefile": "of a module Snakemake calls no handlers and reads no config",
    "modifier.path_modifier.replace_prefix": "results are written where the rules expect them",
    "_onstart": "see is_main_snakefile",
    "_onsuccess": "see is_main_snakefile",
    "_onerror": "see is_main_snakefile",
    # Order and placement of jobs. Plugins could change the order, but a workflow cannot bring one
    # along.
    "scheduler._job_selector": "repeats stay interleaved",
    "scheduler.job_rate_limiter": "nothing looks at the waiting jobs while one is measured",
    "register_resource": "what a job of a cluster takes is its node's, not this machine's",
    "parent_groupids": "jobs that are not connected share an allocation, by a computed name",
    # Outcome of the call. Handlers only get the path of a log.
    "dag.needrun_jobs": "which rules were to run, and which of them a failed job kept from it",
    "scheduler.failed": "see needrun_jobs",
    "scheduler.running": "on a cluster a round may wait for the one before",
    "scheduler.exit_gracefully": "a signal starts no further job, and lets handlers run",
}


class Wildcards(Protocol):
    """Wildcards of a job, as rules pass them to functions."""

    def keys(self) -> Collection[str]: ...

    def __getattr__(self, name: str) -> str: ...


class SnakemakeJob(Protocol):
    """A job, or a group of jobs, which is iterable and has no wildcards."""

    wildcards: Wildcards
    rule: Any
    output: Sequence[object]
    log: Sequence[object]

    def is_group(self) -> bool: ...

    def __iter__(self) -> Iterator[SnakemakeJob]: ...


class for_rules(Generic[_Self, _Given, _Result]):
    """Descriptor that gives rules a method as a function with a ready signature.

    Snakemake asks for it several times per job; computing a method's takes 0.5 s for 10,000 jobs.
    """

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
    """Wait until Snakemake's logging thread has printed earlier lines, at most ``seconds``.

    The limit is needed because that thread may have ended.
    """
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
        #: Words of the command line, options without values. Snakemake does not know its targets
        #: while rules are read.
        self.words = frozenset(word.partition("=")[0] for word in sys.argv[1:])

    def why_unknown(self) -> str:
        """Return why this Snakemake is unsupported; "" if it is supported.

        Attributes that exist only with jobs are not checked.
        """
        version = Version(VERSION)
        if version >= Version(KNOWN_BELOW) or version < Version(KNOWN_FROM):
            return "its internals are not known"
        for name in USED:
            if name.partition(".")[0] not in ("dag", "scheduler"):
                try:
                    operator.attrgetter(name)(self._workflow)
                except AttributeError:
                    return f"it has no {name}"
                except WorkflowError:  # the attribute exists without a value: cores on a cluster
                    continue
        return ""

    @property
    def forces_runs(self) -> bool:
        """Return whether the command line forces all rules, or a rule named ``benchmark``.

        A module's rule has a prefix to that name.
        """
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
        """Command line of this call, quoted for a shell."""
        return shlex.join(["snakemake", *sys.argv[1:]])

    @property
    def is_main_process(self) -> bool:
        """Return whether this is the user's Snakemake, not a job's."""
        return bool(self._workflow.is_main_process)

    @property
    def is_cluster_job(self) -> bool:
        return bool(self._workflow.remote_exec)

    @property
    def runs_here(self) -> bool:
        """Return whether jobs run on this machine; known only when jobs are about to start."""
        return bool(self._workflow.local_exec)

    @property
    def is_dry_run(self) -> bool:
        return bool(self._workflow.output_settings.dryrun)

    @property
    def shows_results(self) -> bool:
        """Return whether our logger plugin prints a line for each result."""
        is_ours = LOGGER in self._workflow.output_settings.log_handler_settings
        everything = self._workflow.output_settings.verbose
        return is_ours and not (everything or self._workflow.output_settings.debug_dag)

    @property
    def is_lint(self) -> bool:
        """Return whether Snakemake only lints the rules."""
        return "--lint" in self.words

    @property
    def is_module(self) -> bool:
        """Return whether another workflow reads the rules as its module."""
        return not self._workflow.modifier.is_main_snakefile()

    @property
    def cores(self) -> int:
        return int(self._workflow.cores)

    @property
    def config_files(self) -> list[Path]:
        """Configuration files read so far, and those of the command line."""
        return [Path(file) for file in self._workflow.configfiles]

    @property
    def config_arguments(self) -> list[str]:
        """Entries of ``--config``, as typed."""
        return list(self._workflow.config_settings.config_args or ())

    @property
    def methods(self) -> list[str]:
        """Methods of ``--sdm``."""
        asked = self._workflow.deployment_settings.deployment_method
        return sorted(method.name.lower().replace("_", "-") for method in asked)

    @property
    def default_resources(self) -> Collection[str]:
        """Names of resources given with ``--default-resources``."""
        return self._workflow.resource_settings.default_resources or ()

    @property
    def slurm_arrays(self) -> str:
        """Value of ``--slurm-array-jobs``; "" without one."""
        return str(getattr(self._workflow.executor_settings, "array_jobs", None) or "")

    @property
    def container_folder(self) -> Path:
        """Folder of pulled images."""
        given = self._workflow.deployment_settings.apptainer_prefix
        return Path(given or ".snakemake").absolute()

    def add_container_arguments(self, *words: str) -> None:
        """Add arguments of Apptainer, quoted for the shell, unless present."""
        settings = self._workflow.deployment_settings
        text = shlex.join(words)
        if f" {text} " not in f" {settings.apptainer_args} ":
            settings.apptainer_args += f" {text}"

    def place_of_results(self, folder: Path) -> Path:
        """Return the folder for outputs below ``folder``, which a module's ``prefix`` may move.

        A moved folder is absolute, because Snakemake leaves absolute paths unchanged.
        """
        inner = str(folder / "runs")
        modified = self._workflow.modifier.path_modifier.replace_prefix(inner)
        return folder if modified == inner else Path(modified).absolute().parent

    def limit_cores(self, cores: int) -> None:
        """Set the most cores that a job may take."""
        self._workflow.register_resource("_cores", cores)

    def join_groups(self, groups: Iterable[str], name: str) -> None:
        """Give all ``groups`` one ``name``, for a profile's ``group-components``."""
        self._workflow.parent_groupids.update(dict.fromkeys(groups, name))

    def adopt_handlers(self, start: _Handler, success: _Handler, error: _Handler) -> None:
        """Have the handlers of a module called after existing ones.

        A Snakefile with its own handlers below ``use rule`` replaces them. It can call them as
        ``NAME.onstart(log=log)``.
        """
        if not self.is_module:
            return
        for name, own in (("_onstart", start), ("_onsuccess", success), ("_onerror", error)):
            setattr(self._workflow, name, _one_after_the_other(getattr(self._workflow, name), own))

    def send_view(self, view: object, text: str) -> None:
        """Send a view to our logger plugin, and its text to other loggers.

        Snakemake has no other way from a workflow to a plugin.
        """
        self.send({"framebench_view": view}, text)

    def send(self, attributes: Mapping[str, object], text: str = "") -> None:
        """Log a record with these attributes."""
        _LOGGER.info(text, extra=dict(attributes))

    def jobs_to_run(self) -> list[SnakemakeJob]:
        """Return the unfinished jobs."""
        return list(self._workflow.dag.needrun_jobs())

    def failed_jobs(self) -> list[SnakemakeJob]:
        """Return the failed jobs, those of groups one by one."""
        return one_by_one(self._workflow.scheduler.failed)

    def running_jobs(self) -> list[SnakemakeJob]:
        """Return the jobs that the executor has; on a cluster these include queued ones."""
        return list(self._workflow.scheduler.running)

    def stop(self) -> None:
        """Start no further job and end the running ones, from a signal handler.

        Local jobs end by a signal to their processes, others as Snakemake does it. Snakemake then
        calls the handler of errors.
        """
        if not self.runs_here:
            raise KeyboardInterrupt
        threading.Thread(target=self._end_jobs, daemon=True).start()

    def _end_jobs(self) -> None:
        # Outside the signal handler, which may have interrupted the holder of the scheduler's lock.
        self._workflow.scheduler.exit_gracefully()
        children.end_descendants(self.running_jobs)

    def rest_between_jobs(self) -> None:
        """Stop Snakemake's check of all waiting jobs once a second, for its submission limit.

        With 10,000 jobs it takes a whole core next to the benchmark. Only done for local jobs.
        """
        if self.runs_here:
            self._workflow.scheduler.job_rate_limiter = None

    def select_among(
        self, startable: Callable[[Collection[SnakemakeJob]], Sequence[SnakemakeJob]]
    ) -> None:
        """Start only ``startable`` jobs among the waiting ones.

        By default Snakemake starts the first that fits, in any order.
        """
        select = self._workflow.scheduler._job_selector

        def selected(waiting: Collection[SnakemakeJob], *others: Any) -> Any:
            return select(startable(waiting), *others)

        self._workflow.scheduler._job_selector = selected


def one_by_one(jobs: Iterable[SnakemakeJob]) -> list[SnakemakeJob]:
    """Return single jobs, and the jobs of groups."""
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
