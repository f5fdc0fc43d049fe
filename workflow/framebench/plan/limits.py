"""Minutes that jobs of a cluster are asked for, and when their runs are to end."""

from __future__ import annotations

import json
import os
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

from core.case import Case

from ..config.settings import Settings
from ..files import json_files
from ..files.whole_files import write_whole
from ..records.run import Run
from ..records.sidecars import interruptions
from . import estimates

#: A run may take so many times what those of its case took.
_SLACK = 3.0
#: Doublings of a request, at most.
_MOST_DOUBLINGS = 10
#: SLURM's state of a job that reached its time limit.
_TIMEOUT = "TIMEOUT"

#: In the results: minutes of a job, by the case's folder, as the call that submits it asks for.
FILE = ".minutes.json"


def write_minutes(results: Path, minutes: Mapping[str, int]) -> None:
    """Leave the minutes that the jobs of each case's folder are asked for to these jobs, which thus
    need not read the records of all others."""
    write_whole(results / FILE, json.dumps(dict(minutes)))


def read_minutes(results: Path) -> dict[str, int]:
    """Read what the call that submitted this job has left. Raises OSError where it has not."""
    minutes: dict[str, int] = json_files.read(results / FILE)
    return minutes


def minutes_of_cases(
    folders: Mapping[Case, str],
    settings: Settings,
    latest: Iterable[Run],
    written: Mapping[str, int] | None = None,
) -> dict[Case, int]:
    """Minutes to ask the cluster for, by case; {} without a cluster.

    A run may take three times the median of its case's ok runs. Until there is one, nothing but a
    guess is known, and it may take the configured ``time_limit``. After a timeout, and for each job
    that the scheduler ended at its limit, twice as much is asked for. ``written``: what the call
    that submitted this job has left.
    """
    cluster = settings.cluster
    if cluster is None:
        return {}
    if written is not None:
        return {case: written[folder] for case, folder in folders.items() if folder in written}
    runs: dict[str, list[Run]] = defaultdict(list)
    for run in latest:
        runs[os.path.dirname(run.origin)].append(run)
    ended = _ended_by_scheduler(settings.results)
    found = {}
    for case, folder in folders.items():
        ok = [r.wall_seconds for r in runs[folder] if r.status == "ok" and r.wall_seconds]
        longest = _SLACK * statistics.median(ok) if ok else settings.time_limit
        stopped = [r.time_limit for r in runs[folder] if r.status == "timeout" and r.time_limit]
        doublings = min(ended[folder], _MOST_DOUBLINGS)
        asked = minutes(settings, min(longest, settings.time_limit), 2**doublings)
        again = minutes(settings, max(stopped), 2) if stopped else 0
        found[case] = max(asked, again)
    return found


def minutes(settings: Settings, seconds: float | None = None, factor: int = 1) -> int:
    """Minutes to ask the cluster for where a run may take so many ``seconds``, times ``factor``.
    None: the configured ``time_limit``."""
    assert settings.cluster is not None, "only a cluster is asked for something"
    limit = settings.time_limit if seconds is None else seconds
    return settings.cluster.minutes(limit + _before(settings), factor)


def run_limit(settings: Settings, asked: int | None = None) -> float:
    """Seconds after which a run is to end by itself: the configured limit, on a cluster perhaps
    less, so that it leaves a record before its job is ended, for which so many minutes were
    ``asked``. None: as many as its limit needs."""
    limit, cluster = settings.time_limit, settings.cluster
    if cluster is None:
        return limit
    left = cluster.run_limit(asked or minutes(settings)) - _before(settings)
    return min(limit, max(left, 30.0))


def _before(settings: Settings) -> float:
    """Seconds before a run begins in its job: the first on each node builds its environment."""
    return 3 * estimates.ENVIRONMENT_SECONDS * settings.node_local


def _ended_by_scheduler(results: Path) -> Counter[str]:
    """Count how often the same run of a case's folder reached the scheduler's limit, at most."""
    times = Counter(one.run for one in interruptions.load(results)[0] if one.status == _TIMEOUT)
    most: Counter[str] = Counter()
    for run, count in times.items():
        folder = run.rpartition("/")[0]
        most[folder] = max(most[folder], count)
    return most
