"""Jobs of peak-FLOPS benchmarks and of verifications with the reference."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from ..config import own_model
from ..plan import targets
from ..records.verifications import FULL, SMALL
from ..runs import peak_flops, verify
from .call import checked
from .internals import Wildcards, for_rules
from .provisioning import Provisioning
from .work import Work


class PeakFlopsJobs:
    """Jobs of peak-FLOPS benchmarks. ``record``, ``log``: files of a job, with its wildcards."""

    def __init__(self, work: Work, provisioning: Provisioning) -> None:
        self._work, self._provisioning = work, provisioning
        self.record = f"{work.results}/probes/{{framework}}/{{probe}}.json"
        self.log = f"{work.results}/logs/probes/{{framework}}/{{probe}}.log"
        paths = [f"{work.results}/probes/{name}.json" for name in work.probes]
        #: Missing records; existing ones are never made again.
        self.all = [path for path in paths if not os.path.exists(path)]

    @for_rules
    def command(self, wildcards: Wildcards) -> str:
        arguments = peak_flops.arguments(self._work.plan, self._work.probe(wildcards)[1])
        before = self._provisioning.preparation(wildcards)
        return self._provisioning.harness(wildcards, arguments, before)

    @for_rules
    def label(self, wildcards: Wildcards) -> str:
        return f"peak of the device: {self._work.probe(wildcards)[1]}"


class VerificationJobs:
    """Jobs of verifications and references.

    ``reference_folder``, ``reference_log``, ``verification``, ``log``: files of a job, with its
    wildcards. ``script``: computes a reference.
    """

    def __init__(self, work: Work, provisioning: Provisioning) -> None:
        self._work, self._provisioning = work, provisioning
        results, verification = work.results, "{framework}/{reference}/{comparison}"
        self.reference_folder = f"{results}/reference/{{reference}}-{{digest}}"
        self.reference_log = f"{results}/logs/reference/{{reference}}-{{digest}}.log"
        self.verification = f"{results}/parity/{verification}.json"
        self.log = f"{results}/logs/parity/{verification}.log"
        self.script = f"{work.plan.scripts}/reference"
        self._names = list(work.comparisons)
        self._small = list(work.small_comparisons)
        every = [*work.comparisons.values(), *work.small_comparisons.values()]
        self._references = {one.reference: one for one in every}

    @for_rules
    def reference_arguments(self, wildcards: Wildcards) -> list[str]:
        one, plan = self._references[wildcards.reference], self._work.plan
        words = ["--model", f"{plan.scripts}/models/{one.case.model}.json"]
        words += ["--seed", str(plan.settings.seed)]
        if one.scale != FULL:
            words += ["--reduced", SMALL if one.scale == SMALL else verify.REDUCED]
        length = one.case.sequence_length
        return [*words, "--sequence-length", str(length)] if length else words

    @for_rules
    def reference(self, wildcards: Wildcards) -> str | list[str]:
        """Return the reference folder of a verification; [] for a user's own model."""
        _, one = self._work.comparison(wildcards)
        if one.scale == own_model.SCALE:
            return []
        seed = self._work.plan.settings.seed
        digest = verify.reference_digest(self._work.catalog, one.case.model, seed)
        return f"{self._work.results}/reference/{one.reference}-{digest}"

    @for_rules
    def command(self, wildcards: Wildcards, input: Any) -> str:
        _, one = self._work.comparison(wildcards)
        arguments = verify.arguments(self._work.plan, one, str(input.get("reference") or ""))
        before = self._provisioning.preparation(wildcards)
        return self._provisioning.harness(wildcards, arguments, before)

    @for_rules
    def priority(self, wildcards: Wildcards) -> int:
        """Return the priority of a verification: those of small models follow all runs."""
        name, one = self._work.comparison(wildcards)
        return 0 if one.is_behind_runs else len(self._names) - self._names.index(name)

    @for_rules
    def label(self, wildcards: Wildcards) -> str:
        return f"compare {self._work.comparison(wildcards)[1]}"

    @for_rules
    def all(self, wildcards: Wildcards) -> list[str]:
        """Return the missing full-size verification records."""
        checked(targets.check_measurement, self._work.plan, "a target that measures")
        return self._missing(self._work.comparisons)

    @for_rules
    def small(self, wildcards: Wildcards) -> list[str]:
        """Return the missing verification records of small models."""
        return self._missing(self._work.small_comparisons)

    def _missing(self, named: Mapping[str, verify.Verification]) -> list[str]:
        results = self._work.plan.settings.results
        return [str(verify.file_of(results, name)) for name in verify.missing(results, named)]
