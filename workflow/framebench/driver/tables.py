"""What is made of records: tables and report, comparisons of two sets, checks, the plan as text."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO

from .. import PROJECT
from ..archive import contents
from ..commands import exit_status
from ..commands.exit_status import Ended
from ..commands.reporting import ARCHIVED, FINGERPRINT, fingerprint
from ..config import values
from ..config.validation import ConfigError
from ..files import bounded
from ..plan import plan_text, targets
from ..plan.forecast import DAY
from ..records import searches
from ..records.sidecars import assumptions, interruptions, node_health
from ..records.sidecars.assumptions import Assumptions
from ..runs import allocations, partial, peak_flops, requests, slurm, verify
from ..runs.total import lines
from ..tables import registry
from ..terminal import closing
from .call import Invocation, checked, refuse
from .internals import Wildcards, for_rules
from .work import Work

#: What lies beside the records and is read with them.
NEIGHBOURS = ("parity", "probes", searches.FOLDER, interruptions.FILE)


class Tables:
    """``report``, ``archived``, ``fingerprint``: outputs; the second is the report for Snakemake's
    archive, which has no records that links could lead to. ``summary``, ``reported``: what the
    targets ``all`` and ``report`` say at the end of the call. ``outcome``: there when the exit
    status of the call is known from the records."""

    def __init__(self, work: Work, call: Invocation) -> None:
        self._work = work
        self.records = f"{work.results}/runs"
        #: The tables that there always are: file, group and title in Snakemake's own report.
        self.files = [
            (f"{work.results}/tables/{table.name}.csv", table.group, table.title)
            for table in registry.known().values()
            if table.always
        ]
        self.report = f"{work.results}/report.html"
        self.archived = f"{work.results}/tables/{ARCHIVED}"
        self.fingerprint = f"{work.results}/tables/{FINGERPRINT}"
        self.summary = f"{work.results}/logs/tables.log"
        self.reported = f"{work.results}/logs/report.log"
        self.node_verdict = f"{work.results}/logs/node_verdict"
        self.outcome = f"{work.results}/{partial.OUTCOME}"
        self._statuses: IO[str] | None = None
        self._call = call
        if call.measures:
            self._keep_given()
            self._drop_stale_fingerprint()
            self._drop_verdicts()

    @for_rules
    def results(self, wildcards: Wildcards) -> str:
        """The folder that all is written to."""
        return self._work.results

    @for_rules
    def neighbours(self, wildcards: Wildcards) -> list[str]:
        """What is read beside the records, as far as it is there."""
        paths = (Path(self._work.results, name) for name in NEIGHBOURS)
        return [str(path) for path in paths if path.exists()]

    @for_rules
    def given(self, wildcards: Wildcards) -> str:
        """The records that ``report`` is for."""
        settings = self._work.plan.settings
        checked(targets.check_keys, settings, "report")
        self._keep_given()
        return str(settings.records or self.records)

    @for_rules
    def sides(self, wildcards: Wildcards) -> list[str]:
        """What ``compare`` compares, and when it fails."""
        settings = self._work.plan.settings
        if settings.base is None or settings.candidate is None:
            refuse("compare: needs two sets of records: --config base=PATH candidate=PATH")
        checked(targets.check_keys, settings, "compare")
        words = ["--base", str(settings.base), "--candidate", str(settings.candidate)]
        fail_on = settings.fail_on
        return words if fail_on is None else [*words, "--fail-on", str(fail_on)]

    @for_rules
    def history(self, wildcards: Wildcards) -> list[str]:
        """The sets of ``history``, and their order."""
        settings = self._work.plan.settings
        if settings.sets is None:
            refuse("history: needs result sets: --config sets=PATH,PATH,.. or sets=FOLDER")
        checked(targets.check_keys, settings, "history")
        return ["--sets", *map(str, settings.sets), "--by", settings.by or "date"]

    @for_rules
    def status(self, wildcards: Wildcards) -> str:
        """Return the file in which commands leave their exit status."""
        if self._statuses is None:
            self._statuses = NamedTemporaryFile("r", prefix="framebench-", encoding="utf-8")  # noqa: SIM115
        return self._statuses.name

    def ended(self) -> Ended | None:
        """Return the command that did not end with 0, None without any."""
        return exit_status.read(Path(self._statuses.name)) if self._statuses else None

    @for_rules
    def judged(self, wildcards: Wildcards) -> list[str]:
        """What the target ``nodes`` judges, and when it fails."""
        settings = self._work.plan.settings
        checked(targets.check_keys, settings, "nodes")
        self._keep_given()
        return self._judged(str(settings.records or self.records))

    @for_rules
    def judged_here(self, wildcards: Wildcards) -> list[str]:
        """The same of what this call measures."""
        return self._judged(self.records)

    @for_rules
    def node_verdicts(self, wildcards: Wildcards) -> list[str]:
        """What a call waits for whose exit status says whether a node is named."""
        settings = self._work.plan.settings
        return [self.node_verdict] if settings.each_node and settings.fail_on else []

    @for_rules
    def linted(self, wildcards: Wildcards) -> list[str]:
        """What is given to ``lint``; by default what ships and what was measured."""
        settings, cached = self._work.plan.settings, self._work.cached
        checked(targets.check_keys, settings, "lint")
        if settings.records:
            return [str(settings.records)]
        shipped = PROJECT / "results" / "published"
        sources = [str(values.from_here(shipped))] if shipped.is_dir() else []
        if cached and (cached.runs or cached.problems):
            sources.append(self.records)
        if not sources:
            refuse(f"lint: {self.records} holds no record; give --config records=PATH")
        return sources

    @for_rules
    def archive(self, wildcards: Wildcards) -> list[str]:
        """What ``archive`` is made of, and whether names are taken out."""
        plan = self._work.plan
        settings = plan.settings
        checked(targets.check_keys, settings, "archive")
        known = {one.file for one in plan.software.values() if one.file}
        files = [path for file in known for path in (file.path, *file.hash_files)]
        source = contents.ArchiveSource(settings.results, settings.suite.file, sorted(files))
        checked(contents.check, source)
        words = ["--results", self._work.results, "--suite", str(source.suite)]
        words += ["--environments", *map(str, source.environments)]
        return [*words, "--redact"] if settings.redact else words

    @for_rules
    def plan(self, wildcards: Wildcards) -> str:
        """What would be run, and what SLURM would not take of it."""
        plan = self._work.plan
        checked(targets.check_measurement, plan, "plan")
        checked(targets.check_arithmetic, plan, os.environ)
        checked(targets.check_allocators, plan)
        checked(targets.check_data, plan, self._work.catalog)
        checked(targets.check_own_model, plan)
        refused = "".join(f"\n{line}" for line in allocations.refused(plan, slurm.refusal))
        further = peak_flops.describe(plan, self._work.probes)
        further += verify.describe(plan, self._work.small_comparisons)
        asked = requests.of_plan(plan, self._work.probes, self._work.small_comparisons)
        further += "".join(f"\n{line}" for line in requests.lines(plan, asked))
        total = self._work.total
        last = [*(self._work.advice() if total.seconds > DAY else ()), *lines(plan, total)]
        return "\n".join([plan_text.describe(plan) + further + refused, *last])

    def _judged(self, records: str) -> list[str]:
        words = ["--records", records, "--results", self._work.results]
        fail_on = self._work.plan.settings.fail_on
        return words if fail_on is None else [*words, "--fail-on", str(fail_on)]

    def _keep_given(self) -> None:
        """Keep what is assumed, and what nodes are judged by, with the results, where a job will
        make tables with it."""
        settings = self._work.plan.settings
        price = settings.price_per_hour
        given = Assumptions(
            price and price.amount, price.currency if price else "",
            settings.grid_intensity, settings.pue or 1.0, settings.equivalence_margin,
        )  # fmt: skip
        try:
            if self._call.starts:
                results = Path(self._work.results)
                assumptions.keep(results, given)
                node_health.keep(results, settings.node_rules, settings.node_baseline)
        except ConfigError as error:
            refuse(error)
        except OSError as error:
            refuse(f"{error.filename or self._work.results}: {error.strerror}")

    def _drop_verdicts(self) -> None:
        """Have nodes judged in this call, too, and runs whose records are no figures."""
        failed = any(closing.is_failure(run.status) for run in self._work.plan.runs)
        try:
            for verdict in (self.node_verdict, *([self.outcome] if failed else [])):
                Path(verdict).unlink(missing_ok=True)
        except OSError as error:
            refuse(f"{error.filename or self._work.results}: {error.strerror}")

    def _drop_stale_fingerprint(self) -> None:
        """Tables of other records than those that are there now lose the file that vouches for
        them; it is an output of their rule, so they are made again.

        The rule's inputs cannot do that alone. Only what is missing is among them: a result that
        is there must never be the output of a job, because Snakemake removes that before it runs
        the job again. So it does not see records that were removed, changed or brought from
        elsewhere.
        """
        path, cached = Path(self.fingerprint), self._work.cached
        current = cached and fingerprint(cached, Path(self.records), Path(self._work.results))
        try:
            if path.exists() and bounded.read_text(path).strip() != current:
                path.unlink()
        except OSError as error:
            refuse(f"{path}: cannot be replaced: {error.strerror}")
