"""Table of the fastest framework at each setting, its lead, and whether that is significant."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

from core.text import duration

from ...records.flags import DISTURBED
from ...statistics import descriptive, intervals, repeated_intervals
from ...statistics.repeated_intervals import Order
from ...statistics.verdicts import CANNOT_TELL, FASTER, LEVEL, NO_DIFFERENCE
from .. import contests, measured
from ..columns import COLUMNS, OWN, Row, interval_cells
from ..contests import ON_MACHINE, Contest, exclusion
from ..ratios import Sides, possible, set_verdicts
from ..results import CaseResult, flags_of
from ..table import Fields, declared_table

#: How certain a lead is: its order and size, its order alone, or neither.
SURE, ORDER_SURE, OPEN = "sure", "order sure", "open"
#: Orders of cases that are shown to be slower.
_BEHIND = (Order.SLOWER, Order.FAR_BEHIND)
#: Flags of errors beyond sampling: with one of them, the size of a lead is not sure.
_UNSURE = frozenset({DISTURBED, "noisy"})


def judge(found: Sequence[Contest]) -> list[Row]:
    """Return a row per contest; its framework is "" while a framework of the suite is unmeasured.

    1. The fastest case of each framework counts.
    2. The fastest is compared with the runner-up: median over median, inverted for metrics where
       less is better. No adjustment for the number of frameworks is needed (Hung & Fithian, "Rank
       verification for exponential families", *Annals of Statistics* 47, 2019). The choice among
       cases of one framework is adjusted for.
    3. The verdict is adjusted for all settings with a comparison.
    4. Order and size of the lead are two statements: the order is judged by cases with enough
       repeats, see :func:`_judged`, the size by the fastest ones.

    Where a time budget decided the repeats, the fastest is compared with every other framework, and
    the verdict holds whenever the repeats stopped, see :mod:`repeated_intervals`."""
    count = sum(contest.pair is not None for contest in found)
    own, of_order = (
        set_verdicts([sides(contest) if contest.error is None else None for contest in found])
        for sides in (_sides, _order_sides)
    )
    made: list[Row] = []
    for at, contest in enumerate(found):
        row = _figures(contest, count)
        row |= {"verdict": FASTER if of_order[at] == FASTER else own[at]}
        if not row["reason"]:
            is_fixed = contest.error is None
            row |= {"reason": _undecided(row)} if is_fixed else _within_budget(contest)
        row |= {"certainty": _certainty(row)}
        if row["verdict"] == FASTER and not (row["lead_ci_low"] or 0) > 1:
            row |= {"reason": "other cases show the order; the size of the lead is open"}
        made.append(row)
    return made


def slower(found: Sequence[Contest]) -> list[list[CaseResult]]:
    """Return the entrants of each contest that are shown to be slower than its fastest.

    Where the number of repeats is fixed, the tests are adjusted for all such comparisons."""
    results: list[list[CaseResult]] = [[] for _ in found]
    pairs: list[tuple[int, CaseResult]] = []
    for at, contest in enumerate(found):
        if contest.pair and contest.error is None:
            pairs += [(at, other) for other in contest.entrants[1:] if min(other.values) > 0]
        elif contest.pair and contest.error is not None:
            orders = _budgeted_orders(contest, contest.error)
            both = zip(contest.entrants, orders, strict=True)
            results[at] = [entrant for entrant, order in both if order in _BEHIND]
    sides = [_sides_of(found[at].entrants[0], other, found[at].choices) for at, other in pairs]
    for (at, other), verdict in zip(pairs, set_verdicts(sides), strict=True):
        if verdict == FASTER:
            results[at].append(other)
    return results


# ---- fixed numbers of repeats -------------------------------------------------------------------


class _Judged(NamedTuple):
    """Cases by which the order of a setting is judged.

    ``leaders``: cases of the fastest framework, the fastest first, chosen from ``choices``.
    ``others``: one of each other framework, the fastest first."""

    leaders: Sequence[CaseResult]
    others: Sequence[CaseResult]
    choices: int


def _judged(contest: Contest, fewest: int) -> _Judged:
    """Return the cases by which the order of a setting is judged.

    For each framework it is the fastest case with at least ``fewest`` repeats; for the fastest
    framework all such cases, so that a faster compiler, variant or environment with few repeats
    does not unsettle an order. The fastest cases are judged if none has that many repeats, or if a
    repeat of another framework's faster case contradicts the order."""
    first, *rest = contest.entrants
    enough: dict[str, list[CaseResult]] = defaultdict(list)
    for result in contests.ranked(contest.results):
        if len(result.values) >= fewest and min(result.values) > 0:
            enough[result.case.framework].append(result)
    leaders = enough[first.case.framework]
    others = [next(iter(enough[entrant.case.framework]), entrant) for entrant in rest]
    if leaders and contests.ranked([leaders[0], *others])[0] is leaders[0]:
        middle = descriptive.median(_ascending(leaders[0]))
        if not any(
            entrant is not judged and max(_ascending(entrant)) >= middle
            for entrant, judged in zip(rest, others, strict=True)
        ):
            return _Judged(leaders, contests.ranked(others), len(leaders))
    return _Judged([first], rest, contest.choices)


def _sides(contest: Contest) -> Sides | None:
    """Return the sides of the lead; None if nothing is compared."""
    return _sides_of(*contest.pair, contest.choices) if contest.pair else None


def _order_sides(contest: Contest) -> Sides | None:
    """Return the sides that show the order best; None if nothing is compared."""
    if contest.pair is None:
        return None
    leaders, others, choices = _judged(contest, intervals.REPEATS_FOR_RATIO)
    sides = [_sides_of(leader, others[0], choices) for leader in leaders]
    return min(sides, key=lambda both: intervals.rank_test(both.base, both.values))


def _sides_of(first: CaseResult, second: CaseResult, choices: int) -> Sides:
    """Return two cases as sides whose ratio is above 1 where the first one is better."""
    sides = (second, first) if first.better == "higher" else (first, second)
    return Sides(sides[0].values, sides[1].values, choices)


def _undecided(row: Row) -> str:
    """Return why a lead is not significant; "" if the verdict needs no explanation."""
    if row["verdict"] in (FASTER, NO_DIFFERENCE):
        return ""
    if too_few(row):
        return f"too few repeats: needs {row['repeats_to_show']}"
    is_open = row["verdict"] == CANNOT_TELL
    return possible((row["lead_ci_low"], row["lead_ci_high"])) if is_open else ""


def too_few(row: Row) -> bool:
    """Return whether a row has fewer repeats than a significant lead needs."""
    return bool(min(row["repeats"], row["next_repeats"]) < (row["repeats_to_show"] or 0))


def _certainty(row: Row) -> str:
    """Return how certain the lead is; "" without a lead."""
    if row["lead"] is None:
        return ""
    if row["verdict"] != FASTER:
        return OPEN
    is_shown = (row["lead_ci_low"] or 0) > 1
    return SURE if is_shown and not _UNSURE & {*row["flags"].split()} else ORDER_SURE


# ---- repeats that a time budget decided ---------------------------------------------------------


class OpenOrder(NamedTuple):
    """Repeats that settle the order of a setting within a time budget.

    ``contenders``: entrants whose order is open, the fastest first. ``slower``: significantly
    slower entrants. ``repeats``: repeats of each contender at the next look, which takes about
    ``seconds`` more."""

    contenders: Sequence[CaseResult]
    slower: Sequence[CaseResult]
    repeats: int
    seconds: float


def _budgeted_orders(contest: Contest, error: float) -> Sequence[Order | None]:
    """Return the order of each entrant to the fastest, by the cases that show it best."""
    judged = _judged(contest, repeated_intervals.FIRST_LOOK)
    orders = _orders(contest.entrants, error / contest.choices)
    for leader in judged.leaders if Order.OPEN in orders else ():
        found = _orders([leader, *judged.others], error / judged.choices)
        if not {Order.OPEN, Order.NO_DIFFERENCE} & {*found}:
            return found
    return orders


def _orders(cases: Sequence[CaseResult], error: float) -> list[Order | None]:
    """Return the order of each case to the first; all are open if the first does not lead."""
    leader, orders = repeated_intervals.orders([_ascending(case) for case in cases], error)
    return orders if leader == 0 else [None, *[Order.OPEN] * (len(cases) - 1)]


def open_order(contest: Contest) -> OpenOrder | None:
    """Return what settles the order of a contest within a time budget; None if it is settled, or
    nothing can be compared."""
    if contest.error is None or contest.pair is None:
        return None
    found: dict[Order | None, list[CaseResult]] = defaultdict(list)
    orders = _budgeted_orders(contest, contest.error)
    for entrant, order in zip(contest.entrants, orders, strict=True):
        found[order].append(entrant)
    if not found[Order.OPEN]:
        return None
    contenders = [contest.entrants[0], *found[Order.OPEN]]
    count = repeated_intervals.next_look(min(len(contender.values) for contender in contenders))
    seconds = [
        (count - len(contender.values)) * descriptive.median(took)
        for contender in contenders
        if (took := [run.wall_seconds for run in contender.ok if run.wall_seconds])
    ]
    return OpenOrder(contenders, found[Order.SLOWER], count, sum(seconds))


def _within_budget(contest: Contest) -> Row:
    """Return the cells of a lead for which a time budget decided the number of repeats."""
    both = _sides(contest)
    assert both is not None
    assert contest.error is not None
    ends = repeated_intervals.ratio_interval(both.base, both.values)
    cells = {**interval_cells("lead", ends), "repeats_to_show": repeated_intervals.FIRST_LOOK}
    open_ = open_order(contest)
    if open_ is None:
        is_equal = Order.NO_DIFFERENCE in _budgeted_orders(contest, contest.error)
        return {**cells, "verdict": NO_DIFFERENCE if is_equal else FASTER, "reason": ""}
    names, slower = (", ".join(result.case.framework for result in some)
                     for some in (open_.contenders, open_.slower))  # fmt: skip
    behind = f" ({slower} significantly slower)" if slower else ""
    repeats = min(len(both.base), len(both.values))
    return {
        **cells,
        "verdict": CANNOT_TELL if ends else "",
        "repeats_to_show": repeated_intervals.next_look(repeats),
        "reason": f"not settled between {names}{behind}: {open_.repeats} repeats of each, about "
        f"{duration(open_.seconds)}",
    }


def _ascending(result: CaseResult) -> list[float]:
    """Return the repeats' figures so that more is better: inverted if less is better."""
    return [*result.values] if result.better == "higher" else [1 / value for value in result.values]


# ---- cells --------------------------------------------------------------------------------------


def _figures(contest: Contest, count: int) -> dict[str, Any]:
    """Return a row without its verdict. ``count``: number of settings with a comparison."""
    entrants = () if contest.missing else contest.entrants[:2]
    first, second = (*entrants, None, None)[:2]
    key = first.key if first else contest.setting
    own = second.key.row if second else {}
    lead = ends = needed = None
    if both := _sides(contest):
        lead = descriptive.median(both.values) / descriptive.median(both.base)
        ends = intervals.ratio_interval(both.base, both.values)
        needed = intervals.repeats_for_comparison(1 - LEVEL / (count * both.choices))
    return {
        **key.row,
        ON_MACHINE: contest.machine,
        "parameters": measured.parameters_text(key.case),
        "metric": key.metric,
        "median": first and first.throughput,
        "unit": contest.setting.unit,
        "repeats": len(first.values) if first else 0,
        **{f"next_{name}": missing if own.get(name) is None else own[name]
           for name, missing in _MISSING.items()},
        "next_median": second and second.throughput,
        "next_repeats": len(second.values) if second else 0,
        "lead": lead,
        **interval_cells("lead", ends),
        "repeats_to_show": needed,
        "compared": len(contest.entrants),
        "tried": len(contest.entrants) + len(contest.without),
        "missing": ", ".join(contest.missing),
        "reason": _incomparable(contest),
        "excluded": "; ".join(
            exclusion(result) for result in contest.results if result.excluded
        ),
        "other_batch": contest.other_batch,
        "flags": flags_of(first, second),
    }  # fmt: skip


_MISSING = {name: False if COLUMNS[name].type == "bool" else "" for name in OWN}


def _incomparable(contest: Contest) -> str:
    """Return why nothing is compared; "" if two frameworks are."""
    if contest.missing:
        return f"not measured yet: {', '.join(contest.missing)}"
    counts = Counter(result.standing for result in contest.without)
    ends = ", ".join(f"{count} {status}" for status, count in sorted(counts.items()))
    if not contest.entrants:
        return f"no figure: {ends}"
    if not contest.entrants[0].case.framework:
        return "the benchmark needs no framework"
    if len(contest.entrants) == 1:
        return "no other framework has a figure" + (f": {ends}" if ends else "")
    return "" if contest.pair else "a ratio needs figures above 0"


def _behind(row: Row) -> list[tuple[str, Fields]]:
    names = [("fastest", row)] if row["framework"] or row["median"] is not None else []
    if row["next_framework"]:
        names.append(("next", {name: row[f"next_{name}"] for name in OWN}))
    return [(label, {name: cells[name] for name in OWN}) for label, cells in names]


FASTEST = declared_table(
    "fastest", lambda inputs: judge(contests.find_contests(inputs)), behind=_behind
)
TABLES = (FASTEST,)
