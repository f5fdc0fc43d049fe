"""Results of searches for the largest batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core import bounded
from core.case import Case

from ..cases import conditions
from ..cases.conditions import Conditions
from ..files import json_files
from ..files.json_files import split_attempt
from . import record_files
from .run import Problem, cause

FOLDER = KIND = "largest_batch"


@dataclass(frozen=True)
class Result:
    """The result of a search.

    ``case``, ``conditions``: case and conditions of the runs that it tried. ``batch``: the largest
    that fits, or the batch at which a failed search ended; ``record``: the whole record."""

    case: Case
    conditions: Conditions
    status: str
    reason: str
    batch: int
    record: Mapping[str, Any]


def parse(content: bytes) -> Result:
    """Return the search result in ``content``. Raises ValueError with the fault."""
    record = record_files.parse(content, KIND)
    status, is_ok = record["status"], record["status"] == "ok"
    ended = [
        attempt["batch_per_device"]
        for attempt in record.get("attempts", ())
        if (attempt["status"] == "ok") == is_ok
    ]
    if not ended:
        raise ValueError(f"is {status}, but no tried batch has this status")
    batch = record["metrics"][KIND]["value"] if is_ok else ended[-1]
    tried = conditions.case_and_conditions(record, record["parameters"]["mode"])
    return Result(*tried, status, record["reason"], int(batch), record)


def load(folder: Path) -> tuple[list[Result], list[Problem]]:
    """Return the latest result of each search below ``folder``, and unreadable files."""
    results: dict[Path, tuple[int, Result]] = {}
    problems = []
    for path in files(folder):
        name, attempt = split_attempt(path.stem)
        try:
            result = parse(bounded.read_bytes(path))
        except record_files.UNREADABLE as error:
            origin = f"{FOLDER}/{json_files.origin_of(path, folder)}"
            problems.append(Problem(origin, cause(error)))
            continue
        before, _ = results.get(search := path.with_name(name), (-1, None))
        if attempt > before:
            results[search] = attempt, result
    return [result for _, result in results.values()], problems


def files(folder: Path) -> list[Path]:
    """Return the result files of searches, without the runs of a search one folder deeper."""
    return sorted(path for path in folder.glob("*/*/*.json") if not path.name.startswith("."))
