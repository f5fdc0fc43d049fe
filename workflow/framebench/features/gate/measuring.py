"""Measurement of both sides of a gate in pairs, by Snakemake.

Variants are one suite, in which both runs of each repeat of a case are next to each other. Models
are one suite each, because a changed file is another model: for every repeat, all cases of one side
run after all of the other, in random order. Either way the two runs of a pair are closer in time
than two repeats, as :mod:`comparison.pairs` requires.
"""

from __future__ import annotations

import contextlib
import json
import random
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
from ...files.whole_files import write_whole, write_whole_bytes
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
    ``suite``: content of the suite file; ``config``: arguments of ``--config``; ``words``: further
    arguments of Snakemake; ``folder``: results folder."""

    suite: Mapping[str, Any]
    pairs: int
    config: Sequence[str]
    words: Sequence[str]
    folder: Path

    def variants(self, base: VariantSide, candidate: VariantSide) -> None:
        """Measure two variants, BASE and CANDIDATE, into ``folder``."""
        sides = {BASE: dict(base.settings), CANDIDATE: dict(candidate.settings)}
        digests = {BASE: base.digest, CANDIDATE: candidate.digest, "settings": sides}
        self._claim({BASE: base.text, CANDIDATE: candidate.text}, digests)
        file = self._write_suite("suite", {"variants": sides, "repeats": self.pairs})
        self._snakemake(file, self.folder)

    def models(self, base: ModelSide, candidate: ModelSide) -> None:
        """Measure two models into the subfolders BASE and CANDIDATE."""
        sides = {BASE: base, CANDIDATE: candidate}
        self._claim(
            {name: one.text for name, one in sides.items()},
            {name: one.digest for name, one in sides.items()},
        )
        models = {name: self.folder / f"{name}-model" / one.name for name, one in sides.items()}
        for name, path in models.items():
            write_whole_bytes(path, sides[name].content)
        for number in range(1, self.pairs + 1):
            file = self._write_suite(f"suite-{number}", {"variants": {}, "repeats": number})
            for name in random.Random(number).sample([*sides], len(sides)):
                self._snakemake(file, self.folder / name, models[name], ["--until", "benchmark"])
        for name, path in models.items():  # make verification, tables and report
            self._snakemake(file, self.folder / name, path)

    def _claim(self, named: Mapping[str, str], decided_by: Mapping[str, Any]) -> None:
        """Write STATE, or raise :class:`AnotherGate` if the folder has runs of other sides."""
        path = self.folder / STATE
        own = {"sides": named, "of": decided_by, "suite": self.suite}
        text = json.dumps(own, indent=1, sort_keys=True, default=str) + "\n"
        if path.exists():
            if bounded.read_text(path) != text:
                raise AnotherGate(
                    f"--results: found {self.folder}, which holds the runs of another gate "
                    f"({path}); allowed: another folder, or that one once it is removed"
                )
        elif any((self.folder / name).exists() for name in ("runs", BASE, CANDIDATE)):
            raise AnotherGate(
                f"--results: found {self.folder}, which holds runs that no gate has made; allowed: "
                "another folder"
            )
        write_whole(path, text)
        write_whole(self.folder / ".gitignore", "*\n")

    def _write_suite(self, name: str, changes: Mapping[str, Any]) -> Path:
        path = self.folder / "suites" / f"{name}.yaml"
        write_whole(path, yaml.safe_dump({**self.suite, **changes}, sort_keys=False))
        return path

    def _snakemake(
        self, suite: Path, results: Path, model: Path | None = None, until: Sequence[str] = ()
    ) -> None:
        """Run Snakemake on a suite. Raises :class:`MeasuringFailed`."""
        profile = [] if "--workflow-profile" in self.words else [
            "--workflow-profile", str(PROJECT / "profiles" / "default"),
        ]  # fmt: skip
        given = [f"suite={suite}", f"results={results}"]
        given += [f"model={model}"] if model else []
        command = [
            *(sys.executable, "-I", "-m", "snakemake", "--cores", "all"),
            *("--snakefile", str(PROJECT / "workflow" / "Snakefile")),
            *(*profile, *until, *self.words),
            *("--config", *self.config, *given),
        ]
        outcome = results / partial.OUTCOME
        outcome.unlink(missing_ok=True)
        ended = subprocess.run(command, check=False).returncode
        # A failed run has a record, which decides the gate.
        if ended and not outcome.exists():
            raise MeasuringFailed(f"measuring ended with {ended}: what it says stands above")


def runs_of(folder: Path) -> Path:
    """Return the folder of records in a results folder. Raises RecordsError if there is none."""
    if not (folder / "runs").is_dir():
        raise RecordsError(f"{folder}: holds no record of a run")
    return folder / "runs"
