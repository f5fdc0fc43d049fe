"""Sample counts of the trainings of a plan. The harness counts them in its own process, so that the
driver imports no harness code."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from core.case import Case
from core.inputs import READING

from ..config.catalog import Catalog
from ..config.kinds import CONVERGE
from ..config.settings import Settings
from ..files import children

#: Time limit in seconds for counting the samples of all trainings; ImageNet has 1.3 million files.
LONGEST_COUNT = 600.0
#: Value of the benchmark's parameter ``data`` without a folder.
_NO_FOLDER = "none"


class SampleCounts(NamedTuple):
    """Numbers of samples of an epoch and of the held-out set."""

    train: int
    held_out: int


class Wrong(NamedTuple):
    """Fault of a data folder."""

    why: str


def of_cases(
    cases: Iterable[Case], settings: Settings, catalog: Catalog
) -> Mapping[Case, SampleCounts | Wrong]:
    """Return the sample counts of the cases that train to a target.

    Cases are missing whose folder is not visible on this machine.
    """
    asked = {case: _asked(case, settings, catalog) for case in cases if case.mode == CONVERGE}
    texts = tuple(dict.fromkeys(asked.values()))
    counted = dict(zip(texts, counts_of(texts, catalog.root), strict=True))
    return {case: found for case, text in asked.items() if (found := counted[text])}


def folder_of(case: Case, settings: Settings) -> Path | None:
    """Return the folder that a training reads; None without one."""
    if case.input in READING:
        return settings.data
    named = dict(case.parameters).get("data", _NO_FOLDER)
    return None if named == _NO_FOLDER else Path(named)


def _asked(case: Case, settings: Settings, catalog: Catalog) -> str:
    folder = folder_of(case, settings)
    asked: dict[str, Any] = {
        "model_config": catalog.models[case.model],
        "input": case.input,
        "sequence_length": case.sequence_length,
        "folder": str(folder) if folder and folder.is_dir() else None,
    }
    return json.dumps(asked, sort_keys=True)


@cache
def counts_of(texts: tuple[str, ...], root: Path) -> list[SampleCounts | Wrong | None]:
    """Return the numbers of samples in each data set, counted by the harness: its fault if it
    cannot be counted, None if it does not exist."""
    if not texts:
        return []
    command = [sys.executable, str(root / "scripts" / "harness" / "describe.py"), "data"]
    try:
        counted = children.ask(command, f"[{','.join(texts)}]", LONGEST_COUNT)
    except children.NoAnswer as error:
        return [Wrong(f"its samples cannot be counted: {error}") for _ in texts]
    return [_read(load) for load in json.loads(counted)]


def _read(answer: dict[str, Any] | None) -> SampleCounts | Wrong | None:
    if answer is None:
        return None
    return Wrong(answer["wrong"]) if "wrong" in answer else SampleCounts(**answer)
