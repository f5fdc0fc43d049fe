"""Searches for the largest batch: their results on disk."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import Any

import fastjsonschema

from ..cases.conditions import Conditions, of_settings
from ..config.batch_search import FORMAT
from ..files import json_files
from ..files.attempt_names import split_attempt
from .run import Problem, Run, cause

FOLDER = "largest_batch"
_SCHEMA = Path(__file__).parents[2] / "schemas" / "largest_batch.schema.json"

CASE = ("framework", "framework_version", "model", "mode", "precision", "compiler")
TOPOLOGY = ("nodes", "devices_per_node")
#: The conditions that decide what fits.
DECIDING = ("accelerator", "cores_per_device", "side_by_side", "sequence_length", "arm")
#: The columns of what a search is of.
SUBJECT = (*CASE, *DECIDING, *TOPOLOGY)

Key = tuple[Any, ...]
_case_of = attrgetter(*CASE, *TOPOLOGY)


@dataclass(frozen=True)
class Result:
    """What a search left. ``batch``: the largest that fits or, where ``status`` is not ok, the one
    at which the search ended; ``content``: all of it."""

    status: str
    reason: str
    batch: int
    content: Mapping[str, Any]

    @property
    def key(self) -> Key:
        """What the runs of the case that it found have in common with it."""
        return (*(self._case[name] for name in (*CASE, *TOPOLOGY)), self._conditions, self.batch)

    @property
    def cells(self) -> list[Any]:
        """Those of the columns SUBJECT."""
        conditions = {name: getattr(self._conditions, name) for name in DECIDING}
        return [{**self._case, **conditions}[name] for name in SUBJECT]

    @property
    def _case(self) -> dict[str, Any]:
        return {**self.content["case"], "framework_version": self.content["framework_version"]}

    @property
    def _conditions(self) -> Conditions:
        length = self.content["case"]["sequence_length"]
        return _without_steps(of_settings(self.content["settings"], length))


def key_of(run: Run) -> Key:
    """That of the search which would have found the batch of a run."""
    return (*_case_of(run.case), _without_steps(run.conditions), run.case.batch_per_device)


def _without_steps(conditions: Conditions) -> Conditions:
    """How many steps there are does not decide what fits."""
    return replace(conditions, warmup_steps=None, warmup_limit=None, timed_steps=None)


def parse(content: bytes) -> Result:
    """Raises ValueError with what is wrong."""
    read = json_files.decode(content)
    if not isinstance(read, dict) or read.get("format") != FORMAT:
        raise ValueError("is no result of a search for the largest batch")
    try:
        _validator()(read)
    except fastjsonschema.JsonSchemaValueException as error:
        raise ValueError(f"breaks the schema of a search's result: {error.message}") from error
    if all(one["batch_per_device"] != read["ended_at"] for one in read["attempts"]):
        raise ValueError(f"ended at batch {read['ended_at']}, which it did not try")
    return Result(read["status"], read["reason"], read["ended_at"], read)


@cache
def _validator() -> Callable[[Any], Any]:
    return fastjsonschema.compile(json.loads(_SCHEMA.read_text()), use_default=False)


def load(folder: Path) -> tuple[list[Result], list[Problem]]:
    """The latest result of each search below ``folder``, in the order of their names, and what is
    none."""
    results: dict[str, tuple[int, Result]] = {}
    problems = []
    for path in files(folder):
        name, attempt = split_attempt(path.stem)
        try:
            result = parse(json_files.content_of(path))
        except (OSError, ValueError) as error:
            origin = f"{FOLDER}/{json_files.origin_of(path, folder)}"
            problems.append(Problem(origin, cause(error)))
            continue
        search = str(path.with_name(name))
        if search not in results or attempt > results[search][0]:
            results[search] = attempt, result
    return [result for _, result in results.values()], problems


def files(folder: Path) -> list[Path]:
    """Results alone: the runs that led to one lie a folder deeper."""
    return sorted(path for path in folder.glob("*/*/*.json") if not path.name.startswith("."))


def largest(folder: Path) -> frozenset[Key]:
    """Of all cases that a search found."""
    return frozenset(result.key for result in load(folder)[0] if result.status == "ok")
