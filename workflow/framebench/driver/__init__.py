"""Entry of the rules: an object with configuration and plan, which offers files, functions of
wildcards and handlers by stage."""

from __future__ import annotations

import gc
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from core import surroundings
from core.text import accept_any_text

from .. import PROJECT
from ..config import catalog, values
from ..config.catalog import Catalog
from ..config.settings import Settings, load_settings
from ..config.validation import ConfigError, NotAllowed
from ..plan import call_text, plan_text, targets
from ..runs import partial, verify
from . import call
from .call import Invocation, refuse, warn
from .handlers import Handlers
from .internals import Snakemake
from .jobs import Jobs, VerificationJobs
from .provisioning import Provisioning
from .resources import Resources
from .rounds import Rounds
from .signals import StopSignals
from .tables import Tables
from .work import Work

#: Rules whose records are made once.
ONCE = frozenset({"peak_flops", "search_batch", "verify"})


def config_file(workflow: Any) -> str:
    """Return the path of the configuration file, see :func:`call.config_file`."""
    return call.config_file(Snakemake(workflow))


def results_folder(config: Mapping[str, Any]) -> str:
    """Return the results folder, before the configuration is checked."""
    default = str(Settings.model_fields["results"].default)
    given = str(config.get("results", default))
    try:
        # Snakemake would end the call for <NAME> before the check.
        return default if "<" in given else str(values.folder(given))
    except NotAllowed:
        return default


class Driver:
    """Driver of a call, made once when the rules are read. Ends the call with one message on a
    fault."""

    def __init__(
        self,
        workflow: Any,
        config: Mapping[str, Any],
        checkpoints: Any,
        module: str | None,
        outcome: str,
    ) -> None:
        """``module``: name of the module that the rules are of another workflow, None for the main
        workflow. ``outcome``: output of the rule of that name."""
        # Nearly all objects of Snakemake live to the end; looking for others takes a fifth of a
        # dry run.
        gc.set_threshold(50_000, 50, 50)
        self.snakemake = Snakemake(workflow, module)
        asked = Invocation.from_snakemake(self.snakemake)
        accept_any_text()
        signals = StopSignals()
        if self.snakemake.is_main_process:
            asked.end_unread()
            signals.watch()
        try:
            known = catalog.load_catalog(PROJECT)
            settings = _settings(config, known, self.snakemake, outcome)
        except ConfigError as error:
            refuse(error)
        for own_model in settings.own_models:
            known = own_model.among(known)
        self.work = Work(settings, known, asked, self.snakemake)
        self.provisioning = Provisioning(self.work, self.snakemake)
        self.resources = Resources(self.work, self.snakemake)
        self.jobs = Jobs(self.work, self.provisioning, asked, self.snakemake)
        self.rounds = Rounds(self.work, checkpoints, self.provisioning.driver)
        self.verifications = VerificationJobs(self.work)
        self.tables = Tables(self.work, asked, outcome)
        self.handlers = Handlers(
            self.work, asked, self.resources, self.provisioning, self.tables, self.snakemake,
            signals,
        )  # fmt: skip
        # Printed here, because without jobs no handler is called.
        plan = self.work.plan
        notices = (call_text.left_out, plan_text.left_as_they_are, plan_text.most_pairs)
        for text in notices if asked.measures else ():
            for line in text(plan):
                warn(line)
        runs_here = asked.measures and plan.pending and not settings.cluster
        if runs_here and (unresolved := surroundings.unresolved_host()):
            warn(f"{unresolved}. Frameworks that ask for it fail.")
        full = self.work.verifications if asked.proves else {}
        every = {**full, **self.work.small_verifications}
        for line in verify.repeated(plan, every) if asked.measures else ():
            warn(line)
        for rule in sorted(self.snakemake.forced & ONCE):
            warn(
                f"--forcerun {rule}: has no effect on existing records, which are never made "
                "again; remove them first"
            )

    def adopt_handlers(self, start: Any, success: Any, error: Any) -> None:
        """Have a module's handlers called, see :meth:`internals.Snakemake.adopt_handlers`."""
        self.snakemake.adopt_handlers(start, success, error)


def _settings(
    config: Mapping[str, Any], catalog: Catalog, snakemake: Snakemake, outcome: str
) -> Settings:
    """Return the settings of the call. Raises :class:`ConfigError`."""
    settings = load_settings(config, catalog, snakemake.methods)
    if settings.cluster and snakemake.is_main_process:
        # Texts that cluster jobs get on their command line.
        folders = (PROJECT, Path.cwd(), settings.environments)
        for text in [*snakemake.config_arguments, *map(str, folders)]:
            targets.check_quoting("--config or a path", text)
    results = Path(outcome.removesuffix(str(partial.OUTCOME)))
    if settings.results.is_absolute() and results != settings.results:
        raise ConfigError(
            f"config: results: found {str(settings.results)!r} in a module with a prefix or "
            "pathvars; allowed: a relative path, or a module without them"
        )
    if snakemake.makes_own_report and not (results / "report.html").exists():
        raise ConfigError(
            f"--report: found no tables in {results}; allowed: after `snakemake --cores all`, "
            "which measures and makes them, or `snakemake --cores 1 report`, which makes them of "
            "existing records"
        )
    again = snakemake.is_main_process and snakemake.forces_runs
    return settings.model_copy(update={"results": results, "measures_again": again})
