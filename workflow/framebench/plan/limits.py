"""Minutes that cluster jobs request, and the time limits of their runs."""

from __future__ import annotations

import json
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from core.case import Case

from ..config.settings import Settings
from ..files import json_files
from ..files.whole_files import write_whole
from ..records.run import Run
from ..records.sidecars import interruptions
from . import estimates
from .pairing import by_folder

#: Time limit of a run over the median of the runs of its case.
_SLACK = 3.0
#: Most doublings of a request.
_MOST_DOUBLINGS = 10
#: SLURM's state of a job that reached its time limit.
_TIMEOUT = "TIMEOUT"

#: File in the results: minutes of a job, by the case's folder, written by the submitting call.
FILE = ".minutes.json"


def write_minutes(results: Path, minutes: Mapping[str, int]) -> None:
    """Write the minutes of the jobs of each case's folder, so that jobs need not read all
    records."""
    write_whole(results / FILE, json.dumps(dict(minutes)))


def read_minutes(results: Path) -> dict[str, int]:
    """Read the minutes that the submitting call wrote. Raises OSError if there are none."""
    minutes: dict[str, int] = json_files.read(results / FILE)
    return minutes


def minutes_of_cases(
    folders: Mapping[Case, str],
    settings: Settings,
    latest: Iterable[Run],
    written: Mapping[str, int] | None = None,
) -> dict[Case, int]:
    """Return the minutes to request from the cluster, by case; {} without a cluster.

    A run may take three times the median of its case's ok runs, at most ``time_limit``, which also
    applies without ok runs. The request doubles after a timeout and for each job that the scheduler
    ended at its limit. ``written``: minutes that the submitting call wrote.
    """
    cluster = settings.cluster
    if cluster is None:
        return {}
    if written is not None:
        return {case: written[folder] for case, folder in folders.items() if folder in written}
    runs = by_folder(latest)
    ended = _ended_by_scheduler(settings.results)
    results = {}
    for case, folder in folders.items():
        ok = [r.wall_seconds for r in runs[folder] if r.status == "ok" and r.wall_seconds]
        longest = _SLACK * statistics.median(ok) if ok else settings.time_limit
        stopped = [r.time_limit for r in runs[folder] if r.status == "timeout" and r.time_limit]
        doublings = min(ended[folder], _MOST_DOUBLINGS)
        asked = minutes(settings, min(longest, settings.time_limit), 2**doublings)
        again = minutes(settings, max(stopped), 2) if stopped else 0
        results[case] = max(asked, again)
    return results


def minutes(settings: Settings, seconds: float | None = None, factor: int = 1) -> int:
    """Return the minutes to request for a run of so many ``seconds``, times ``factor``.

    None stands for the configured ``time_limit``.
    """
    assert settings.cluster is not None, "only a cluster is asked for something"
    limit = settings.time_limit if seconds is None else seconds
    return settings.cluster.minutes(limit + _before(settings), factor)


def run_limit(settings: Settings, asked: int | None = None) -> float:
    """Return the seconds after which a run ends by itself.

    On a cluster it may be less than the configured limit, so that a record is left before the job
    ends. ``asked``: requested minutes of the job; None for those that the configured limit needs.
    """
    limit, cluster = settings.time_limit, settings.cluster
    if cluster is None:
        return limit
    left = cluster.run_limit(asked or minutes(settings)) - _before(settings)
    return min(limit, max(left, 30.0))


def _before(settings: Settings) -> float:
    """Return seconds before a run begins in its job: the first on a node builds the environment."""
    return 3 * estimates.ENVIRONMENT_SECONDS * settings.node_local


def _ended_by_scheduler(results: Path) -> Counter[str]:
    """Count the largest number of scheduler timeouts of one run, by case folder."""
    times = Counter(
        interruption.run
        for interruption in interruptions.load(results)[0]
        if interruption.status == _TIMEOUT
    )
    most: Counter[str] = Counter()
    for run, count in times.items():
        folder = run.rpartition("/")[0]
        most[folder] = max(most[folder], count)
    return most
