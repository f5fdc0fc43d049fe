"""Measurement of both sides of a gate in pairs, by one call of Snakemake.

Both sides are variants of one suite, in which both runs of each repeat of a case are next to each
other, as :mod:`records.pairs` requires.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from ...cases.conditions import series_of_model
from ...config.values import RecordSource
from ...files.whole_files import write_whole
from ...records.run import RecordsError
from ...runs import snakemake_calls
from ...tables.results import CaseResults, grouped
from .sides import MeasuredSide

BASE, CANDIDATE = "base", "candidate"


@dataclass(frozen=True)
class Measuring:
    """Settings of the measurement of both sides.
    ``suite``: content of the suite file; ``repeats``: that key of the suite, the number of pairs or
    the rule for it; ``config``: arguments of ``--config``; ``words``: further arguments of
    Snakemake; ``folder``: folder of all results; ``models``: names of the user's own models in
    ``config``, or the case of a bisection."""

    suite: Mapping[str, Any]
    repeats: int | Mapping[str, Any]
    config: Sequence[str]
    words: Sequence[str]
    folder: Path
    models: Sequence[str] = ()

    def measure(self, base: MeasuredSide, candidate: MeasuredSide) -> tuple[CaseResults, ...]:
        """Measure both sides, as variants BASE and CANDIDATE, and return their cases.

        The runs of two sides have a folder of their own, in which a later call goes on. Cases of a
        user's own model have its name without the version. Raises RecordsError without records."""
        own = [base.identity, candidate.identity, self.suite, self.models]
        digest = hashlib.sha256(json.dumps(own, sort_keys=True, default=str).encode()).hexdigest()
        name = re.sub("[^A-Za-z0-9._-]+", "-", candidate.text).strip(".-")
        folder = self.folder / f"{name}-{digest[:12]}"
        sides = {BASE: base, CANDIDATE: candidate}
        changes = {
            "variants": {
                name: side.written(folder / f"{name}-model") for name, side in sides.items()
            },
            "repeats": self.repeats,
        }
        suite = {**_without_budget(self.suite), **changes}
        write_whole(folder / "suite.yaml", yaml.safe_dump(suite, sort_keys=False))
        for kept in (self.folder, Path(".snakemake")):  # in the caller's repository
            write_whole(kept / ".gitignore", "*\n")
        snakemake_calls.measure(folder / "suite.yaml", folder, self.config, self.words)
        if not (folder / "runs").is_dir():
            raise RecordsError(f"{folder}: holds no record of a run")
        return tuple(
            called(grouped(RecordSource(folder / "runs", side)), candidate.model) for side in sides
        )


def _without_budget(suite: Mapping[str, Any]) -> dict[str, Any]:
    """Return a suite whose repeats no time budget decides, with the same cases."""
    kept = {key: value for key, value in suite.items() if key not in ("time_budget", "then")}
    blocks = [*(suite.get("include") or ()), *(suite.get("then") or ())]
    return {**kept, "include": blocks} if blocks else kept


def called(cases: CaseResults, model: str) -> CaseResults:
    """Return the cases under the name of ``model``, without its version, unless that is ""."""
    if not model:
        return cases
    name = series_of_model(model)
    renamed = {key.at(model=name): result for key, result in cases.items()}
    return {key: replace(result, key=key) for key, result in renamed.items()}
