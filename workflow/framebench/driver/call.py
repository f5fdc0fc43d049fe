"""The call of Snakemake, by the public attributes of its workflow, and messages to its user.

Targets and executor are known once Snakemake makes its graph, not while it reads the rules.
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any, NoReturn, ParamSpec, Protocol

from core.text import printable

from ..config.keys import configuration_file, read_mapping
from ..config.validation import ConfigError

_Given = ParamSpec("_Given")
#: Program at the start of a command line.
_PROGRAM = re.compile(r"^.*?snakemake(?:/__main__\.py)?(?= |$)")


class Wildcards(Protocol):
    """Wildcards of a job, as rules pass them to functions."""

    def items(self) -> Iterable[tuple[str, str]]: ...


class SnakemakeCall:
    """One call of Snakemake. ``module``: name under which another workflow includes the rules as a
    module, None in the main workflow."""

    def __init__(self, workflow: Any, module: str | None) -> None:
        self._workflow = workflow
        self.is_module = module is not None
        self.is_main_process = bool(workflow.is_main_process)
        self.is_cluster_job = bool(workflow.remote_exec)

    @property
    def shows_files(self) -> bool:
        """Return whether the call shows files and their rules, but starts nothing."""
        return self._workflow.executor_plugin is None

    @property
    def measures(self) -> bool:
        """Return whether jobs of this call may measure."""
        starts = self.is_main_process and not self._workflow.output_settings.dryrun
        return starts and not self.shows_files and not self._workflow.touch

    @property
    def runs_here(self) -> bool:
        """Return whether jobs run on this machine."""
        return bool(self._workflow.local_exec)

    @property
    def cores(self) -> int | None:
        """Value of ``--cores``, from the user or a profile; None if it is not set."""
        return None if self.shows_files else self._workflow.resource_settings.cores

    @property
    def forced(self) -> frozenset[str]:
        """Rules and files that the command line forces, except those that ``--forceall`` adds."""
        settings = self._workflow.dag_settings
        targets = settings.targets if settings.forcetargets or settings.forceall else ()
        return frozenset([*settings.forcerun, *targets])

    @property
    def forces_runs(self) -> bool:
        """Return whether the command line forces all rules, or a rule named ``benchmark``.

        A module's rule has a prefix before that name.
        """
        settings = self._workflow.dag_settings
        named = any(f"_{rule}".endswith("_benchmark") for rule in settings.forcerun)
        return named or bool(settings.forceall)

    @property
    def command(self) -> str:
        """Command line of this call. Snakemake joins the words without the quotes that entries of
        ``--config`` such as ``packages={pytorch: [timm==1.0.31]}`` need."""
        command = _PROGRAM.sub("snakemake", str(self._workflow.info_header["cmd"]))
        for entry in self._workflow.config_settings.config_args or ():
            command = command.replace(f" {entry}", f" {shlex.quote(entry)}", 1)
        return command

    @property
    def methods(self) -> list[str]:
        """Methods of ``--sdm``."""
        asked = self._workflow.deployment_settings.deployment_method
        return sorted(method.name.lower().replace("_", "-") for method in asked)

    @property
    def default_resources(self) -> Collection[str]:
        """Names of resources given with ``--default-resources``."""
        return self._workflow.resource_settings.default_resources or ()

    def default_resource(self, name: str, wildcards: Wildcards) -> Any:
        """Return the value of ``--default-resources`` from the call or its profile; "" without
        one."""
        given = (self._workflow.resource_settings.default_resources or {}).get(name)
        if given is None:
            return ""
        about_job = {"input": [], "attempt": 1, "threads": 1, "rulename": "", "async_run": None}
        return given.evaluate(wildcards, **about_job).value

    @property
    def slurm_arrays(self) -> str:
        """Value of ``--slurm-array-jobs``; "" without one."""
        return str(getattr(self._workflow.executor_settings, "array_jobs", None) or "")

    def jobs_to_run(self) -> list[tuple[str, dict[str, str]]]:
        """Return rule and wildcards of the unfinished jobs."""
        jobs = self._workflow.dag.needrun_jobs()
        return [(job.rule.name, dict(job.wildcards.items())) for job in jobs]

    def start_at_any_rate(self) -> None:
        """Remove the limit of jobs started per second. With a limit, Snakemake would check all
        waiting jobs once a second; with 10,000 jobs that takes a whole core next to the
        benchmark."""
        if self.runs_here and self._workflow.scheduling_settings:
            self._workflow.scheduling_settings.max_jobs_per_timespan = None


def refuse(error: object) -> NoReturn:
    """End the call with one message; an exception would get ten lines from Snakemake."""
    warn(f"framebench: {error}")
    raise SystemExit(1)


def warn(text: str) -> None:
    """Print a line to stderr."""
    print(printable(text), file=sys.stderr, flush=True)


def checked(check: Callable[_Given, object], *given: _Given.args, **named: _Given.kwargs) -> None:
    """Run a check of the configuration; end the call with its ConfigError."""
    try:
        check(*given, **named)
    except ConfigError as error:
        refuse(error)


def config_file(workflow: Any) -> str:
    """Return the configuration file of the working directory, or the project's.

    Ends the call for a file that cannot be read: Snakemake's own message names neither file nor
    line.
    """
    file = configuration_file()
    for path in (file, *map(Path, workflow.configfiles)):
        if path.suffix in (".yaml", ".yml"):
            checked(read_mapping, path)
    return str(file)
