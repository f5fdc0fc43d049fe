"""Access to Snakemake's objects, which no other module uses.

:data:`USED` lists the undocumented attributes and why no public way exists. A test checks that the
installed Snakemake has them all.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import logging
import operator
import queue
import shlex
import signal
import sys
import threading
import time
from collections.abc import (
    AsyncIterator,
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from functools import cached_property
from pathlib import Path
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar

import snakemake
from packaging.version import Version
from snakemake.exceptions import WorkflowError
from snakemake_interface_executor_plugins.registry import ExecutorPluginRegistry
from snakemake_interface_executor_plugins.settings import ExecMode
from snakemake_interface_logger_plugins.common import LogEvent
from snakemake_interface_scheduler_plugins.registry import SchedulerPluginRegistry

from ..files import children

_Self = TypeVar("_Self")
_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")

#: Name of our logger plugin, for ``--logger``.
LOGGER = "framebench"

#: First supported version, and first unsupported one.
KNOWN_FROM, KNOWN_BELOW = "9.27", "10"
VERSION = str(snakemake.__version__)

#: Options that show the files of a call and their rules, and others that start no job.
_SHOWING = ("summary", "detailed_summary", "dag", "rulegraph", "filegraph", "d3dag")
_STARTING_NOTHING = (
    *_SHOWING,
    *("list_rules", "list_target_rules", "lint", "report", "unlock"),
    *("list_changes", "list_input_changes", "list_params_changes", "list_untracked"),
)

#: Attributes of Snakemake's workflow that neither its documentation nor an interface of its plugins
#: names, with their use. The options of the call come from Snakemake's parser of the command line.
USED = {
    "rundir": "profiles are named from the folder that the call was started in",
    # Snakemake calls no handlers of a module.
    "_onstart": "a module must check and note its runs before the first starts",
    "_onsuccess": "a module must show its results, and end with 1 after a failed run",
    "_onerror": "a module must report the existing records",
    # Order and placement of jobs.
    "scheduler.job_rate_limiter": "nothing looks at the waiting jobs while one is measured",
    "scheduler.running": "on a cluster a round may wait for the one before",
    "register_resource": "runs that share an allocation follow each other",
    "parent_groupids": "jobs that are not connected share an allocation, by a computed name",
}
#: Attributes that Snakemake publishes, with the place.
PUBLISHED = {
    "cores": "documentation of threads",
    "deployment_settings.deployment_method": "interface of executor plugins",
    "executor_plugin": "interface of executor plugins",
    "dag.needrun_jobs": "interface of scheduler plugins",
}


class Wildcards(Protocol):
    """Wildcards of a job, as rules pass them to functions."""

    def items(self) -> Iterable[tuple[str, str]]: ...

    def __getattr__(self, name: str) -> str: ...


class SnakemakeJob(Protocol):
    """A job, or a group of jobs, which is iterable and has no wildcards."""

    wildcards: Wildcards
    rule: Any
    jobid: int
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

    def __init__(self, workflow: Any, module: str | None = None) -> None:
        """``module``: name under which another workflow reads the rules; None if none does."""
        self._workflow = workflow
        self.is_module = module is not None
        self._watched = _WatchedJobs()
        #: Remote executors that track their jobs.
        self._executors: list[Any] = []
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
        for name in (*USED, *PUBLISHED):
            if name.partition(".")[0] not in ("dag", "scheduler"):
                try:
                    operator.attrgetter(name)(self._workflow)
                except AttributeError:
                    return f"it has no {name}"
                except WorkflowError:  # the attribute exists without a value: cores on a cluster
                    continue
        return ""

    @cached_property
    def _options(self) -> Any:
        """Options of the command line and of profiles, as Snakemake's own parser returns them."""
        from snakemake import cli  # slow to import, and Snakemake has done so

        printed = io.StringIO()  # once more, which profile is read
        try:
            with contextlib.chdir(self._workflow.rundir), contextlib.redirect_stderr(printed):
                return cli.parse_args(None)[1]
        except SystemExit:  # another program has called Snakemake's functions
            said = printed.getvalue().strip().rpartition("\n")[2]
            raise WorkflowError(f"Framebench needs the command line of snakemake: {said}") from None

    @property
    def starts_nothing(self) -> bool:
        """Return whether an option says that no job starts."""
        return any(getattr(self._options, name) for name in _STARTING_NOTHING)

    @property
    def makes_own_report(self) -> bool:
        """Return whether the call makes Snakemake's own report (``--report``)."""
        return bool(self._options.report)

    @property
    def shows_files(self) -> bool:
        """Return whether the call shows files and their rules."""
        return any(getattr(self._options, name) for name in _SHOWING)

    @cached_property
    def forced(self) -> frozenset[str]:
        """Rules and files that the command line forces, without what `--forceall` adds."""
        options = self._options
        targets = options.targets if options.force or options.forceall else ()
        return frozenset([*(options.forcerun or ()), *(targets or ())])

    @property
    def forces_runs(self) -> bool:
        """Return whether the command line forces all rules, or a rule named ``benchmark``.

        A module's rule has a prefix to that name.
        """
        forced = self._options.forcerun or ()
        named = any(rule == "benchmark" or rule.endswith("_benchmark") for rule in forced)
        return named or bool(self._options.forceall)

    @property
    def command(self) -> str:
        """Command line of this call, quoted for a shell."""
        return shlex.join(["snakemake", *sys.argv[1:]])

    @property
    def is_main_process(self) -> bool:
        """Return whether this is the user's Snakemake, not a job's."""
        return bool(self._options.mode == ExecMode.DEFAULT)

    @property
    def is_cluster_job(self) -> bool:
        return bool(self._options.mode == ExecMode.REMOTE)

    @property
    def runs_here(self) -> bool:
        """Return whether jobs run on this machine; known only when jobs are about to start."""
        return bool(self._workflow.executor_plugin.common_settings.local_exec)

    @property
    def is_dry_run(self) -> bool:
        return bool(self._options.dryrun)

    @property
    def shows_results(self) -> bool:
        """Return whether our logger plugin prints a line for each result."""
        everything = self._options.verbose or self._options.debug_dag
        return LOGGER in self._options.logger and not everything

    @property
    def is_lint(self) -> bool:
        """Return whether Snakemake only lints the rules."""
        return bool(self._options.lint)

    @property
    def cores(self) -> int:
        return int(self._workflow.cores)

    @property
    def most_cores(self) -> int | None:
        """Cores of ``--cores``, by the user or a profile; None if nothing says it."""
        given = self._options.cores
        return None if given is None else int(given)

    @property
    def config_files(self) -> list[Path]:
        """Configuration files of the command line and of profiles."""
        return list(self._options.configfile)

    @property
    def config_arguments(self) -> list[str]:
        """Entries of ``--config``, as typed."""
        return list(self._options.config or ())

    @property
    def methods(self) -> list[str]:
        """Methods of ``--sdm``."""
        asked = self._workflow.deployment_settings.deployment_method
        return sorted(method.name.lower().replace("_", "-") for method in asked)

    @property
    def default_resources(self) -> Collection[str]:
        """Names of resources given with ``--default-resources``."""
        return self._options.default_resources or ()

    def default_resource(self, name: str, wildcards: Wildcards) -> Any:
        """Return the value of ``--default-resources``, of the call or its profile; "" without."""
        given = (self._options.default_resources or {}).get(name)
        if given is None:
            return ""
        about_job = {"input": [], "attempt": 1, "threads": 1, "rulename": "", "async_run": None}
        return given.evaluate(wildcards, **about_job).value

    @property
    def slurm_arrays(self) -> str:
        """Value of ``--slurm-array-jobs``; "" without one."""
        settings = self._workflow.executor_plugin.get_settings(self._options)
        return str(getattr(settings, "array_jobs", None) or "")

    @property
    def container_folder(self) -> Path:
        """Folder of pulled images."""
        return Path(self._options.apptainer_prefix or ".snakemake").absolute()

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

    def watch_jobs(self, is_apart: Callable[[Mapping[str, str]], bool]) -> None:
        """Note from now on which jobs start, and the time.

        ``is_apart``: by its wildcards, whether the time of a job is not counted.
        """
        self._watched.begin(is_apart)
        _LOGGER.addHandler(self._watched)

    @property
    def seconds(self) -> float:
        """Seconds since jobs are watched, without those in which a job apart ran; 0 before."""
        return self._watched.seconds

    def failed_jobs(self) -> list[SnakemakeJob]:
        """Return the failed jobs, those of groups one by one: unfinished ones that have started."""
        running = one_by_one(self.running_jobs())
        started = (job for job in self.jobs_to_run() if job.jobid in self._watched.ids)
        return [job for job in started if job not in running]

    def running_jobs(self) -> list[SnakemakeJob]:
        """Return the jobs that the executor has; on a cluster these include queued ones."""
        return list(self._workflow.scheduler.running)

    def stop(self, start_no_more: Callable[[int, None], object]) -> None:
        """End the running jobs, from a signal handler; Snakemake then calls the handler of errors.

        ``start_no_more``: Snakemake's own signal handler. Local jobs end by a signal to their
        processes, submitted ones are cancelled.
        """
        # Outside the signal handler: it may have interrupted the holder of the scheduler's lock,
        # and Python and Snakemake drop exceptions that handlers raise at some places.
        threading.Thread(target=self._end_jobs, args=(start_no_more,), daemon=True).start()

    def _end_jobs(self, start_no_more: Callable[[int, None], object]) -> None:
        if self.runs_here:
            start_no_more(signal.SIGTERM, None)
            children.end_descendants(self.running_jobs)
        for executor in self._executors:
            executor.stop()

    def rest_between_jobs(self) -> None:
        """Stop Snakemake's check of all waiting jobs once a second, for its submission limit.

        With 10,000 jobs it takes a whole core next to the benchmark. Only done for local jobs.
        """
        if self.runs_here:
            self._workflow.scheduler.job_rate_limiter = None

    def select_among(
        self, startable: Callable[[Collection[SnakemakeJob]], Sequence[SnakemakeJob]]
    ) -> None:
        """Start only ``startable`` jobs among the waiting ones, whichever scheduler selects them.

        By default Snakemake starts the first that fits, in any order. To be called before
        Snakemake makes its scheduler.
        """
        for plugin in SchedulerPluginRegistry().plugins.values():
            select = plugin.scheduler.select_jobs

            def selected(
                scheduler: Any,
                waiting: Collection[SnakemakeJob],
                *others: Any,
                _select: Any = select,
            ) -> Any:
                return _select(scheduler, startable(waiting), *others)

            plugin.scheduler.select_jobs = selected

    def track_submissions(self) -> None:
        """Have remote executors know all jobs that they submitted until they have ended.

        To be called before Snakemake makes its scheduler.
        """
        for plugin in ExecutorPluginRegistry().plugins.values():
            if plugin.common_settings.non_local_exec:
                plugin.executor = tracking(plugin.executor, self._executors)


def tracking(executor: Any, made: list[Any]) -> type:
    """Return the class of remote executors that track their jobs; ``made`` gets its instances.

    A job whose state could not be learnt is asked about again: the executor for SLURM forgets it
    where the controller does not answer, and Snakemake would wait for ever. And all jobs are
    cancelled: Snakemake alone leaves out those about which it asks at that moment.
    """

    class Tracking(executor):  # type: ignore[misc]
        def __init__(self, *given: Any, **named: Any) -> None:
            self.unfinished: dict[int, Any] = {}
            self.is_stopped = False
            super().__init__(*given, **named)
            made.append(self)

        def stop(self) -> None:
            """Cancel all jobs, submit no more, and end the call; in any thread."""
            self.is_stopped = True
            reason: BaseException = KeyboardInterrupt()
            try:
                self.cancel_jobs(())
            except WorkflowError as error:
                reason = error
            self.workflow.scheduler.executor_error_callback(reason)

        def cancel_jobs(self, active_jobs: Sequence[Any]) -> None:
            jobs, self.unfinished = self.unfinished, {}
            super().cancel_jobs([*jobs.values()])

        def run_job(self, job: Any) -> None:
            if self.is_stopped:
                raise KeyboardInterrupt
            super().run_job(job)

        def report_job_submission(self, job_info: Any, *others: Any, **named: Any) -> None:
            self.unfinished[id(job_info)] = job_info
            super().report_job_submission(job_info, *others, **named)
            if self.is_stopped:  # it was being submitted meanwhile
                self.cancel_jobs(())

        async def check_active_jobs(self, active_jobs: Sequence[Any]) -> AsyncIterator[Any]:
            async for _ in super().check_active_jobs(active_jobs):
                pass
            for job in active_jobs:
                if id(job) in self.unfinished:
                    yield job

        def report_job_success(self, job_info: Any) -> None:
            self.unfinished.pop(id(job_info), None)
            super().report_job_success(job_info)

        def report_job_error(self, job_info: Any, *others: Any, **named: Any) -> None:
            self.unfinished.pop(id(job_info), None)
            super().report_job_error(job_info, *others, **named)

    return Tracking


class _WatchedJobs(logging.Handler):
    """Handler of Snakemake's log that collects the ids of started jobs, and counts time."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: set[int] = set()
        self._is_apart: Callable[[Mapping[str, str]], bool] = bool
        #: Running jobs whose time is not counted.
        self._apart: set[int] = set()
        self._counted, self._since = 0.0, float("inf")

    def begin(self, is_apart: Callable[[Mapping[str, str]], bool]) -> None:
        self._is_apart, self._since = is_apart, time.monotonic()

    @property
    def seconds(self) -> float:
        running = 0.0 if self._apart else max(0.0, time.monotonic() - self._since)
        return self._counted + running

    def emit(self, record: logging.LogRecord) -> None:
        event, said = getattr(record, "event", None), vars(record)
        if event == LogEvent.JOB_INFO:
            self.ids.add(said["jobid"])
            if self._is_apart(dict(said.get("wildcards") or {})):
                self._counted, self._since = self.seconds, time.monotonic()
                self._apart.add(said["jobid"])
        elif event in (LogEvent.JOB_FINISHED, LogEvent.JOB_ERROR):
            ended = said["job_id" if event == LogEvent.JOB_FINISHED else "jobid"]
            if ended in self._apart:
                self._apart.remove(ended)
                self._since = time.monotonic()


def one_by_one(jobs: Iterable[SnakemakeJob]) -> list[SnakemakeJob]:
    """Return single jobs, and the jobs of groups."""
    return [snakemake_job for job in jobs for snakemake_job in (job if job.is_group() else [job])]


class _Handler(Protocol):
    def __call__(self, *, log: Sequence[str]) -> None: ...


def _one_after_the_other(
    first: Callable[[Sequence[str]], object], second: _Handler
) -> Callable[[Sequence[str]], None]:
    def both(log: Sequence[str]) -> None:
        first(log)
        second(log=log)

    return both
