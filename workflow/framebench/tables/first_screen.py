"""The answer as data, for the first screen of the page and the last lines of the terminal.

It says who is fastest at each setting, by how much, how sure that is, and who is excluded and why.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import chain

import pandas as pd
from core import precisions
from core.text import duration

from ..cases.conditions import OF_VARIANT
from ..cases.names import listed
from ..config import statuses
from ..config.catalog import model_title
from ..records import verified
from ..records.expected import TOO_SLOW
from ..records.fields import disturbance
from ..records.run import Run
from ..statistics.verdicts import FASTER, NO_DIFFERENCE, SLOWER
from . import contests, formatting, view
from .columns import Row
from .contests import Contest
from .declared import efficiency, own_model
from .declared.fastest import OPEN, ORDER_SURE, SURE, judge, open_order, too_few
from .declared.variants import VARIANTS
from .first_sentence import ahead, answer_sentence, interval_of_lead, lead_size
from .origin import Origin, coverage
from .results import CaseResult
from .setting_answers import (
    EACH_FASTEST,
    Entrant,
    FirstScreen,
    NextStep,
    SettingAnswer,
)
from .setting_names import (
    contest_name,
    precision_words,
    setting_labels,
    setting_name,
    title_of,
    titled,
    titles,
)
from .table import Inputs, Table

#: Models that the first line names.
_MOST_MODELS = 3
#: Axes in which the entrants of a setting differ.
_AXES = ("framework", "compiler", "precision")
#: Command of the next call where no call is known.
_COMMAND = "snakemake --cores all"


def first_screen(
    inputs: Inputs,
    tables: Mapping[Table, pd.DataFrame],
    runs: Sequence[Run],
    provenance: Origin,
    page: str = "",
) -> FirstScreen:
    """Return the content of the first screen.

    Parameters
    ----------
    inputs, tables
        All cases and the tables made of them.
    runs
        All runs, of which the first line counts and dates.
    provenance
        Origin of the runs.
    page
        Path of the report, "" if there is none.
    """
    found = _in_order_of_suites(inputs.once(contests.find_contests), inputs)
    families = _families(found)
    every = [contest for family in families for contest in family.shown]
    rows = judge(every)
    label = setting_labels(rows)
    is_slow = {id(result): efficiency.relate_to_peak(inputs, result)[1]
               for contest in found for result in contest.entrants}  # fmt: skip
    each = {id(family.each_fastest) for family in families}
    cannot, why_not, hidden = _cannot(found)
    settings = [
        _setting(contest, row, label(row), is_slow, id(contest) in each, hidden)
        for contest, row in zip(every, rows, strict=True)
    ]
    settings.sort(key=lambda setting: not setting.state)
    settings += _variants(view.rows_of(tables, VARIANTS))
    about_own = own_model.sentences(tables)
    results = [*inputs.cases.values(), *inputs.others.values()]
    return FirstScreen(
        _what(runs, provenance),
        answer_sentence(settings, about_own, provenance.machines),
        settings,
        cannot,
        why_not,
        _excluded(results),
        [*(f"{titled(text)}." for text in coverage(inputs, True)), *_careful(results)],
        [titled(text) for text in efficiency.slow_libraries(tables)],
        about_own,
        _next(found, provenance.command),
        page,
    )


# ---- settings -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Family:
    """Contests that differ in their precision alone, those of baselines first."""

    contests: Sequence[Contest]
    each_fastest: Contest | None

    @property
    def shown(self) -> list[Contest]:
        """Contests of baselines, then the one of each framework's fastest precision, which has
        all figures of the others that matter; all contests without it."""
        if self.each_fastest is None:
            return [*self.contests]
        return [*filter(_is_baseline, self.contests), self.each_fastest]


def _is_baseline(contest: Contest) -> bool:
    return precisions.baseline(contest.setting.case.precision) is None


def _in_order_of_suites(found: Sequence[Contest], inputs: Inputs) -> list[Contest]:
    """Return contests in the order in which suites first name a case of theirs."""
    place: dict[str, int] = {}
    for at, case in enumerate(inputs.expected):
        place.setdefault(case.folder, at)
    last = len(place)

    def first(contest: Contest) -> int:
        runs = (run for result in contest.results for run in result.runs)
        return min(place.get(os.path.dirname(run.origin), last) for run in runs)

    return sorted(found, key=first)


def _families(found: Sequence[Contest]) -> list[_Family]:
    """Return the contests by setting without precision, in their order."""
    families: dict[object, list[Contest]] = defaultdict(list)
    for contest in found:
        case = contest.setting.case._replace(precision="")
        families[contest.setting._replace(case=case), contest.machine].append(contest)
    made = []
    for some in families.values():
        ordered = sorted(some, key=lambda contest: not _is_baseline(contest))
        apart = {_is_baseline(contest) for contest in some if contest.entrants}
        made.append(_Family(ordered, _merged(ordered) if len(apart) == 2 else None))
    return made


def _merged(some: Sequence[Contest]) -> Contest:
    """Return the contest in which each framework has its fastest case in any precision."""
    results = [result for contest in some for result in contest.results]
    entrants: dict[str, CaseResult] = {}
    for result in contests.ranked(results):
        entrants.setdefault(result.case.framework, result)
    figures: Counter[str] = Counter()
    for contest in some:
        for entrant, count in zip(contest.entrants, contest.figures, strict=True):
            figures[entrant.case.framework] += count
    without = {result.case.framework: result for contest in some for result in contest.without}
    missing = sorted({name for contest in some for name in contest.missing})
    out = {name: why for contest in some for name, why in contest.left_out.items()}
    known = {*entrants, *without, *missing}
    errors = [contest.error for contest in some]
    return replace(
        some[-1],
        results=results,
        entrants=[*entrants.values()],
        figures=[figures[name] for name in entrants],
        without=[result for name, result in without.items() if name not in entrants],
        missing=missing,
        error=None if None in errors else errors[-1],
        left_out={name: why for name, why in out.items() if name not in known},
    )


def _setting(
    contest: Contest,
    row: Row,
    name: tuple[str, str],
    is_slow: Mapping[int, bool],
    is_each_fastest: bool,
    hidden: Collection[tuple[str, str]],
) -> SettingAnswer:
    """Return the answer of one contest. ``hidden``: frameworks and precisions that another line
    says cannot take part."""
    title, details = name
    if is_each_fastest:
        precision = precision_words(contest.setting.case.precision)
        details = details.replace(precision, EACH_FASTEST, 1)
    first = contest.entrants[0] if contest.entrants else None
    top = first.throughput if first else None
    shown, others = _apart(contest, is_each_fastest)
    entrants = [
        _entrant(result, top or 1.0, is_each_fastest, is_slow.get(id(result), False))
        for result in shown
    ]
    aside = [f"as in {precision_words(others[0].case.precision)}: "
             f"{titles(contest_name(result) for result in others)}"] if others else []  # fmt: skip
    verdict, between, state = _verdict(contest, row)
    leader = title_of(first) if first and row["lead"] is not None else ""
    return SettingAnswer(
        title,
        details,
        contest.setting.unit,
        contest.results[0].better,
        verdict,
        between,
        state,
        leader,
        row["lead"],
        entrants,
        [*aside, *_aside(contest, hidden)],
        row,
        is_each_fastest,
    )


def _apart(
    contest: Contest, is_each_fastest: bool
) -> tuple[Sequence[CaseResult], Sequence[CaseResult]]:
    """Return the entrants to show, and those that are the same as in the baseline's setting.

    Whoever is faster than an entrant in another precision is shown, too."""
    entrants = contest.entrants
    if not is_each_fastest:
        return entrants, ()
    own = [precisions.baseline(result.case.precision) is not None for result in entrants]
    last = len(own) - own[::-1].index(True) if any(own) else len(own)
    last = max(last, 2)
    return entrants[:last], entrants[last:]


def _entrant(result: CaseResult, top: float, with_precision: bool, is_slow: bool) -> Entrant:
    value = result.throughput or 0.0
    part = value / top if result.better == "higher" else top / value if value else 0.0
    precision = precision_words(result.case.precision).removesuffix(" precision")
    notes = [precision] if with_precision else []
    notes += result.variation
    repeats = len(result.values)
    notes += [] if result.interval else [formatting.counted(repeats, "repeat")]
    notes += ["slow library"] if is_slow else []
    notes += result.official_code
    return Entrant(
        result.case.framework,
        title_of(result),
        precision,
        formatting.rounded(value, "#.3g"),
        result.unit,
        value,
        round(100 * part),
        result.interval,
        repeats,
        notes,
        {name: getattr(result.case, name) for name in _AXES},
    )


def _verdict(contest: Contest, row: Row) -> tuple[str, str, str]:
    """Return who leads, the interval of the lead with what it depends on, and the state."""
    if contest.missing:
        return "Open", f"not measured yet: {titles(contest.missing)}", OPEN
    if not contest.entrants:
        return "No figure", "", ""
    first = title_of(contest.entrants[0])
    if row["lead"] is None:
        # A roof of the machine has no framework, and none competes.
        return (f"Only {first} has a figure", "", "") if row["framework"] else ("", "", "")
    second = title_of(contest.entrants[1])
    interval = (row["lead_ci_low"], row["lead_ci_high"])
    between = [interval_of_lead(*interval)] if None not in interval else []
    if row["verdict"] == NO_DIFFERENCE:
        between.append("more repeats would not settle it")
        return f"No difference between {first} and {second}", "; ".join(between), row["certainty"]
    if row["certainty"] == OPEN:
        between.append(_why_open(contest, row))
    elif row["certainty"] == ORDER_SURE:
        between.append(_why_unsure(row))
    if contest.other_batch:
        between.append(titled(contest.other_batch))
    verdict = f"{first}, {ahead(row['lead'])} {second}"
    return verdict, "; ".join(filter(None, between)), row["certainty"]


def _why_open(contest: Contest, row: Row) -> str:
    order = open_order(contest)
    if order:
        rivals = [title_of(result) for result in order.contenders[1:]]
        return f"not settled against {listed(rivals)}"
    if too_few(row):
        return f"too few repeats: needs {row['repeats_to_show']}"
    return "not significant"


def _why_unsure(row: Row) -> str:
    if not (row["lead_ci_low"] or 0) > 1:
        return "size of the lead not yet"
    flags = {*row["flags"].split()}
    return "other programs disturbed it" if disturbance.FLAG in flags else "its figures vary"


def _aside(contest: Contest, hidden: Collection[tuple[str, str]]) -> list[str]:
    """Return who has no figure, a line for each reason."""
    reasons: dict[str, list[str]] = defaultdict(list)
    for name, why in contest.left_out.items():
        if why.startswith(TOO_SLOW):
            budget = why.removeprefix(TOO_SLOW).partition(";")[0]
            reasons[f"too slow for {budget}"].append(name)
        elif (name, contest.setting.case.precision) not in hidden:
            reasons["cannot"].append(name)
    for result in contest.without:
        name, case = contest_name(result), result.case
        if result.excluded:
            reasons["excluded"].append(name)
        elif result.standing != "unsupported":
            words = statuses.FAILURES.get(result.standing)
            reasons[words.words if words else result.standing].append(name)
        elif (name, case.precision) not in hidden:
            reasons["cannot"].append(name)
    return [f"{reason}: {titles(names)}" for reason, names in reasons.items()]


def _variants(rows: Sequence[Row]) -> Iterator[SettingAnswer]:
    """Yield an answer for each case with variants: their ratios to the first one."""
    parameters_of = formatting.own_parameters(rows)

    def name_of(row: Row) -> str:
        compiler = "" if row["compiler"] == "none" else row["compiler"]
        parts = (titled(row["framework"]), compiler, *setting_name(row, parameters_of(row)))
        return ", ".join(filter(None, parts))

    apart = (*OF_VARIANT, "framework_version", "environment", "machine")
    name = formatting.distinct_names(rows, name_of, apart, (contests.ON_MACHINE,))
    cases: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        cases[name(row)].append(row)
    for text, some in cases.items():
        yield _variants_of(text, some)


def _variants_of(name: str, rows: Sequence[Row]) -> SettingAnswer:
    base = rows[0]["base_suite_variant"]
    measured = [row for row in rows if row["speedup"] is not None]
    best = max(measured, key=lambda row: float(row["speedup"]), default=None)
    top = max([1.0, *(row["speedup"] for row in measured)])
    entrants = [_variant(row, top) for row in measured]
    entrants.sort(key=lambda entrant: -entrant.value)
    verdict, between, state = "No ratio", "", ""
    if best:
        ratio, low, high = (best[f"speedup{end}"] for end in ("", "_ci_low", "_ci_high"))
        size = lead_size(ratio) if ratio >= 1 else f"{100 * (1 - ratio):.0f} %"
        word = "faster" if ratio >= 1 else "slower"
        verdict = (
            f"{best['suite_variant']}, {size} {'as fast as' if ratio >= 2 else word + ' than'}"
        )
        verdict += f" {base}"
        between = f"ratio between {low:.2f} and {high:.2f}" if low is not None else best["reason"]
        state = SURE if best["verdict"] in (FASTER, SLOWER) else OPEN
    aside = [f"{row['suite_variant']}: {row['reason']}" for row in rows if row not in measured]
    first, _, rest = name.partition(", ")
    details = f"{rest}, against {base}"
    leader = best["suite_variant"] if best and best["speedup"] > 1 else base
    return SettingAnswer(
        first, details, f"against {base}", "higher", verdict, between, state, leader,
        best["speedup"] if best else None, entrants, aside, rows[0], is_variants=True,
    )  # fmt: skip


def _variant(row: Row, top: float) -> Entrant:
    ratio, low, high = (row[f"speedup{end}"] for end in ("", "_ci_low", "_ci_high"))
    interval = None if low is None else (low, high)
    notes = [] if interval else [formatting.counted(row["repeats"], "repeat")]
    return Entrant(
        row["framework"], row["suite_variant"], precision_words(row["precision"]),
        f"{ratio:.2f}\N{MULTIPLICATION SIGN}", "", ratio, round(100 * ratio / top), interval,
        row["repeats"], notes, {name: row[name] for name in _AXES},
    )  # fmt: skip


def _what(runs: Sequence[Run], provenance: Origin) -> list[str]:
    models = [model_title(name) for name in dict.fromkeys(run.case.model for run in runs) if name]
    days = [_day(text) for text in dict.fromkeys([provenance.first, provenance.last]) if text]
    took = f" in {provenance.took}" if provenance.took else ""
    parts = [
        ", ".join(provenance.suites),
        listed(models) if len(models) <= _MOST_MODELS else f"{len(models)} models",
        "; ".join(provenance.machines) or "machine not recorded",
        " to ".join(days),
        formatting.counted(len(runs), "run") + took,
    ]
    return [*filter(None, parts)]


def _day(text: str) -> str:
    """Return an ISO date in words."""
    day = date.fromisoformat(text)
    return f"{day.day} {day:%b %Y}"


def _cannot(
    found: Sequence[Contest],
) -> tuple[list[str], list[tuple[str, str]], set[tuple[str, str]]]:
    """Return who cannot take part in a precision at all: sentences, reasons by framework, and pairs
    of framework and precision."""
    lacking: dict[str, dict[str, str]] = defaultdict(dict)
    measured: dict[str, set[str]] = defaultdict(set)
    for contest in found:
        precision = contest.setting.case.precision
        measured[precision] |= {result.case.framework for result in contest.entrants}
        measured[precision] |= {*contest.missing}
        for result in contest.without:
            if result.standing == "unsupported":
                lacking[precision].setdefault(contest_name(result), result.reason)
        for name, why in contest.left_out.items():
            if not why.startswith(TOO_SLOW):
                lacking[precision].setdefault(name, why)
    lines, why_not, hidden = [], [], set()
    for precision, reasons in lacking.items():
        names = [name for name in reasons if name not in measured[precision]]
        if not names:
            continue
        verb = "has" if len(names) == 1 else "have"
        what = precision_words(precision) if precision else "this benchmark"
        lines.append(f"{listed([*map(titled, sorted(names))])} {verb} no {what} here.")
        why_not += [(titled(name), titled(reasons[name])) for name in names]
        hidden |= {(name, precision) for name in names}
    return lines, why_not, hidden


def _excluded(results: Iterable[CaseResult]) -> list[str]:
    """Return a sentence for each figure that takes part in no comparison."""
    lines = []
    for result in results:
        if result.excluded:
            title, _ = setting_name({**result.key.row, "metric": result.key.metric})
            name = "+".join([title_of(result), *result.variation])
            parts = filter(None, [name, title, precision_words(result.case.precision)])
            lines.append(f"Excluded: {', '.join(parts)}: {result.excluded}")
    return [*dict.fromkeys(lines)]


def _careful(results: Iterable[CaseResult]) -> list[str]:
    """Return what speaks against trusting the figures."""
    figures = [result for result in results if result.throughput is not None]
    counts = Counter(chain.from_iterable(result.flags for result in figures))
    lines = []
    if count := counts.pop(disturbance.FLAG, 0):
        lines.append(f"Other programs used this machine during {count} of {len(figures)} figures.")
    counts.pop(verified.UNVERIFIED, 0)
    if unverified := sum(result.verifiable for result in figures):
        lines.append(f"{unverified} of {len(figures)} figures are unverified: {verified.HOW}")
    for flag in (*verified.EXCLUDING.values(), "own"):
        counts.pop(flag, None)
    if counts:
        flags = ", ".join(f"{flag} {count}" for flag, count in counts.most_common())
        lines.append(f"Flags of {len(figures)} figures: {flags}.")
    return lines


def _next(found: Sequence[Contest], command: str) -> NextStep | None:
    """Return what the next call settles; None if nothing is open."""
    command = command or _COMMAND
    missing = [*dict.fromkeys(name for contest in found for name in contest.missing)]
    if missing:
        return NextStep(f"to measure {titles(missing)}", None, command)
    orders = [order for contest in found if (order := open_order(contest))]
    if orders:
        seconds = sum(order.seconds for order in orders)
        rivals = [title_of(result) for order in orders for result in order.contenders]
        names = listed([*dict.fromkeys(rivals)])
        text = f"to settle the order of {names}, about {duration(60 * round(seconds / 60 + 0.5))}"
        return NextStep(text, seconds, command)
    return None
