"""Agreement of two record sets that measured the same: orders that repeat, intervals that hold."""

from __future__ import annotations

from collections.abc import Iterator

from ..cases.conditions import Key
from ..tables import contests
from ..tables.declared import fastest
from ..tables.table import Inputs
from .compare import match


def summary_text(first: Inputs, second: Inputs) -> str:
    """Say how many orders and intervals of each set the other one confirms; "" for none.

    An order is that of the fastest framework and one other at a setting, where the table
    ``fastest`` calls it sure. It repeats if the medians of the other set have the same order. An
    interval holds if it covers the other set's median."""
    outcomes = {
        "orders called sure repeat": [*_repeats(first, second), *_repeats(second, first)],
        "intervals cover the other median": [*_covers(first, second), *_covers(second, first)],
    }
    return "\n".join(
        f"{sum(held)} of {len(held)} {what} ({sum(held) / len(held):.0%})"
        for what, held in outcomes.items()
        if held
    )


def _repeats(inputs: Inputs, others: Inputs) -> Iterator[bool]:
    """Yield whether each order that is called sure has the same direction in ``others``."""
    ranks = {setting: names for setting, names, _ in _rankings(others)}
    for setting, (leader, *rest), is_sure in _rankings(inputs):
        names = ranks.get(setting, [])
        for name in rest if is_sure and leader in names else ():
            if name in names:
                yield names.index(leader) < names.index(name)


def _rankings(inputs: Inputs) -> Iterator[tuple[Key, list[str], bool]]:
    """Yield each setting with its frameworks, the fastest first, and whether its order is sure."""
    found = inputs.once(contests.find_contests)
    for contest, row in zip(found, fastest.rows(inputs), strict=True):
        if contest.entrants:
            names = [entrant.case.framework for entrant in contest.entrants]
            yield contest.setting, names, row["certainty"] in (fastest.SURE, fastest.ORDER_SURE)


def _covers(inputs: Inputs, others: Inputs) -> Iterator[bool]:
    """Yield whether the interval of each median covers the median in ``others``."""
    sets = ({**both.cases, **both.others} for both in (inputs, others))
    for matched in match(*sets):
        for own, other in [matched.both] if matched.both else ():
            if own.interval and other.throughput is not None:
                yield own.interval[0] <= other.throughput <= own.interval[1]
