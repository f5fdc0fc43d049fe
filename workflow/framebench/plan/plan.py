"""The plan of a call, and the sidecar file of the cases that it expects."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from core.case import Case

from ..cases import conditions
from ..cases.fitting import Capacity, LeftOut
from ..config.settings import Settings
from ..environments.software import Software
from ..environments.soundness import is_sound
from ..machine.identities import Identity
from ..records.run import Run
from ..records.sidecars import ExpectedCase, write_expected
from .batch_searches import BatchSearch
from .case_settings import asked_conditions, software
from .job import Job, files_of


@dataclass(frozen=True)
class Plan:
    """The plan of a whole suite on this machine."""

    settings: Settings
    capacity: Capacity
    folders: dict[Case, str]
    runs: list[Job]
    reserve: list[Job]
    """Repeats that run only if the earlier ones leave an interval too wide."""
    left_out: list[LeftOut]
    software: dict[str, Software]
    """Software of the cases by name, see :func:`case_settings.software`."""
    cached: int
    """Number of cached records behind the estimates."""
    searches: list[BatchSearch]
    """Searches for the largest batch."""
    here: Identity
    elsewhere: list[Run]
    """Records of other machines that match the plan; they are kept and measured again here."""
    scripts: Path
    """Folder of the harness's code, as commands name it."""
    is_whole: bool
    """True if the plan has all cases of the suite that fit the machine."""
    stages: dict[Case, int]
    """Stage of the suite in which a case is measured, see :mod:`budget`."""
    seconds: dict[Case, float]
    """Expected seconds of a run of each case."""
    slower: float
    """Seconds that runs took over those of the estimates without records."""
    larger: dict[Case, Case]
    """Cases with a multiple of the batch of another, and that case: see ``batch_check``."""
    leads: tuple[int, int] = (0, 0)
    """Settled leads and all leads after a round, (0, 0) without a time budget."""

    @property
    def pending(self) -> list[Job]:
        return [run for run in self.runs if not run.status]

    @property
    def computed(self) -> list[Case]:
        """Cases that are computed on this machine; with a time budget, those with a run."""
        if self.settings.budget is None:
            return self.cases
        begun = {run.case for run in self.runs}
        return [case for case in self.folders if case in begun]

    @property
    def failing(self) -> set[str]:
        """Names of software that earlier calls could not build; no job waits for the next
        attempt."""
        return {
            name
            for name, own in self.software.items()
            if own.file and own.marker and not is_sound(own.marker)
            and os.path.exists(files_of(self.settings.results, "environment", own.file.name)[1])
        }  # fmt: skip

    @property
    def unsearched(self) -> list[BatchSearch]:
        return [search for search in self.searches if search.result is None]

    @property
    def needed(self) -> dict[str, Software]:
        """Software of the pending runs and searches, by name."""
        to_do = [run.case for run in self.pending] + [search.case for search in self.unsearched]
        names = sorted({software(case, self.settings.suite) for case in to_do})
        return {name: self.software[name] for name in names}

    @property
    def cases(self) -> list[Case]:
        """Cases with runs, and cases with a pending batch search."""
        return [*self.folders, *(search.case for search in self.unsearched)]


def note_expected(plan: Plan) -> None:
    """Write the expected cases of the plan next to the records, and those left out at a setting
    at which others are measured. Raises OSError.

    Cases that check another batch are not expected: only those of the leaders are measured."""
    competing = {case.setting for case in plan.folders}
    noted = [(case, folder, "") for case, folder in plan.folders.items() if case not in plan.larger]
    noted += [(search.case, "", "") for search in plan.unsearched]
    noted += [(out.case, "", out.reason) for out in plan.left_out if out.case.setting in competing]
    cases = [
        ExpectedCase(
            plan.settings.suite.name,
            folder,
            case._replace(
                source=conditions.OURS,
                batch_per_device=int(case.batch_per_device) if folder or why else 0,
            ),
            asked_conditions(case, plan.settings, plan.capacity),
            plan.settings.budget is not None,
            why,
        )
        for case, folder, why in noted
    ]
    write_expected(plan.settings.results, plan.settings.suite.name, cases, plan.is_whole)
