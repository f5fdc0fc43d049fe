"""Sample counts of the trainings of a plan."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

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


class Wrong(NamedTuple):
    """Fault of a data folder."""

    why: str


def of_cases(
    cases: Iterable[Case], settings: Settings, catalog: Catalog
) -> Mapping[Case, Amounts | Wrong]:
    """Return the sample counts of the cases that train to a target.

    Cases are missing whose folder is not visible on this machine.
    """
    asked = {case: _asked(case, settings, catalog) for case in cases if case.mode == CONVERGE}
    return {case: count for case, entry in asked.items() if (count := counted(*entry))}


def folder_of(case: Case, settings: Settings) -> Path | None:
    """Return the folder that a training reads; None without one."""
    if case.input in READING:
        return settings.data
    named = dict(case.parameters).get("data", _NO_FOLDER)
    return None if named == _NO_FOLDER else Path(named)


def _asked(
    case: Case, settings: Settings, catalog: Catalog
) -> tuple[str, str, int | None, str | None]:
    """Return model config as JSON, input, sequence length and folder."""
    folder = folder_of(case, settings)
    there = str(folder) if folder and folder.is_dir() else None
    model_config = json.dumps(catalog.models[case.model], sort_keys=True)
    return model_config, case.input, case.sequence_length, there


@cache
def counted(
    model_config: str, source: str, length: int | None, folder: str | None
) -> Amounts | Wrong | None:
    """Return the numbers of samples in a data set: its fault if it cannot be counted, None if it
    does not exist."""
    try:
        return amounts(json.loads(model_config), source, length, folder)
    except (TaskError, BadData, OSError) as error:
        return Wrong(str(error))
