"""Which searches for the largest batch a plan needs, and which of them are done."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from core.case import MAX, Case

from ..config import kinds
from ..config.catalog import Catalog
from ..config.suite import Bounds
from ..files import bounded
from ..files.attempt_names import attempt_name
from ..records.searches import KIND, Result, parse

#: Steps of a run that tries a batch: the second is the first to hold the optimizer's state, too.
WARMUP_STEPS, TIMED_STEPS = 1, 2
#: What a run is asked that does not decide whether its batch fits.
_NOT_DECIDING = ("warmup_steps", "warmup_limit", "timed_steps", "seed")


class BatchSearch(NamedTuple):
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


def needed(
    requests: Mapping[Case, Mapping[str, Any]],
    bounds: Bounds,
    memory: Mapping[str, str],
    folder: Path,
    retry: Collection[str],
) -> dict[Case, BatchSearch]:
    """The search of each case whose batch is ``max``. ``requests``: what is asked of the
    runs of each besides itself; ``memory``: how much there is and how much may be used; ``folder``:
    of the results. One that is none, or whose status is in ``retry``, is made again under the next
    retry's name."""
    found = {}
    for case, request in requests.items():
        if case.batch_per_device == MAX:
            asked = {key: value for key, value in request.items() if key not in _NOT_DECIDING}
            name = case.folder({**asked, **bounds._asdict(), **memory})
            found[case] = _search(case, name, folder, retry)
    return found


def _search(case: Case, name: str, folder: Path, retry: Collection[str]) -> BatchSearch:
    attempt = 0
    while True:
        tried = attempt_name(name, attempt)
        path = folder / f"{tried}.json"
        try:
            result = parse(bounded.read_bytes(path))
        except (OSError, ValueError):
            # A link to nowhere takes the name, too.
            if not os.path.lexists(path):
                return BatchSearch(case, tried, None)
            result = None
        following = folder / f"{attempt_name(name, attempt + 1)}.json"
        if result and not following.exists() and result.status not in retry:
            return BatchSearch(case, tried, result)
        attempt += 1


def expected(case: Case, bounds: Bounds, catalog: Catalog) -> list[Case]:
    """The cases that the search of this one may run, of which nothing is known."""
    parameters = tuple((name, str(value)) for name, value in parameters_of(case, bounds).items())
    runs = kinds.expected_runs(KIND, parameters, catalog.root)
    return [case._replace(**run) for run in runs]


def parameters_of(case: Case, bounds: Bounds) -> dict[str, Any]:
    """Those of the kind of measurement that a search is."""
    return {"mode": case.mode, **bounds._asdict()}
