"""Searches for the largest batch: their results on disk, which of them a plan needs, and what they
found as tables."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import fastjsonschema

from . import json_files, largest_batch, matrix
from .largest_batch import FORMAT, Bounds
from .matrix import Case
from .record_files import variant_of
from .run import Problem, Run, cause

if TYPE_CHECKING:
    import pandas as pd

FOLDER = "largest_batch"
#: Steps of a run that tries a batch: the second is the first to hold the optimizer's state, too.
WARMUP_STEPS, TIMED_STEPS = 1, 2
#: What a run is asked that does not decide whether its batch fits.
_NOT_DECIDING = ("warmup_steps", "warmup_limit", "timed_steps", "seed")
_SCHEMA = Path(__file__).parents[1] / "schemas" / "largest_batch.schema.json"

MEMORY = ("device_memory_gib", "host_memory_gib", "memory_limit_gib")
CASE = ("framework", "framework_version", "model", "mode", "precision", "compiler")
PLACE = ("variant", "nodes", "devices_per_node")
LARGEST_COLUMNS = (
    *CASE,
    *PLACE,
    "largest_batch",
    "status",
    "reason",
    "attempts",
    *MEMORY,
    "multiple_of",
    "at_most",
)
ATTEMPT_COLUMNS = (
    *CASE,
    *PLACE,
    "attempt",
    "batch_per_device",
    "status",
    *MEMORY,
    "seconds",
    "reason",
)

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


class Search(NamedTuple):
    """The search that a case with batch ``max`` needs. ``name``: of its result, below
    ``results/largest_batch`` and without ``.json``; ``result``: None while it is to be done."""

    case: Case
    name: str
    result: Result | None

    @property
    def found(self) -> Case | None:
        """The case to run: that of the largest batch. Where none was found it is the one at which
        the search ended, so that the tables have its status as that of any other run."""
        if self.result is None:
            return None
        return self.case._replace(batch_per_device=self.result.batch)

    @property
    def state(self) -> str:
        """What is known of the largest batch, in words."""
        if self.result is None:
            return "to be found"
        return self.result.reason if self.failed else str(self.result.batch)

    @property
    def failed(self) -> bool:
        """Whether it is over and found no batch."""
        return self.result is not None and self.result.status != "ok"


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


def needed(
    requests: Mapping[Case, Mapping[str, Any]],
    bounds: Bounds,
    memory: Mapping[str, str],
    folder: Path,
    retry: Collection[str],
) -> dict[Case, Search]:
    """The search of each case whose batch is ``max``. ``requests``: what is asked of the
    runs of each besides itself; ``memory``: how much there is and how much may be used; ``folder``:
    of the results. One that is none, or whose status is in ``retry``, is made again under the next
    retry's name."""
    found = {}
    for case, request in requests.items():
        if case.batch_per_device == matrix.MAX:
            asked = {key: value for key, value in request.items() if key not in _NOT_DECIDING}
            name = matrix.case_folder(case, {**asked, **bounds._asdict(), **memory})
            found[case] = _search(case, name, folder, retry)
    return found


def _search(case: Case, name: str, folder: Path, retry: Collection[str]) -> Search:
    attempt = 0
    while True:
        tried = f"{name}-retry{attempt}" if attempt else name
        path = folder / f"{tried}.json"
        try:
            result = parse(json_files.content_of(path))
        except (OSError, ValueError):
            # A link to nowhere takes the name, too.
            if not os.path.lexists(path):
                return Search(case, tried, None)
            result = None
        following = folder / f"{name}-retry{attempt + 1}.json"
        if result and not following.exists() and result.status not in retry:
            return Search(case, tried, result)
        attempt += 1


def guessed(bounds: Bounds) -> list[int]:
    """The batches that a search may try, of which nothing is known: as if what fits lay in the
    middle of the bounds, on a logarithmic scale."""
    middle = math.sqrt(bounds.multiple_of * bounds.largest)
    return [one.batch for one in largest_batch.simulate(lambda batch: batch <= middle, bounds)]


def load(folder: Path) -> tuple[list[Result], list[Problem]]:
    """The latest result of each search below ``folder``, in the order of their names, and what is
    none."""
    results: dict[str, tuple[int, Result]] = {}
    problems = []
    for path in files(folder):
        name, _, attempt = path.stem.partition("-retry")
        try:
            result = parse(json_files.content_of(path))
        except (OSError, ValueError) as error:
            origin = f"{FOLDER}/{json_files.origin_of(path, folder)}"
            problems.append(Problem(origin, cause(error)))
            continue
        search = str(path.with_name(name))
        number = int(attempt) if attempt.isdigit() else 0
        if search not in results or number > results[search][0]:
            results[search] = number, result
    return [result for _, result in results.values()], problems


def files(folder: Path) -> list[Path]:
    """Results alone: the runs that led to one lie a folder deeper."""
    return sorted(path for path in folder.glob("*/*/*.json") if not path.name.startswith("."))


def largest(folder: Path) -> frozenset[Key]:
    """Of all cases that a search found."""
    return frozenset(result.key for result in load(folder)[0] if result.status == "ok")


def tables(results: Iterable[Result]) -> dict[str, pd.DataFrame]:
    """``largest_batch``: a row for each search; ``largest_batch_attempts``: one for each batch that
    it tried. Memory of the device that held most, and of all processes on the host together."""
    import pandas as pd

    searched: list[list[Any]] = []
    tried: list[list[Any]] = []
    for result in results:
        content = result.content
        attempts = content["attempts"]
        labels = [result.labels[name] for name in (*CASE, *PLACE)]
        last = next(one for one in attempts if one["batch_per_device"] == result.batch)
        batch = content["batch_per_device"]
        searched.append(
            [*labels, batch, result.status, result.reason, len(attempts), *_memory(last),
             content["multiple_of"], content["at_most"]]
        )  # fmt: skip
        for number, one in enumerate(attempts, 1):
            tried.append(
                [*labels, number, one["batch_per_device"], one["status"], *_memory(one),
                 one["seconds"], one["reason"]]
            )  # fmt: skip
    return {
        "largest_batch": _frame(pd, LARGEST_COLUMNS, searched),
        "largest_batch_attempts": _frame(pd, ATTEMPT_COLUMNS, tried),
    }


def _memory(attempt: Mapping[str, Any]) -> list[float | None]:
    keys = ("peak_device_memory_bytes", "peak_host_memory_bytes", "memory_limit_bytes")
    return [attempt[key] and attempt[key] / 2**30 for key in keys]


def _frame(pd: Any, columns: tuple[str, ...], rows: list[list[Any]]) -> Any:
    """A frame with the same types whether it has rows or not."""
    kinds = {"Int64": ("nodes", "devices_per_node",
                       "largest_batch", "attempts", "multiple_of", "at_most", "attempt",
                       "batch_per_device"),
             "float64": (*MEMORY, "seconds")}  # fmt: skip
    types = {name: kind for kind, names in kinds.items() for name in names if name in columns}
    made = pd.DataFrame(rows, columns=list(columns), dtype=object)
    return made.astype({name: types.get(name, "str") for name in columns})
