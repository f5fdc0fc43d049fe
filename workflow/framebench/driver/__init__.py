"""Entry of the rules: an object with configuration and plan, which offers files, functions of
wildcards and handlers."""

from __future__ import annotations

import gc
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from core.text import accept_any_text

from .. import PROJECT
from ..config import catalog, validation
from ..config.settings import Settings, load_settings
from ..config.validation import ConfigError, NotAllowed
from ..plan import plan_text, targets
from ..plan.job import OUTCOME
from ..plan.plan import note_expected
from ..records import read_files, sidecars
from ..terminal import closing
from . import call
from .call import SnakemakeCall, Wildcards, checked, refuse, warn
from .call_state import CallState
from .handlers import Handlers
from .lookups import Lookups

config_file = call.config_file


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
        """``module``: name of the module that these rules are in another workflow, None in the main
        workflow. ``outcome``: output of the rule ``outcome``."""
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
        """State of this call, which measures if Snakemake asks for a record first."""
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
        """Return the list of the files that runs.csv is made of, [] without records.

        Existing records are an input of the rule by this list: as separate inputs they would put
        thousands of finished jobs into the graph, and a forced rule would let Snakemake remove
        their output.
        """
        if self.call.is_cluster_job:
            return []
        try:
            path = read_files.write_list(Path(self.results))
        except OSError as error:
            if not self.call.measures:  # for example --summary of another user's results
                return []
            refuse(f"{error.filename or self.results}: {error.strerror}")
        return self.state.inputs([str(path)] if path else [])

    def plan_text(self, wildcards: Wildcards) -> str:
        """Return the text of the plan."""
        state = self._state or self._begin(measures=False)
        plan, table = state.plan, state.table
        state.check()
        # Jobs that a time budget adds are counted as a whole.
        reserve = () if plan.settings.budget else plan.reserve
        further = table.rows(reserve) if plan.settings.cluster else []
        total = plan_text.total_lines(plan, table.to_do, further)
        return "\n".join([plan_text.describe(plan), *total])

    def _begin(self, measures: bool = True) -> CallState:
        """Return the state of this call. For a call that measures, lock the results and print the
        excluded cases. Also in a module, whose handlers Snakemake does not call."""
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
        """Record next to the results what this call is to measure, and that it began. Its failed
        runs decide its exit status, even if all have a record."""
        plan, results = self.state.plan, self.settings.results
        try:
            if closing.failed([run.status for run in plan.runs]):
                Path(self._outcome).unlink(missing_ok=True)
            if plan.pending or plan.unsearched:
                sidecars.note_call(results, self.settings.suite.name, self.call.command)
                note_expected(plan)
        except OSError as error:
            refuse(f"{error.filename or results}: {error.strerror}")
