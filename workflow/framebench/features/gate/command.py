"""``framebench gate``: measures two sides in pairs and reports the decision in a note, JUnit XML, a
table and the exit status, which is 1 for a regression and for nothing else.

Both sides are variants of one suite, so that the two runs of each repeat of a case are adjacent, as
:func:`records.run.paired_ratios` requires. One call of Snakemake measures them."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml
from core import bounded, programs

from ...cases.conditions import series_of_model
from ...config import catalog, validation
from ...config.catalog import own_model
from ...config.validation import ConfigError, NotAllowed, RecordSource, did_you_mean
from ...files.whole_files import write_together, write_whole
from ...records.run import RecordsError
from ...runs import snakemake_calls
from ...runs.snakemake_calls import MeasuringFailed, settings_of
from ...tables import frames
from ...tables.results import CaseResults, grouped
from . import decisions

NOTE, JUNIT = "gate.md", "gate.xml"
#: Configuration keys that the command sets itself, and the options to use instead.
RESERVED = {"results": "--results"}
#: Names of the variants in which the two sides are measured.
BASE, CANDIDATE = "base", "candidate"
#: Name of the variant without changes.
DEFAULT = "default"
ALLOWED = (
    "default, a variant of the suite, a model of your own (FILE.py or REVISION:FILE.py), or a "
    "folder of records or a CSV of runs (FOLDER@VARIANT of one variant)"
)


@dataclass(frozen=True)
class MeasuredSide:
    """A side to measure, as a variant of a suite.

    ``settings``: settings of the variant; ``model``: name of a user's own model in records, "" for
    none; ``files``: contents of the model's files by relative path, its main file first;
    ``digest``: digest of the model, "" for none."""

    text: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    digest: str = ""
    model: str = ""
    files: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def identity(self) -> Any:
        return self.digest or [self.text, self.settings]

    def written(self, folder: Path) -> dict[str, Any]:
        """Return the settings of the variant, after writing the model's files to ``folder``."""
        if not self.files:
            return dict(self.settings)
        for path, content in self.files.items():
            write_whole(folder / path, content)
        return {"model": str(folder / next(iter(self.files)))}


#: A side is measured, or has records.
Side = MeasuredSide | RecordSource


def load_sides(base: str, candidate: str, variants: Mapping[str, Any]) -> tuple[Side, Side]:
    """Return both sides, which are of one kind.
    ``variants``: variants of the suite, as written. Raises :class:`ConfigError` for an invalid
    side, and for sides of two kinds."""
    sides = _side("--base", base, variants), _side("--candidate", candidate, variants)
    kinds = [
        "records"
        if isinstance(side, RecordSource)
        else "a model of your own"
        if side.model
        else "a variant"
        for side in sides
    ]
    if kinds[0] != kinds[1]:
        raise ConfigError(
            f"--base {base}, --candidate {candidate}: found {kinds[0]} and {kinds[1]}; allowed: "
            "two of one kind"
        )
    return sides


def _side(key: str, text: str, variants: Mapping[str, Any]) -> Side:
    if text in variants or text == DEFAULT:
        return MeasuredSide(text, variants.get(text) or {})
    if text.endswith(".py"):
        return model(key, text)
    try:
        return validation.side(text)
    except NotAllowed:
        hint = did_you_mean(text, [*variants, DEFAULT])
        raise ConfigError(f"{key}: found {text!r}{hint}; allowed: {ALLOWED}") from None


def model(key: str, text: str) -> MeasuredSide:
    """Return the model at a path, or of a commit in the notation of ``git show``, with all files
    that belong to it. Raises ConfigError if it cannot be read."""
    revision, separator, name = text.partition(":")
    if not separator or Path(text).exists():
        return _described(key, text, Path(text))
    with tempfile.TemporaryDirectory(prefix="framebench-") as folder:
        tree = Path(folder, "tree")
        tree.mkdir()
        # a separate index, so that the user's index stays unchanged
        own = {**os.environ, "GIT_INDEX_FILE": f"{folder}/index"}
        checkout = ["git", f"--work-tree={tree}", "checkout", revision, "--", ":(top,glob)**/*.py"]
        for command in (
            ["git", "cat-file", "-e", "--end-of-options", text],
            checkout,
            ["git", "rev-parse", "--show-prefix"],
        ):
            ended = programs.run(command, env=own)
            if ended.returncode:
                said = " ".join(ended.stderr.split())
                raise ConfigError(
                    f"{key}: found {text!r}, and git says: {said}; allowed: REVISION:FILE.py, with "
                    "a known revision, and the file relative to the repository's root or, with ./, "
                    "to this folder"
                )
        here = ended.stdout.strip() if name.startswith(("./", "../")) else ""
        return _described(key, text, tree / here / name, tree)


def _described(key: str, text: str, path: Path, tree: Path | None = None) -> MeasuredSide:
    """Return the model at ``path``; ``tree``: the checkout that its files lie in."""
    try:
        found = own_model(str(path))
        paths = [path.resolve(), *map(Path, found.model_config["own"]["modules"].values())]
        top = tree.resolve() if tree else Path(os.path.commonpath([one.parent for one in paths]))
        files = {
            str(one.relative_to(top)): bounded.read_bytes(one)
            for one in paths
            if one.is_relative_to(top)
        }
    except NotAllowed as error:
        raise ConfigError(error.line(key, text).replace(str(path), text)) from None
    except OSError as error:
        raise ConfigError(
            f"{key}: found {text!r}, {error.strerror or error}; allowed: a file that can be read"
        ) from None
    digest = found.model_config["own"]["sha256"]
    return MeasuredSide(text, digest=digest, model=found.name, files=files)


def measure(
    base: MeasuredSide,
    candidate: MeasuredSide,
    suite: Mapping[str, Any],
    repeats: Mapping[str, Any],
    config: Sequence[str],
    words: Sequence[str],
    results: Path,
    models: Sequence[str],
) -> tuple[CaseResults, CaseResults]:
    """Measure both sides, as variants BASE and CANDIDATE, and return their cases.

    Each pair of sides has its own folder of runs, in which a later call continues. Cases of a
    user's own model have its name without the version. Raises RecordsError without records.

    Parameters
    ----------
    suite : content of the suite file
    repeats : value of the suite's key ``repeats``, the rule for the number of pairs
    config, words : arguments of ``--config``; further arguments of Snakemake
    results : folder of all results
    models : own models in ``config``, or the case of a bisection; each has its own folder"""
    own = [base.identity, candidate.identity, suite, models]
    digest = hashlib.sha256(json.dumps(own, sort_keys=True, default=str).encode()).hexdigest()
    name = re.sub("[^A-Za-z0-9._-]+", "-", candidate.text).strip(".-")
    folder = results / f"{name}-{digest[:12]}"
    # the rule in ``repeats``, not a time budget, decides how often cases are repeated
    measured = {key: value for key, value in suite.items() if key not in ("time_budget", "then")}
    if blocks := [*(suite.get("include") or ()), *(suite.get("then") or ())]:
        measured["include"] = blocks
    measured["variants"] = {
        BASE: base.written(folder / f"{BASE}-model"),
        CANDIDATE: candidate.written(folder / f"{CANDIDATE}-model"),
    }
    measured["repeats"] = repeats
    write_whole(folder / "suite.yaml", yaml.safe_dump(measured, sort_keys=False))
    for ignored in (results, Path(".snakemake")):  # not part of the caller's repository
        write_whole(ignored / ".gitignore", "*\n")
    snakemake_calls.measure(folder / "suite.yaml", folder, config, words)
    if not (folder / "runs").is_dir():
        raise RecordsError(f"{folder}: holds no record of a run")
    of_base, of_candidate = (
        called(grouped(RecordSource(folder / "runs", side)), candidate.model)
        for side in (BASE, CANDIDATE)
    )
    return of_base, of_candidate


def called(cases: CaseResults, model: str) -> CaseResults:
    """Return the cases with their model renamed to ``model`` without version; no change for ""."""
    if not model:
        return cases
    name = series_of_model(model)
    renamed = {key.at(model=name): result for key, result in cases.items()}
    return {key: replace(result, key=key) for key, result in renamed.items()}


def gate(options: argparse.Namespace) -> int:
    """Run the gate and return the exit status; any error is "broken", never a regression."""

    def note(message: str) -> None:
        files = {
            options.results / NOTE: decisions.note(_sides(options), decisions.FAULTY, [message]),
            options.results / JUNIT: decisions.broken_junit(message),
        }
        try:
            write_together(files)
        except OSError as error:
            print(f"framebench: cannot write: {error.filename}: {error.strerror}", file=sys.stderr)

    return status_of(run_gate, options, note)


def status_of(
    act: Callable[[argparse.Namespace], int],
    options: argparse.Namespace,
    note: Callable[[str], None] = lambda message: None,
) -> int:
    """Run a command that measures and return its exit status. On any error, pass the message to
    ``note`` and return FAULTY."""
    try:
        return act(options)
    except KeyboardInterrupt:
        print(f"framebench: {snakemake_calls.GOES_ON}", file=sys.stderr)
        return snakemake_calls.INTERRUPTED
    except (ConfigError, RecordsError, MeasuringFailed) as error:
        message = str(error)
    except OSError as error:
        message = f"{error.filename or options.results}: {error.strerror or error}"
    except Exception as error:
        traceback.print_exc()
        message = f"{type(error).__name__}: {error} (an error of Framebench's own)"
    print(f"framebench: broken: {message}", file=sys.stderr)
    note(message)
    return decisions.FAULTY


def run_gate(options: argparse.Namespace) -> int:
    """Measure or read both sides, decide about every case and return the exit status."""
    known = catalog.project_catalog()
    settings, suite = settings_of(options.config, known, RESERVED)
    base, candidate = load_sides(options.base, options.candidate, suite.get("variants") or {})
    is_measured = isinstance(base, MeasuredSide)
    if isinstance(base, MeasuredSide) and isinstance(candidate, MeasuredSide):
        until_decided = {"margin": options.fail_on, "at_most": options.pairs}
        models = [own_model.name for own_model in settings.own_models]
        base_cases, candidate_cases = measure(
            base, candidate, suite, until_decided, options.config, options.words, options.results,
            models,
        )  # fmt: skip
    else:
        assert isinstance(base, RecordSource), "load_sides() checked the kinds"
        assert isinstance(candidate, RecordSource), "load_sides() checked the kinds"
        base_cases, candidate_cases = grouped(base), grouped(candidate)
    decided = decisions.decide(base_cases, candidate_cases, options.fail_on, at_looks=is_measured)
    status = decisions.status(decided)
    frame = decisions.TABLE.frame(decisions.row(one, options.fail_on) for one in decided)
    files = frames.files({decisions.TABLE: frame}, options.results / "tables")
    files[options.results / JUNIT] = decisions.junit(decided)
    note = decisions.note(_sides(options), status, decisions.lines(decided, status))
    files[options.results / NOTE] = note
    write_together(files)
    print(f"\n{note}\nnote:  {options.results / NOTE}\ntable: {options.results}/tables/gate.csv")
    return status


def _sides(options: argparse.Namespace) -> str:
    return f"{options.candidate} against {options.base}, margin {options.fail_on:.1%}"
