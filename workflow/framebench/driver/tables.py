"""Jobs on existing records: tables, report and plan."""

from __future__ import annotations

import os
import time
from collections.abc import Collection
from functools import cached_property
from pathlib import Path

from core import bounded

from ..commands import exit_status
from ..commands.reporting import RUNS, fingerprint
from ..plan import plan_text, targets
from ..records import searches
from ..records.sidecars import interruptions
from ..runs import peak_flops, requests, verify
from ..runs.total import lines
from ..tables import registry
from ..terminal import closing
from .call import Invocation, checked, refuse
from .internals import Wildcards, for_rules
from .work import Work

#: Files and folders next to the records that are read with them.
NEIGHBOURS = ("verification", "peak_flops", searches.FOLDER, interruptions.FILE)


class Tables:
    """Files and commands of jobs on existing records.

    ``records``: folder of all runs. ``report``: page of the report. ``outcome``: marks a call whose
    exit status follows from the records.
    """

    def __init__(self, work: Work, call: Invocation, outcome: str) -> None:
        self._work = work
        self.records = f"{work.results}/runs"
        self.report = f"{work.results}/report.html"
        self.outcome = outcome
        self._statuses = ""
        self._call = call
        if call.measures:
            self._drop_outcome()

    def heading(self, name: str) -> tuple[str, str]:
        """Return group and title of a table, for Snakemake's own report."""
        table = registry.known()[name]
        return table.group, table.title

    def others(self, made: Collection[str]) -> list[str]:
        """Return the names of the tables of every report without those already ``made``."""
        tables = registry.known().values()
        return [table.name for table in tables if table.always and table.name not in made]

    @for_rules
    def results(self, wildcards: Wildcards) -> str:
        """Return the results folder."""
        return self._work.results

    @for_rules
    def neighbours(self, wildcards: Wildcards) -> list[str]:
        """Return the existing files and folders that are read with the records."""
        paths = (Path(self._work.results, name) for name in NEIGHBOURS)
        return self._work.inputs([str(path) for path in paths if path.exists()])

    @for_rules
    def changed(self, wildcards: Wildcards) -> list[str]:
        """Return a file that is newer than all tables if these are stale.

        Records are no input of tables, because Snakemake removes the output of a job before it
        reruns it, and no record may be removed. It would thus not notice new, changed or removed
        records behind tables that exist.
        """
        return self._changed

    @for_rules
    def given(self, wildcards: Wildcards) -> str:
        """Return the records of the target ``report``."""
        settings = self._work.plan.settings
        return str(settings.records or self.records)

    @for_rules
    def status(self, wildcards: Wildcards) -> str:
        """Return the file for the exit status of commands."""
        if not self._statuses:  # in memory: a killed call leaves nothing of it
            self._statuses = f"/proc/{os.getpid()}/fd/{os.memfd_create('framebench-status')}"
        return self._statuses

    def ended(self) -> int:
        """Return the first non-zero exit status of a command; 0 without one."""
        return exit_status.read(Path(self._statuses)) if self._statuses else 0

    @for_rules
    def plan(self, wildcards: Wildcards) -> str:
        """Return the text of the plan."""
        plan = self._work.plan
        checked(targets.check_measurement, plan, "plan")
        checked(targets.check_arithmetic, plan, os.environ)
        checked(targets.check_allocators, plan)
        checked(targets.check_data, plan, self._work.catalog)
        checked(targets.check_own_model, plan)
        further = peak_flops.describe(plan, self._work.peak_flops)
        further += verify.describe(plan, self._work.small_verifications)
        asked = requests.of_plan(plan, self._work.peak_flops, self._work.small_verifications)
        further += "".join(f"\n{line}" for line in requests.lines(plan, asked))
        last = lines(plan, self._work.total)
        return "\n".join([plan_text.describe(plan) + further, *last])

    def _drop_outcome(self) -> None:
        """Remove the outcome after failed runs, so that it is made anew."""
        try:
            if any(closing.is_failure(run.status) for run in self._work.plan.runs):
                Path(self.outcome).unlink(missing_ok=True)
        except OSError as error:
            refuse(f"{error.filename or self._work.results}: {error.strerror}")

    @cached_property
    def _changed(self) -> list[str]:
        """Path of a file in memory, of which a killed call leaves nothing; [] if no table is
        stale."""
        try:
            if not self._call.plans or not self._is_stale():
                return []
            file = os.memfd_create("framebench-changed")
            newer = max(self._newest() + 10**6, time.time_ns())
            os.utime(file, ns=(newer, newer))
        except OSError as error:
            refuse(f"{error.filename or self._work.results}: {error.strerror}")
        return [f"/proc/{os.getpid()}/fd/{file}"]

    def _is_stale(self) -> bool:
        """Return whether RUNS lacks pending work, or was made from other records."""
        plan, cached, results = self._work.plan, self._work.cached, Path(self._work.results)
        runs = results / RUNS
        if plan.pending or plan.unsearched or not runs.exists():
            return True
        current = fingerprint(cached, Path(self.records)) if cached else ""
        return bounded.read_bytes(runs).strip() != current.encode()

    def _newest(self) -> int:
        """Return the time of the newest table, in nanoseconds since 1970."""
        results = Path(self._work.results)
        made = [*(results / "tables").glob("*"), results / RUNS, Path(self.report)]
        return max((path.stat().st_mtime_ns for path in made if path.exists()), default=0)
