"""Sample counts of the trainings of a plan."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from core.case import Case
from core.inputs import READING
from harness.learning.amounts import Amounts, amounts
from harness.samples.folder import BadData
from tasks import TaskError

from ..config.catalog import Catalog
from ..config.kinds import CONVERGE
from ..config.settings import Settings

#: Value of the benchmark's parameter ``data`` without a folder.
_NO_FOLDER = "none"


def of_cases(
    cases: Iterable[Case], settings: Settings, catalog: Catalog
) -> Mapping[Case, Amounts | str]:
    """Return the sample counts of the cases that train to a target, or the fault of their folder.

    Cases are missing whose folder is not visible on this machine.
    """
    found: dict[Case, Amounts | str] = {}
    for case in cases:
        if case.mode == CONVERGE:
            folder = folder_of(case, settings)
            there = str(folder) if folder and folder.is_dir() else None
            model_config = json.dumps(catalog.models[case.model], sort_keys=True)
            count = counted(model_config, case.input, case.sequence_length, there)
            if count is not None:
                found[case] = count
    return found


def folder_of(case: Case, settings: Settings) -> Path | None:
    """Return the folder that a training reads; None without one."""
    if case.input in READING:
        return settings.data
    named = dict(case.parameters).get("data", _NO_FOLDER)
    return None if named == _NO_FOLDER else Path(named)


@cache
def counted(
    model_config: str, source: str, length: int | None, folder: str | None
) -> Amounts | str | None:
    """Return the numbers of samples in a data set: its fault if it cannot be counted, None if it
    does not exist. ``model_config``: as JSON."""
    try:
        return amounts(json.loads(model_config), source, length, folder)
    except (TaskError, BadData, OSError) as error:
        return str(error)
