"""The answer as data, for the first screen of the page and the last lines of the terminal.

It says who is fastest at each setting, by how much, how sure that is, and who is excluded and why.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
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
from ..records.fields.flags import DISTURBED
from ..records.run import Run
from ..statistics.verdicts import FASTER, NO_DIFFERENCE, SLOWER
from . import contests, formatting, view
from .columns import Row
from .contests import Contest
from .declared import efficiency, own_model
from .declared.fastest import OPEN, SURE, judge, open_order, too_few
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
#: Pairs of framework and precision.
Lacking = Collection[tuple[str, str]]


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
    found = _in_order_of_suites(inputs.cached(contests.find_contests), inputs)
    cannot, why_not, lacking = _cannot(found)
    shown = _shown(found)
    rows = judge([contest for contest, _ in shown])
    label = setting_labels(rows)
    settings = [
        _setting(inputs, contest, row, label(row), is_each_fastest, lacking)
        for (contest, is_each_fastest), row in zip(shown, rows, strict=True)
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
        [*(f"{titled(text)}." for text in coverage(inputs)), *_careful(results)],
        [titled(text) for text in efficiency.slow_libraries(tables)],
        about_own,
        _next(found, provenance.command or _COMMAND),
        page,
    )


# ---- which settings -----------------------------------------------------------------------------


def _in_order_of_suites(found: Sequence[Contest], inputs: Inputs) -> list[Contest]:
    """Return contests in the order in which suites first name a case of theirs."""
    place: dict[str, int] = {}
    for at, case in enumerate(inputs.expected):
        place.setdefault(case.folder, at)

    def first(contest: Contest) -> int:
        runs = (run for result in contest.results for run in result.runs)
        return min(place.get(os.path.dirname(run.origin), len(place)) for run in runs)

    return sorted(found, key=first)


def _shown(found: Sequence[Contest]) -> list[tuple[Contest, bool]]:
    """Return the contests to show, and whether each is that of everyone's fastest precision.

    Contests that differ in precision alone stand together, baselines first. If baselines and others
    have figures, one contest of the fastest precision of each framework replaces the others."""
    families: dict[object, list[Contest]] = defaultdict(list)
    for contest in found:
        case = contest.setting.case._replace(precision="")
        families[contest.setting._replace(case=case), contest.machine].append(contest)
    shown: list[tuple[Contest, bool]] = []
    for family in families.values():
        others = [contest for contest in family if _has_baseline(contest.setting.case.precision)]
        baselines = [contest for contest in family if contest not in others]
        shown += [(contest, False) for contest in baselines]
        if all(any(contest.entrants for contest in some) for some in (baselines, others)):
            shown.append((_merged([*others, *baselines], others[-1]), True))
        else:
            shown += [(contest, False) for contest in others]
    return shown


def _has_baseline(precision: str) -> bool:
    return precisions.baseline(precision) is not None


def _merged(some: Sequence[Contest], last: Contest) -> Contest:
    """Return the contest of all cases of several, with the setting of ``last``."""
    results = [result for contest in some for result in contest.results]
    missing = sorted({name for contest in some for name in contest.missing})
    known = {*missing, *(result.case.framework for result in results)}
    left_out = {name: why for contest in some for name, why in contest.left_out.items()}
    return replace(
        last,
        results=results,
        missing=missing,
        error=None if any(contest.error is None for contest in some) else last.error,
        left_out={name: why for name, why in left_out.items() if name not in known},
    )


# ---- one setting --------------------------------------------------------------------------------


def _setting(
    inputs: Inputs,
    contest: Contest,
    row: Row,
    name: tuple[str, str],
    is_each_fastest: bool,
    lacking: Lacking,
) -> SettingAnswer:
    """Return the answer of one contest. ``lacking``: who cannot take part, as another line says."""
    title, details = name
    shown, others = contest.entrants, []
    if is_each_fastest:
        precision = precision_words(contest.setting.case.precision)
        details = details.replace(precision, EACH_FASTEST, 1)
        # Frameworks whose baseline is fastest have the same figure as in the row above.
        own = [at for at, result in enumerate(shown) if _has_baseline(result.case.precision)]
        last = max(own[-1] + 1 if own else len(shown), 2)
        shown, others = shown[:last], shown[last:]
    aside = []
    if others:
        names = titles(contest_name(result) for result in others)
        aside = [f"as in {precision_words(others[0].case.precision)}: {names}"]
    top = (contest.entrants[0].throughput if contest.entrants else None) or 1.0
    verdict, between, state = _verdict(contest, row)
    return SettingAnswer(
        title,
        details,
        contest.setting.unit,
        contest.results[0].better,
        verdict,
        between,
        state,
        title_of(contest.entrants[0]) if row["lead"] is not None else "",
        row["lead"],
        [_entrant(inputs, result, top, is_each_fastest) for result in shown],
        [*aside, *_aside(contest, lacking)],
        row,
        is_each_fastest,
    )


def _entrant(inputs: Inputs, result: CaseResult, top: float, with_precision: bool) -> Entrant:
    value = result.throughput or 0.0
    part = value / top if result.better == "higher" else top / value if value else 0.0
    precision = precision_words(result.case.precision).removesuffix(" precision")
    notes = [*[precision] * with_precision, *result.variation]
    notes += [] if result.interval else [formatting.counted(len(result.values), "repeat")]
    notes += ["slow library"] * efficiency.has_slow_library(inputs, result)
    return Entrant(
        result.case.framework,
        title_of(result),
        precision,
        formatting.rounded(value, "#.3g"),
        result.unit,
        value,
        round(100 * part),
        result.interval,
        [*notes, *result.official_code],
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
        # A roof of the machine has no framework and no contest.
        return (f"Only {first} has a figure", "", "") if row["framework"] else ("", "", "")
    second = title_of(contest.entrants[1])
    interval = (row["lead_ci_low"], row["lead_ci_high"])
    between = [interval_of_lead(*interval)] if None not in interval else []
    if row["verdict"] == NO_DIFFERENCE:
        between.append("more repeats would not settle it")
        return f"No difference between {first} and {second}", "; ".join(between), row["certainty"]
    between += [_why_unsure(contest, row), titled(contest.other_batch)]
    verdict = f"{first}, {ahead(row['lead'])} {second}"
    return verdict, "; ".join(filter(None, between)), row["certainty"]


def _why_unsure(contest: Contest, row: Row) -> str:
    """Return what keeps a lead from being sure; "" for one that is."""
    if row["certainty"] == OPEN:
        if order := open_order(contest):
            rivals = [title_of(result) for result in order.contenders[1:]]
            return f"not settled against {listed(rivals)}"
        few = f"too few repeats: needs {row['repeats_to_show']}"
        return few if too_few(row) else "not significant"
    if row["certainty"] == SURE:
        return ""
    if not (row["lead_ci_low"] or 0) > 1:
        return "size of the lead not yet"
    is_disturbed = DISTURBED in row["flags"].split()
    return "other programs disturbed it" if is_disturbed else "its figures vary"


def _aside(contest: Contest, lacking: Lacking) -> list[str]:
    """Return which frameworks have no figure, a line for each reason."""
    reasons: dict[str, list[str]] = defaultdict(list)
    for name, why in contest.left_out.items():
        if why.startswith(TOO_SLOW):
            budget = why.removeprefix(TOO_SLOW).partition(";")[0]
            reasons[f"too slow for {budget}"].append(name)
        elif (name, contest.setting.case.precision) not in lacking:
            reasons["cannot"].append(name)
    for result in contest.without:
        name, standing = contest_name(result), result.standing
        if result.excluded:
            reasons["excluded"].append(name)
        elif standing != "unsupported":
            failure = statuses.FAILURES.get(standing)
            reasons[failure.words if failure else standing].append(name)
        elif (name, result.case.precision) not in lacking:
            reasons["cannot"].append(name)
    return [f"{reason}: {titles(names)}" for reason, names in reasons.items()]


# ---- variants of a suite ------------------------------------------------------------------------


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
    measured.sort(key=lambda row: -float(row["speedup"]))
    top = max([1.0, *(row["speedup"] for row in measured)])
    title, _, rest = name.partition(", ")
    verdict, between, state, leader, lead = "No ratio", "", "", base, None
    if measured:
        best = measured[0]
        lead, low, high = _ratio(best)
        word = "faster than" if lead >= 1 else "slower than"
        size = f"{lead_size(lead) if lead >= 1 else f'{100 * (1 - lead):.0f} %'}"
        size += " as fast as" if lead >= 2 else f" {word}"
        verdict = f"{best['suite_variant']}, {size} {base}"
        between = f"ratio between {low:.2f} and {high:.2f}" if low is not None else best["reason"]
        state = SURE if best["verdict"] in (FASTER, SLOWER) else OPEN
        leader = best["suite_variant"] if lead > 1 else base
    return SettingAnswer(
        title, f"{rest}, against {base}", f"against {base}", "higher", verdict, between, state,
        leader, lead, [_variant(row, top) for row in measured],
        [f"{row['suite_variant']}: {row['reason']}" for row in rows if row not in measured],
        rows[0], is_variants=True,
    )  # fmt: skip


def _variant(row: Row, top: float) -> Entrant:
    ratio, low, high = _ratio(row)
    interval = None if low is None or high is None else (low, high)
    notes = [] if interval else [formatting.counted(row["repeats"], "repeat")]
    return Entrant(
        row["framework"], row["suite_variant"], precision_words(row["precision"]),
        f"{ratio:.2f}\N{MULTIPLICATION SIGN}", "", ratio, round(100 * ratio / top), interval,
        notes, {name: row[name] for name in _AXES},
    )  # fmt: skip


def _ratio(row: Row) -> tuple[float, float | None, float | None]:
    return row["speedup"], row["speedup_ci_low"], row["speedup_ci_high"]


# ---- lines about all settings -------------------------------------------------------------------


def _what(runs: Sequence[Run], provenance: Origin) -> list[str]:
    models = [model_title(name) for name in dict.fromkeys(run.case.model for run in runs) if name]
    ends = dict.fromkeys([provenance.first, provenance.last])
    days = [date.fromisoformat(text) for text in ends if text]
    took = f" in {provenance.took}" if provenance.took else ""
    parts = [
        ", ".join(provenance.suites),
        listed(models) if len(models) <= _MOST_MODELS else f"{len(models)} models",
        "; ".join(provenance.machines) or "machine not recorded",
        " to ".join(f"{day.day} {day:%b %Y}" for day in days),
        formatting.counted(len(runs), "run") + took,
    ]
    return [*filter(None, parts)]


def _cannot(found: Sequence[Contest]) -> tuple[list[str], list[tuple[str, str]], Lacking]:
    """Return which frameworks cannot take part in a precision: sentences, reasons by framework, and
    pairs of framework and precision."""
    reasons: dict[str, dict[str, str]] = defaultdict(dict)
    measured: set[tuple[str, str]] = set()
    for contest in found:
        precision = contest.setting.case.precision
        names = [*contest.missing, *(result.case.framework for result in contest.entrants)]
        measured |= {(name, precision) for name in names}
        why = {contest_name(result): result.reason for result in contest.without
               if result.standing == "unsupported"}  # fmt: skip
        why |= {name: text for name, text in contest.left_out.items()
                if not text.startswith(TOO_SLOW)}  # fmt: skip
        reasons[precision] = {**why, **reasons[precision]}
    lines, why_not, lacking = [], [], set()
    for precision, known in reasons.items():
        names = [name for name in known if (name, precision) not in measured]
        if names:
            verb = "has" if len(names) == 1 else "have"
            what = precision_words(precision) if precision else "this benchmark"
            lines.append(f"{listed([*map(titled, sorted(names))])} {verb} no {what} here.")
            why_not += [(titled(name), titled(known[name])) for name in names]
            lacking |= {(name, precision) for name in names}
    return lines, why_not, lacking


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
    if count := counts.pop(DISTURBED, 0):
        lines.append(f"Other programs used this machine during {count} of {len(figures)} figures.")
    counts.pop(verified.UNVERIFIED, 0)
    if unverified := sum(result.verifiable for result in figures):
        lines.append(
            f"{unverified} of {len(figures)} figures are unverified: {verified.VERIFY_COMMAND}"
        )
    for flag in (*verified.EXCLUDING.values(), "own"):
        counts.pop(flag, None)
    if counts:
        flags = ", ".join(f"{flag} {count}" for flag, count in counts.most_common())
        lines.append(f"Flags of {len(figures)} figures: {flags}.")
    return lines


def _next(found: Sequence[Contest], command: str) -> NextStep | None:
    """Return what the next call settles; None if nothing is open."""
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
