"""The plan of a call, the searches for the largest batch that it needs, and the sidecar file of the
cases that it expects."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from core.case import MAX, Case

from ..cases import conditions
from ..cases.fitting import Capacity, LeftOut
from ..config.settings import Settings
from ..environments.building import is_sound
from ..environments.software import Software
from ..files.json_files import newest_attempt
from ..machine.identities import Identity
from ..records.record_sets import SEARCHES, SearchResult, read_search
from ..records.run import Run
from ..records.sidecars import ExpectedCase, write_expected
from .case_settings import asked_conditions, is_beside, software
from .job import Job, files_of

#: Settings of a run that do not decide whether its batch fits.
_NOT_DECIDING = ("warmup_steps", "warmup_limit", "timed_steps", "timed_seconds", "seed")


class BatchSearch(NamedTuple):
    """The search that a case with batch ``max`` needs. ``name``: path of its result below
    ``results/largest_batch``, without ``.json``; ``result``: None while it is pending."""

    case: Case
    name: str
    result: SearchResult | None

    @property
    def largest(self) -> Case | None:
        """The case with the largest batch; if the search failed, with the batch at which it ended,
        so that its status appears in the tables; None while it is pending."""
        found = self.result
        return self.case._replace(batch_per_device=found.batch) if found else None


def batch_searches(
    requests: Mapping[Case, Mapping[str, Any]],
    settings: Settings,
    memory: str,
    retry: Collection[str],
) -> dict[Case, BatchSearch]:
    """Return the search of each case whose batch is ``max``. ``requests``: settings of each case's
    runs, apart from the case; ``memory``: memory of the machine; ``retry``: statuses of
    results whose search is repeated, as it is for invalid results."""

    def read(path: Path) -> SearchResult | None:
        try:
            result = read_search(path)
        except (OSError, ValueError):
            return None
        return None if result.status in retry else result

    folder, results = settings.results / SEARCHES, {}
    for case, request in requests.items():
        if case.batch_per_device == MAX:
            asked = {key: value for key, value in request.items() if key not in _NOT_DECIDING}
            asked |= dict(settings.suite.largest_batch)
            asked |= {"memory": memory, "memory_limit": settings.memory_limit or "auto"}
            found = newest_attempt(folder, case.folder(asked), read)
            results[case] = BatchSearch(case, *found)
    return results


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
    """Median ratio of measured to estimated seconds, see :func:`estimates.corrected`."""
    larger: dict[Case, Case]
    """By case that checks another batch: the case that it checks, see ``batch_check``."""
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

    def seconds_for(self, jobs: Iterable[Job]) -> float:
        """Return the expected seconds of jobs; for jobs side by side a lower bound."""
        jobs = list(jobs)
        beside = [job.seconds for job in jobs if is_beside(job.case.devices, self.settings)]
        alone = sum(job.seconds for job in jobs) - sum(beside)
        return alone + max([sum(beside) / self.capacity.devices_per_node, *beside])

    def total_seconds(self, jobs: Collection[Job]) -> float:
        """Return the seconds until all jobs of the plan are done. A time budget stands for all of
        them except the building of environments."""
        budget = self.settings.budget
        if budget is None or not jobs:
            return self.seconds_for(jobs)
        return budget + sum(job.seconds for job in jobs if job.kind == "environment")

    def node_hours(self, jobs: Iterable[Job]) -> float:
        """Return the node hours of jobs on a cluster if each uses its time limit, plus the time
        budget, which later rounds may use."""
        settings, cluster = self.settings, self.settings.cluster
        assert cluster is not None, "only a cluster has node hours"
        hours = cluster.minutes(settings.seconds_per_run) / 60
        return (settings.budget or 0.0) / 3600 + hours * sum(job.nodes for job in jobs)


def note_expected(plan: Plan) -> None:
    """Write the expected cases of the plan next to the records, and the cases that are left out of
    settings in which others compete. Cases that check another batch are not expected, because only
    the leaders' are measured. Raises OSError."""
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
