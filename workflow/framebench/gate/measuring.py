"""Both sides of a gate measured in pairs, by Snakemake.

Variants are one suite in which each repeat of a case is run in both, next to each other. Models are
a suite each, because a changed file is another model: of every repeat, all cases of one side are
run behind all of the other, which comes first being drawn. Either way the two runs of a pair are
closer in time than two repeats, which is what :mod:`comparison.pairs` asks for.
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

from .. import PROJECT
from ..config.validation import ConfigError
from ..files import bounded
from ..files.whole_files import write_whole, write_whole_bytes
from ..records.run import RecordsError
from ..runs import partial
from .sides import ModelSide, VariantSide

BASE, CANDIDATE = "base", "candidate"
#: Says of which two sides the records of a folder are.
STATE = "gate.json"
#: Snakemake's own folder in the working directory, and where its locks lie in it.
SNAKEMAKE, LOCKS = Path(".snakemake"), "locks"


class AnotherGate(ConfigError):
    """The folder for the results has those of other sides, which stay as they are."""


class MeasuringFailed(Exception):
    """Snakemake has ended with an error of its own."""


@contextlib.contextmanager
def without_traces() -> Iterator[None]:
    """Remove Snakemake's folder from the working directory afterwards if this call brought it
    there: the caller's repository is not ours. It stays while another call of Snakemake uses it."""
    was_there = SNAKEMAKE.exists()
    try:
        yield
    finally:
        locks = SNAKEMAKE / LOCKS
        if not was_there and not (locks.is_dir() and any(locks.iterdir())):
            shutil.rmtree(SNAKEMAKE, ignore_errors=True)


@dataclass(frozen=True)
class Measuring:
    """What is measured how. ``suite``: as its file has it; ``config``: words of ``--config``;
    ``words``: further words for Snakemake; ``folder``: where all is written."""

    suite: Mapping[str, Any]
    pairs: int
    config: Sequence[str]
    words: Sequence[str]
    folder: Path

    def variants(self, base: VariantSide, candidate: VariantSide) -> None:
        """Into ``folder``, whose runs have the variants BASE and CANDIDATE."""
        sides = {BASE: dict(base.settings), CANDIDATE: dict(candidate.settings)}
        digests = {BASE: base.digest, CANDIDATE: candidate.digest, "settings": sides}
        self._claim({BASE: base.text, CANDIDATE: candidate.text}, digests)
        file = self._write_suite("suite", {"variants": sides, "repeats": self.pairs})
        self._snakemake(file, self.folder)

    def models(self, base: ModelSide, candidate: ModelSide) -> None:
        """Each into a folder of its own, BASE and CANDIDATE."""
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
        for name, path in models.items():  # verification, tables and report
            self._snakemake(file, self.folder / name, path)

    def _claim(self, named: Mapping[str, str], decided_by: Mapping[str, Any]) -> None:
        """Raises :class:`AnotherGate` where the folder has records of other sides."""
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
        """Raises :class:`MeasuringFailed`."""
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
        # A run that failed has a record, by which the gate decides.
        if ended and not outcome.exists():
            raise MeasuringFailed(f"measuring ended with {ended}: what it says stands above")


def runs_of(folder: Path) -> Path:
    """Where the records of a results folder lie. Raises RecordsError where there are none."""
    if not (folder / "runs").is_dir():
        raise RecordsError(f"{folder}: holds no record of a run")
    return folder / "runs"
