"""Searches for the largest batch that a plan needs, and their state."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from core.case import MAX, Case

from ..config.suite import BatchBounds
from ..files.json_files import newest_attempt
from ..records.record_sets import SearchResult, read_search

#: Steps of a run that tries a batch. From the second on, the optimizer state is in memory.
WARMUP_STEPS, TIMED_STEPS = 1, 2
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
        """The case with the largest batch; None while the search is pending.

        A failed search gives the case at which it ended, so that its status appears in the tables.
        """
        if self.result is None:
            return None
        return self.case._replace(batch_per_device=self.result.batch)


def needed(
    requests: Mapping[Case, Mapping[str, Any]],
    bounds: BatchBounds,
    memory: Mapping[str, str],
    folder: Path,
    retry: Collection[str],
) -> dict[Case, BatchSearch]:
    """Return the search of each case whose batch is ``max``.

    Parameters
    ----------
    requests : settings of each case's runs, apart from the case
    bounds : of the search
    memory : memory of the machine and the part that may be used
    folder : of the results
    retry : statuses; a result with one of them, or an invalid one, is searched again
    """

    def read(path: Path) -> SearchResult | None:
        try:
            result = read_search(path)
        except (OSError, ValueError):
            return None
        return None if result.status in retry else result

    results = {}
    for case, request in requests.items():
        if case.batch_per_device == MAX:
            asked = {key: value for key, value in request.items() if key not in _NOT_DECIDING}
            name = case.folder({**asked, **dict(bounds), **memory})
            results[case] = BatchSearch(case, *newest_attempt(folder, name, read))
    return results
