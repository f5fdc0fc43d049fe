"""Searches for the largest batch: their results on disk."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import fastjsonschema

from ..config.batch_search import FORMAT
from ..files import json_files
from ..files.attempt_names import split_attempt
from .record_files import variant_of
from .run import Problem, Run, cause

FOLDER = "largest_batch"
_SCHEMA = Path(__file__).parents[2] / "schemas" / "largest_batch.schema.json"

CASE = ("framework", "framework_version", "model", "mode", "precision", "compiler")
PLACE = ("variant", "nodes", "devices_per_node")

Key = tuple[Any, ...]


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
        return (*(self.labels[name] for name in (*CASE, *PLACE)), self.batch)

    @property
    def labels(self) -> dict[str, Any]:
        """What the tables call the case by."""
        case, settings = self.content["case"], self.content["settings"]
        variant = _without_steps(variant_of(settings, case["sequence_length"]))
        version = self.content["framework_version"]
        return {**case, "framework_version": version, "variant": variant}


def key_of(run: Run) -> Key:
    """That of the search which would have found the batch of a run."""
    known = {name: getattr(run, name) for name in (*CASE, *PLACE)}
    known["variant"] = _without_steps(run.variant)
    return (*known.values(), run.batch_per_device)


def _without_steps(variant: str) -> str:
    """How many steps there are does not decide what fits."""
    return ";".join(token for token in variant.split(";") if not token.startswith("steps="))


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
