"""Results of searches for the largest batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from core import axes, bounded
from core.case import Case

from ..cases import conditions
from ..cases.conditions import Conditions
from ..files import json_files
from ..files.attempt_names import split_attempt
from . import record_files
from .run import Problem, Run, cause

FOLDER = "largest_batch"
KIND = "largest_batch"

CASE = ("framework", "framework_version", "model", "mode", "precision", "compiler")
TOPOLOGY = ("nodes", "devices_per_node")
#: Conditions that decide which batch fits.
DECIDING = (
    "accelerator",
    "cores_per_device",
    "side_by_side",
    "sequence_length",
    *(axis.name for axis in axes.optional()),
    "suite_variant",
)
#: Columns that identify a search.
SUBJECT = (*CASE, *DECIDING, *TOPOLOGY)

#: Case that a search found, and conditions without numbers of steps.
Key = tuple[Case, Conditions]


@dataclass(frozen=True)
class Result:
    """The result of a search. ``batch``: the largest that fits, or the batch at which a failed
    search ended; ``record``: the whole record."""

    status: str
    reason: str
    batch: int
    record: Mapping[str, Any]

    @property
    def largest(self) -> int | None:
        """Largest batch that fits; None if the search failed."""
        return self.batch if self.status == "ok" else None

    @property
    def attempts(self) -> list[dict[str, Any]]:
        """Tried batches in order, as records have them."""
        return list(self.record["attempts"])

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Parameters of the search: ``mode`` of the runs, ``multiple_of`` and ``at_most`` in
        samples."""
        parameters: Mapping[str, Any] = self.record["parameters"]
        return parameters

    @property
    def key(self) -> Key:
        """Key that the search shares with runs of the case that it found."""
        case, measured = self._identity
        return _key(case._replace(batch_per_device=self.batch), measured)

    @property
    def row(self) -> dict[str, Any]:
        """Values of the columns SUBJECT, by column."""
        known = conditions.Key(*self._identity, unit="").row
        return {name: known[name] for name in SUBJECT}

    @property
    def _identity(self) -> tuple[Case, Conditions]:
        return conditions.of_record(self.record, self.parameters["mode"])


def key_of(run: Run) -> Key:
    """Return the key of the search that would have found a run's batch."""
    return _key(run.case, run.conditions)


def _key(case: Case, conditions: Conditions) -> Key:
    # Numbers of steps, and who measured, do not decide what fits.
    case = case._replace(parameters=(), source="")
    return case, replace(
        conditions, warmup_steps=None, warmup_limit=None, timed_steps=None, timed_seconds=None
    )


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
        raise ValueError(f"is {status}, but tried no batch of which that holds")
    batch = record["metrics"][KIND]["value"] if is_ok else ended[-1]
    return Result(status, record["reason"], int(batch), record)


def load(folder: Path) -> tuple[list[Result], list[Problem]]:
    """Return the latest result of each search below ``folder``, and unreadable files."""
    results: dict[str, tuple[int, Result]] = {}
    problems = []
    for path in files(folder):
        name, attempt = split_attempt(path.stem)
        try:
            result = parse(bounded.read_bytes(path))
        except record_files.UNREADABLE as error:
            origin = f"{FOLDER}/{json_files.origin_of(path, folder)}"
            problems.append(Problem(origin, cause(error)))
            continue
        search = str(path.with_name(name))
        if search not in results or attempt > results[search][0]:
            results[search] = attempt, result
    return [result for _, result in results.values()], problems


def files(folder: Path) -> list[Path]:
    """Return the result files of searches, without the runs of a search one folder deeper."""
    return sorted(path for path in folder.glob("*/*/*.json") if not path.name.startswith("."))


def largest(folder: Path) -> frozenset[Key]:
    """Return the keys of all cases that searches found."""
    return frozenset(result.key for result in load(folder)[0] if result.status == "ok")
