"""Number of repeats that each case of a performance gate should have.

The two variants of a gate's suite are base and candidate, in this order. A case is measured further
until the group-sequential test (:mod:`statistics.sequential`) decides all its metrics.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from core.case import Case

from ..cases.matrix import without_variant
from ..config.suite import Suite
from ..records.run import Run, paired_ratios


def wanted_pairs(runs: Mapping[Case, Sequence[Run]], suite: Suite) -> dict[Case, int]:
    """Return the number of repeats that each case of a gate should have. ``runs``: all earlier
    runs.

    A case with a run that was not ok gets no more.
    """
    from ..statistics import sequential  # here: most plans need no numpy

    margin, at_most = suite.repeats.margin, suite.repeats.at_most
    assert margin is not None, "called only for a suite with a rule for repeats"
    sides: dict[Case, list[Case]] = defaultdict(list)
    order = [*suite.variants]
    for case in sorted(runs, key=lambda case: order.index(case.variant)):
        sides[without_variant(case, suite.own_model)].append(case)
    ratios = {shared: [*_ratios(*(runs[case] for case in both))] for shared, both in sides.items()}
    count = sum(map(len, ratios.values()))
    results = {}
    for shared, both in sides.items():
        some = [run for case in both for run in runs[case]]
        there = max([suite.repeats.at_least, *(run.repeat for run in some)])
        complete = len(some) == len(both) * there and all(run.status == "ok" for run in some)
        few = min(map(len, ratios[shared]), default=0)
        look = sequential.next_look(few)
        tested = ratios[shared]
        if suite.repeats.two_sided:
            tested = [*tested, *([1 / ratio for ratio in entry] for entry in tested)]
        is_open = any(
            not sequential.bounds(entry, margin, count).decides(margin) for entry in tested
        )
        # Repeats without a pair are made up for.
        then = there + look - few if complete and is_open and look else there
        results.update(dict.fromkeys(both, then if then <= at_most else there))
    return results


def _ratios(base: Sequence[Run], candidate: Sequence[Run] = ()) -> Iterator[list[float]]:
    """Yield the ratios of the pairs for each metric that has pairs; above 1 is better."""
    one, other = ([run for run in side if run.status == "ok"] for side in (base, candidate))
    for metric in one[0].metrics if one else ():
        below, above = (one, other) if metric.better == "higher" else (other, one)
        values = [run.value(metric.name, metric.point) for run in (*one, *other)]
        if all(value is None or value > 0 for value in values) and (
            found := paired_ratios(below, above, metric.name, metric.point)
        ):
            yield found
