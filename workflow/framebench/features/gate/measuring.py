"""Measurement of both sides of a gate in pairs, by one call of Snakemake.

Both sides are variants of one suite, in which both runs of each repeat of a case are next to each
other, as :mod:`records.pairs` requires.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml
from core import bounded

from ...cases.conditions import series_of_model
from ...config.validation import ConfigError
from ...config.values import RecordSource
from ...files.whole_files import write_whole
from ...records.run import RecordsError
from ...runs import snakemake_calls
from ...tables.grouping import grouped
from ...tables.results import CaseResults
from .sides import MeasuredSide

BASE, CANDIDATE = "base", "candidate"
#: File that identifies the two sides whose records are in a folder.
STATE = "gate.json"


class AnotherGate(ConfigError):
    """Results folder that has runs of another gate; they are not changed."""


@dataclass(frozen=True)
class Measuring:
    """Settings of the measurement of both sides.
    ``suite``: content of the suite file; ``repeats``: that key of the suite, the number of pairs or
    the rule for it; ``config``: arguments of ``--config``; ``words``: further arguments of
    Snakemake; ``folder``: results folder; ``models``: names of the user's own models in ``config``,
    or the case of a bisection."""

    suite: Mapping[str, Any]
    repeats: int | Mapping[str, Any]
    config: Sequence[str]
    words: Sequence[str]
    folder: Path
    models: Sequence[str] = ()

    def measure(self, base: MeasuredSide, candidate: MeasuredSide) -> None:
        """Measure both sides, as variants BASE and CANDIDATE, into ``folder``."""
        sides = {BASE: base, CANDIDATE: candidate}
        self._claim({name: side.identity for name, side in sides.items()})
        path = self.folder / "suite.yaml"
        changes = {
            "variants": {
                name: side.written(self.folder / f"{name}-model") for name, side in sides.items()
            },
            "repeats": self.repeats,
        }
        suite = {**_without_budget(self.suite), **changes}
        write_whole(path, yaml.safe_dump(suite, sort_keys=False))
        snakemake_calls.measure(path, self.folder, self.config, self.words)

    def _claim(self, sides: Mapping[str, Any]) -> None:
        """Write STATE, or raise :class:`AnotherGate` if the folder has runs of other sides."""
        path = self.folder / STATE
        own = {"sides": sides, "suite": self.suite, "models": self.models}
        text = json.dumps(own, indent=1, sort_keys=True, default=str) + "\n"
        is_own = path.exists() and bounded.read_text(path) == text
        if not is_own and any((self.folder / "runs").rglob("*.json")):
            raise AnotherGate(
                f"--results: found {self.folder}, which holds the runs of another gate, or of none "
                f"({path}); allowed: another folder"
            )
        write_whole(path, text)
        write_whole(self.folder / ".gitignore", "*\n")


def _without_budget(suite: Mapping[str, Any]) -> dict[str, Any]:
    """Return a suite whose repeats no time budget decides, with the same cases."""
    kept = {key: value for key, value in suite.items() if key not in ("time_budget", "then")}
    blocks = [*(suite.get("include") or ()), *(suite.get("then") or ())]
    return {**kept, "include": blocks} if blocks else kept


def results(folder: Path, model: str) -> tuple[CaseResults, CaseResults]:
    """Return the cases of BASE and CANDIDATE in a results folder. ``model``: a user's own model,
    under whose name its versions are compared, or "". Raises RecordsError without records."""
    if not (folder / "runs").is_dir():
        raise RecordsError(f"{folder}: holds no record of a run")
    base, candidate = (grouped(RecordSource(folder / "runs", side)) for side in (BASE, CANDIDATE))
    return called(base, model), called(candidate, model)


def called(cases: CaseResults, model: str) -> CaseResults:
    """Return the cases under the name of ``model``, without its version, unless that is ""."""
    if not model:
        return cases
    name = series_of_model(model)
    renamed = {key.at(model=name): result for key, result in cases.items()}
    return {key: replace(result, key=key) for key, result in renamed.items()}
