"""Which framework is fastest at what, by how much, and whether that is shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from ...cases.conditions import KEYS
from ...statistics.verdicts import CANNOT_TELL, FASTER, LEVEL, NO_DIFFERENCE
from .. import contests, measured
from ..columns import (
    COLUMNS,
    COUNT,
    NUMBER,
    THOUSANDTHS,
    WHOLE,
    Column,
    Row,
    interval,
    shared,
    why_no_ratio_interval,
)
from ..contests import ON_MACHINE, OWN, SETTING, Contest
from ..ratios import VERDICT, Sides, possible, with_verdicts
from ..results import CaseResult, marks_of
from ..table import Fields, Inputs, Table

#: Verdicts that more repeats are not needed for.
DECIDED = (FASTER, NO_DIFFERENCE)


def rows(inputs: Inputs) -> Iterator[list[Any]]:
    """A row for each setting.

    1. Of the cases of a framework at one setting the fastest counts.
    2. The fastest of these is compared with the next: median over median, of a metric of which
       less is better the other way round. That only the next is compared takes no adjusting for
       the number of frameworks (Hung & Fithian, "Rank verification for exponential families",
       *Annals of Statistics* 47, 2019); that the fastest was chosen from several cases of its
       framework does.
    3. The verdict is adjusted for all settings where two are compared.
    """
    found = contests.of(inputs)
    count = sum(contest.pair is not None for contest in found)
    compared = ((_figures(contest, count), _sides(contest)) for contest in found)
    for contest, (*row, verdict) in zip(found, with_verdicts(compared), strict=True):
        first, second = _first_two(contest)
        yield [*row, verdict, _reason(contest, row, verdict), marks_of(first, second)]


def _first_two(contest: Contest) -> tuple[CaseResult | None, CaseResult | None]:
    first, second = (*contest.entrants[:2], None, None)[:2]
    return first, second


def _sides(contest: Contest) -> Sides | None:
    if contest.pair is None:
        return None
    first, second = contest.pair
    if first.better == "higher":
        return Sides(second.values, first.values, contest.figures[0])
    return Sides(first.values, second.values, contest.figures[0])


def _figures(contest: Contest, count: int) -> list[Any]:
    """All of a row before its verdict. ``count``: of the settings where two are compared."""
    from ...statistics import descriptive, intervals  # numpy takes its time

    first, second = _first_two(contest)
    key = first.key if first else contest.setting
    cells, own = key.row, dict.fromkeys(OWN) | (second.key.row if second else {})
    lead = low = high = needed = None
    if both := _sides(contest):
        lead = descriptive.median(both.values) / descriptive.median(both.base)
        low, high = intervals.ratio_interval(both.base, both.values) or (None, None)
        needed = intervals.repeats_for_comparison(1 - LEVEL / (count * both.choices))
    return [
        *(cells[name] for name in SETTING),
        contest.machine,
        measured.parameters_text(key.case),
        key.metric,
        *(cells[name] for name in OWN),
        first and first.throughput,
        contest.setting.unit,
        len(first.values) if first else 0,
        *(own[name] if own[name] is not None else _MISSING[name] for name in OWN),
        second and second.throughput,
        len(second.values) if second else 0,
        lead,
        low,
        high,
        needed,
        len(contest.entrants),
        contest.tried,
    ]


def _reason(contest: Contest, row: Sequence[Any], verdict: str) -> str:
    """Why nothing is shown."""
    ends = _ends(contest)
    if not contest.entrants:
        return f"no figure: {ends}"
    if not contest.entrants[0].case.framework:
        return "it needs no framework"
    if len(contest.entrants) == 1:
        return "no other framework has a figure" + (f": {ends}" if ends else "")
    cells = dict(zip(NAMES, row, strict=False))
    if cells["lead"] is None:
        return "a ratio needs figures above 0"
    if verdict not in DECIDED and too_few(cells):
        return f"too few repeats: {cells['repeats_to_show']} could show it"
    if verdict == CANNOT_TELL:
        return possible((cells["lead_ci_low"], cells["lead_ci_high"]))
    return ""


def too_few(row: Row) -> bool:
    """Whether the repeats of a row could not show a lead, were it the only one of the table."""
    return bool(min(row["repeats"], row["next_repeats"]) < (row["repeats_to_show"] or 0))


def _ends(contest: Contest) -> str:
    """How the frameworks without a figure ended."""
    ends = Counter(result.status for result in contest.without)
    return ", ".join(f"{count} {status}" for status, count in sorted(ends.items()))


def _behind(row: Row) -> list[tuple[str, Fields]]:
    names = [("fastest", row)] if row["framework"] or row["median"] is not None else []
    if row["next_framework"]:
        names.append(("next", {name: row[f"next_{name}"] for name in OWN}))
    return [(label, {name: cells[name] for name in OWN}) for label, cells in names]


def _own(name: str) -> Column:
    """A column of the fastest: one that frameworks differ in stands in its row."""
    titles = {"framework": "fastest"}
    return replace(
        COLUMNS[name],
        title=titles.get(name, COLUMNS[name].title),
        hoisted=name not in ("framework", "compiler"),
        detail="",
    )


def _of_next(name: str) -> Column:
    """The same of the next."""
    titles = {"framework": "next", "compiler": "its compiler"}
    return Column(
        f"next_{name}",
        COLUMNS[name].type,
        f"the same of the next: `{name}`",
        title=titles.get(name, f"its {COLUMNS[name].header}"),
        hidden=name not in titles,
    )


_MISSING = {name: False if COLUMNS[name].type == "bool" else "" for name in OWN}
FASTEST = Table(
    name="fastest",
    title="Fastest framework",
    explanation="At each setting the fastest framework, and its lead over the next: the ratio of "
    "their medians. Of several cases of a framework, which may differ in compiler, variant and "
    "version, the fastest counts. The lead is shown where the verdict is faster. The verdict is "
    "adjusted for the choice among cases of one framework; the choice among frameworks needs no "
    "adjusting, because the others are further behind than the next.",
    columns=(
        *(replace(COLUMNS[name], detail="") for name in SETTING),
        ON_MACHINE,
        measured.PARAMETERS,
        replace(measured.METRIC, hoisted=True),
        *map(_own, OWN),
        measured.MEDIAN,
        *shared("unit", "repeats"),
        *map(_of_next, OWN),
        Column(
            "next_median", NUMBER, "median of the next, in `unit`", title="its median",
            form=measured.MEDIAN.form, why=lambda row: "",
        ),
        Column("next_repeats", WHOLE, "repeats behind that", hidden=True),
        Column(
            "lead", NUMBER, "the fastest over the next, or the next over the fastest where less "
            "is better", form=THOUSANDTHS, marked=True, check="ratio", why=lambda row: "",
        ),
        *interval(
            "lead", "the lead", form=THOUSANDTHS, check="ratio",
            why=why_no_ratio_interval("lead"),
        ),
        Column(
            "repeats_to_show", COUNT, "the fewest repeats of each with which a lead can be shown, "
            "be it the only one of the table", title="needs repeats", why=lambda row: "",
        ),
        Column("compared", WHOLE, "frameworks that have a figure", title="frameworks"),
        Column("tried", WHOLE, "frameworks that were tried"),
        VERDICT,
        *shared("reason", "marks"),
    ),
    rows=rows,
    group="Answers",
    always=True,
    keys=(*KEYS, ON_MACHINE.name, "parameters", "metric", "unit"),
    answers=("verdict", "framework", "median", "lead", "next_framework"),
    order="lead",
    axes=("model", "mode", "precision", "devices"),
    behind=_behind,
)  # fmt: skip
NAMES = FASTEST.names
TABLES = (FASTEST,)
