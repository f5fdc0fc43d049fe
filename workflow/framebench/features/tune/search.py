"""Search for the fastest combination of batch, precision and compiler within a time budget.

1. The first batch is measured once with the first precision and compiler, which also gives the
   others a base, then with all, which ends with half of the budget.
2. Larger batches follow with those that reach half of the best, until throughput no longer grows,
   no combination fits, or half of the budget is over.
3. The fastest combinations are repeated in the rest of the budget."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...tables.results import CaseResult

#: Growth of throughput below which a batch brings nothing, and how many such batches end a search.
GROWTH, IN_VAIN = 1.02, 2
#: Part of the best throughput from which on a combination is tried with the next batch.
WORTH = 0.5
#: Share of the budget for first figures; how many combinations are repeated; their repeats, with
#: which a median has an interval.
FIRST, FINALISTS, REPEATS = 0.5, 3, 6
#: Flag of a figure whose verification failed.
WRONG = "incorrect"


@dataclass(frozen=True)
class Search:
    """A search.

    ``begin``: measures the first combination with this batch. ``measure``: measures all
    combinations with these batches once, or the named cases as often as told, ends after so many
    seconds, and returns all results so far. ``clock``: returns seconds."""

    begin: Callable[[int], object]
    measure: Callable[[Sequence[int], Sequence[str], int, float | None], Sequence[CaseResult]]
    clock: Callable[[], float]
    budget: float

    def run(self, batches: Sequence[int]) -> list[CaseResult]:
        """Return all combinations, best first."""
        began, names = self.clock(), list[str]()
        tried: Sequence[int] = ()
        results: list[CaseResult] = []
        self.begin(batches[0])
        for count, batch in enumerate(batches, 1):
            before, tried = self.clock(), batches[:count]
            left = max(0.0, FIRST * self.budget - (before - began))
            results = [*self.measure(tried, names, 1, left)]
            # the next batch takes up to twice as long
            ahead = self.clock() - began + 2 * (self.clock() - before)
            if is_over(results, tried) or ahead > FIRST * self.budget or count == len(batches):
                break
            names = [_named(result, batches[count]) for result in promising(results, batch)]
        finalists = [result for result in ranked(results) if result.values][:FINALISTS]
        # what a measurement that was ended has of them is not verified yet
        ended = self.clock() - began >= FIRST * self.budget
        if finalists and (repeats := self._repeats(finalists, began) or ended):
            names = [str(finalist.case) for finalist in finalists]
            results = [*self.measure(tried, names, int(repeats), None)]
        return ranked(results)

    def _repeats(self, finalists: Sequence[CaseResult], began: float) -> int:
        """Return the repeats of the finalists that the rest of the budget allows; 0 for none."""
        seconds = sum(run.wall_seconds or 0.0 for finalist in finalists for run in finalist.ok[:1])
        left = self.budget - (self.clock() - began)
        count = min(REPEATS, 1 + int(left / seconds)) if seconds else 0
        return count if count > 1 else 0


def is_over(results: Sequence[CaseResult], batches: Sequence[int]) -> bool:
    """Return whether larger batches than ``batches`` are in vain."""
    best = [_best(results, batch) for batch in batches]
    if best[-1] == 0.0:
        return True
    record, in_vain = 0.0, 0
    for throughput in best:
        grows = throughput > GROWTH * record
        record, in_vain = (throughput, 0) if grows else (record, in_vain + 1)
    return in_vain >= IN_VAIN


def promising(results: Sequence[CaseResult], batch: int) -> list[CaseResult]:
    """Return the results with ``batch`` that a larger batch may make the best."""
    best = _best(results, batch)
    some = [result for result in results if result.case.batch_per_device == batch]
    return [result for result in some if _figure(result) and _figure(result) >= WORTH * best]


def _named(result: CaseResult, batch: int) -> str:
    return str(result.case._replace(batch_per_device=batch))


def _best(results: Sequence[CaseResult], batch: int) -> float:
    return max(
        (_figure(result) for result in results if result.case.batch_per_device == batch),
        default=0.0,
    )


def _figure(result: CaseResult) -> float:
    """Return the throughput; 0 without one, and where something else was computed."""
    return 0.0 if WRONG in result.flags else result.throughput or 0.0


def ranked(results: Sequence[CaseResult]) -> list[CaseResult]:
    """Return the results best first; those that computed something else, or nothing, last."""
    return sorted(results, key=lambda result: (-_figure(result), -(result.throughput or 0.0)))
