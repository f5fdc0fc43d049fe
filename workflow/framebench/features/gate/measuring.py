"""Measurement of both sides of a gate in pairs, by one call of Snakemake.

Both sides are variants of one suite, in which both runs of each repeat of a case are next to each
other, as :mod:`records.pairs` requires.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from core import bounded

from ... import PROJECT
from ...config.validation import ConfigError
from ...files.whole_files import write_whole
from ...records.run import RecordsError
from ...runs import partial
from .sides import ModelSide, VariantSide

BASE, CANDIDATE = "base", "candidate"
#: File that identifies the two sides whose records are in a folder.
STATE = "gate.json"
#: Snakemake's folder in the working directory, and the folder of its locks therein.
SNAKEMAKE, LOCKS = Path(".snakemake"), "locks"


class AnotherGate(ConfigError):
    """Results folder that has runs of another gate; they are not changed."""


class MeasuringFailed(Exception):
    """Failure of Snakemake itself."""


@contextlib.contextmanager
def without_traces() -> Iterator[None]:
    """Remove Snakemake's folder from the working directory at the end, if this call created it.
    It stays while another call of Snakemake uses it."""
    was_there = SNAKEMAKE.exists()
    try:
        yield
    finally:
        locks = SNAKEMAKE / LOCKS
        if not was_there and not (locks.is_dir() and any(locks.iterdir())):
            shutil.rmtree(SNAKEMAKE, ignore_errors=True)


@dataclass(frozen=True)
class Measuring:
    """Settings of the measurement of both sides.
    ``suite``: content of the suite file; ``repeats``: that key of the suite, the number of pairs or
    the rule for it; ``config``: arguments of ``--config``; ``words``: further arguments of
    Snakemake; ``folder``: results folder; ``models``: names of the user's own models in ``config``.
    """

    suite: Mapping[str, Any]
    repeats: int | Mapping[str, Any]
    config: Sequence[str]
    words: Sequence[str]
    folder: Path
    models: Sequence[str] = ()

    def measure(self, base: VariantSide | ModelSide, candidate: VariantSide | ModelSide) -> None:
        """Measure both sides, as variants BASE and CANDIDATE, into ``folder``."""
        both = {BASE: base, CANDIDATE: candidate}
        self._claim({name: _identity(side) for name, side in both.items()})
        variants = {
            name: side.in_file(self.folder / f"{name}-model")
            if isinstance(side, ModelSide)
            else side
            for name, side in both.items()
        }
        settings = {name: dict(side.settings) for name, side in variants.items()}
        changes = {"variants": settings, "repeats": self.repeats}
        path = self.folder / "suite.yaml"
        suite = _without_budget(self.suite)
        write_whole(path, yaml.safe_dump({**suite, **changes}, sort_keys=False))
        self._snakemake(path)

    def _claim(self, sides: Mapping[str, Any]) -> None:
        """Write STATE, or raise :class:`AnotherGate` if the folder has runs of other sides."""
        path = self.folder / STATE
        own = {"sides": sides, "suite": self.suite, "models": self.models}
        text = json.dumps(own, indent=1, sort_keys=True, default=str) + "\n"
        if path.exists():
            if bounded.read_text(path) != text:
                raise AnotherGate(
                    f"--results: found {self.folder}, which holds the runs of another gate "
                    f"({path}); allowed: another folder, or that one once it is removed"
                )
        elif (self.folder / "runs").exists():
            raise AnotherGate(
                f"--results: found {self.folder}, which holds runs that no gate has made; allowed: "
                "another folder"
            )
        write_whole(path, text)
        write_whole(self.folder / ".gitignore", "*\n")

    def _snakemake(self, suite: Path) -> None:
        """Run Snakemake on a suite. Raises :class:`MeasuringFailed`."""
        profile = [] if "--workflow-profile" in self.words else [
            "--workflow-profile", str(PROJECT / "profiles" / "default"),
        ]  # fmt: skip
        given = [f"suite={suite}", f"results={self.folder}"]
        command = [
            *(sys.executable, "-I", "-m", "snakemake", "--cores", "all"),
            *("--snakefile", str(PROJECT / "workflow" / "Snakefile")),
            *(*profile, *self.words),
            *("--config", *self.config, *given),
        ]
        outcome = self.folder / partial.OUTCOME
        outcome.unlink(missing_ok=True)
        ended = subprocess.run(command, check=False).returncode
        # A failed run has a record, which decides the gate.
        if ended and not outcome.exists():
            raise MeasuringFailed(f"measuring ended with {ended}: what it says stands above")


def _without_budget(suite: Mapping[str, Any]) -> dict[str, Any]:
    """Return a suite whose repeats no time budget decides, with the same cases."""
    kept = {key: value for key, value in suite.items() if key not in ("time_budget", "then")}
    blocks = [*(suite.get("include") or ()), *(suite.get("then") or ())]
    return {**kept, "include": blocks} if blocks else kept


def _identity(side: VariantSide | ModelSide) -> dict[str, Any]:
    settings = {} if isinstance(side, ModelSide) else side.settings
    return {"text": side.text, "digest": side.digest, "settings": settings}


def runs_of(folder: Path) -> Path:
    """Return the folder of records in a results folder. Raises RecordsError if there is none."""
    if not (folder / "runs").is_dir():
        raise RecordsError(f"{folder}: holds no record of a run")
    return folder / "runs"
