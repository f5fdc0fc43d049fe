"""The answer as data, for the first screen of the page and the last lines of the terminal.

It says who is fastest at each setting, by how much, how sure that is, and who is excluded and why.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import pandas as pd
from core import precisions
from core.text import duration

from ..cases.names import listed
from ..config import statuses
from ..records import verified
from ..records.flags import DISTURBED
from ..records.run import Run
from ..records.sidecars import TOO_SLOW
from ..statistics.verdicts import NO_DIFFERENCE
from . import contests, formatting
from .columns import Row
from .contests import Contest, exclusion, precision_words, setting_labels, title_of, titled, titles
from .declared.fastest import OPEN, SURE, judge, open_order, too_few
from .declared.speedups import VARIANTS
from .declared.summary import own_model_sentences
from .measured import runs_in
from .results import UNCOMPILED, CaseResult, fraction_of_best
from .setting_answers import (
    EACH_FASTEST,
    Entrant,
    FirstScreen,
    NextStep,
    Origin,
    SettingAnswer,
    ahead,
    answer_sentence,
    coverage,
    first_line,
    interval_of_lead,
)
from .table import Inputs, Table, rows_of

#: Most variants whose ratio is stated in a sentence.
_MOST_VARIANTS = 8
#: Command of the next call if no earlier call is known.
_COMMAND = "snakemake --cores all"
#: Pairs of a framework and a precision that it lacks.
Lacking = Collection[tuple[str, str]]


def first_screen(
    inputs: Inputs,
    tables: Mapping[Table, pd.DataFrame],
    runs: Sequence[Run],
    provenance: Origin,
    page: str = "",
) -> FirstScreen:
    """Return the content of the first screen. ``tables``: those made of ``inputs``; ``provenance``:
    origin of ``runs``, which the first line counts; ``page``: path of the report, "" for none."""
    found = _in_order_of_suites(contests.find_contests(inputs), inputs)
    cannot, why_not, lacking = _cannot(found)
    shown = _shown(found)
    rows = judge([contest for contest, _ in shown])
    label = setting_labels(rows)
    settings = [
        _setting(contest, row, label(row), is_each_fastest, lacking)
        for (contest, is_each_fastest), row in zip(shown, rows, strict=True)
    ]
    settings.sort(key=lambda setting: not setting.state)
    findings = own_model_sentences(tables)
    findings += _about_variants(rows_of(tables, VARIANTS))
    sentence = answer_sentence(settings, provenance.machines)
    if findings and not any(setting.leader for setting in settings):
        sentence = f"{findings.pop(0)}."
    results = [*inputs.cases.values(), *inputs.others.values()]
    return FirstScreen(
        first_line(runs, provenance),
        sentence,
        settings,
        cannot,
        why_not,
        [*dict.fromkeys(f"Excluded: {exclusion(result)}" for result in results if result.excluded)],
        [*(f"{titled(text)}." for text in coverage(inputs)), *_careful(results)],
        findings,
        _next(found, provenance.command or _COMMAND),
        page,
    )


# ---- which settings -----------------------------------------------------------------------------


def _in_order_of_suites(found: Sequence[Contest], inputs: Inputs) -> list[Contest]:
    """Return contests in the order in which suites first name one of their cases."""
    place: dict[str, int] = {}
    for at, case in enumerate(inputs.expected):
        place.setdefault(case.folder, at)

    def first(contest: Contest) -> int:
        runs = (run for result in contest.results for run in result.runs)
        return min(place.get(os.path.dirname(run.origin), len(place)) for run in runs)

    return sorted(found, key=first)


def _shown(found: Sequence[Contest]) -> list[tuple[Contest, bool]]:
    """Return the contests to show, each with whether it takes every framework's fastest precision.

    Contests that differ in precision alone stand together, baselines first. If baselines and others
    have figures, one contest of the fastest precision of each framework replaces the others."""
    families: dict[object, list[Contest]] = defaultdict(list)
    for contest in found:
        case = contest.setting.case._replace(precision="")
        families[contest.setting._replace(case=case), contest.machine].append(contest)
    shown: list[tuple[Contest, bool]] = []
    for family in families.values():
        others = [one for one in family if precisions.baseline(one.setting.case.precision)]
        baselines = [contest for contest in family if contest not in others]
        shown += [(contest, False) for contest in baselines]
        if all(any(contest.entrants for contest in some) for some in (baselines, others)):
            shown.append((_merged([*others, *baselines], others[-1]), True))
        else:
            shown += [(contest, False) for contest in others]
    return shown


def _merged(some: Sequence[Contest], last: Contest) -> Contest:
    """Merge several contests into one with all their cases, at the setting of ``last``."""
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
    contest: Contest,
    row: Row,
    name: tuple[str, str],
    is_each_fastest: bool,
    lacking: Lacking,
) -> SettingAnswer:
    """Return the answer of one contest. ``lacking``: what other lines say that frameworks lack."""
    title, details = name
    shown, others = contest.entrants, []
    if is_each_fastest:
        precision = precision_words(contest.setting.case.precision)
        details = details.replace(precision, EACH_FASTEST, 1)
        # Frameworks whose baseline is fastest have the same figure as in the row above.
        own = [at for at, result in enumerate(shown) if precisions.baseline(result.case.precision)]
        last = max(own[-1] + 1 if own else len(shown), 2)
        shown, others = shown[:last], shown[last:]
    aside = []
    if others:
        names = titles(runs_in(result.case) for result in others)
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
        [_entrant(result, top, is_each_fastest) for result in shown],
        [*aside, *_aside(contest, lacking)],
        row,
        is_each_fastest,
    )


def _entrant(result: CaseResult, top: float, with_precision: bool) -> Entrant:
    value = result.throughput or 0.0
    precision = precision_words(result.case.precision).removesuffix(" precision")
    notes = [*[precision] * with_precision, *result.variation]
    notes += [] if result.interval else [formatting.counted(len(result.values), "repeat")]
    return Entrant(
        title_of(result),
        formatting.rounded(value, "#.3g"),
        value,
        round(100 * fraction_of_best(value, top, result.better)),
        result.interval,
        [*notes, *result.official_code],
        {name: getattr(result.case, name) for name in ("framework", "compiler", "precision")},
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
        return "size of the lead not settled"
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
        name, standing = runs_in(result.case), result.standing
        if result.excluded:
            reasons["excluded"].append(name)
        elif standing != "unsupported":
            failure = statuses.FAILURES.get(standing)
            reasons[failure.words if failure else standing].append(name)
        elif (name, result.case.precision) not in lacking:
            reasons["cannot"].append(name)
    return [f"{reason}: {titles(names)}" for reason, names in reasons.items()]


# ---- variants of a suite ------------------------------------------------------------------------


def _about_variants(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the ratio of each variant of a suite to the first one, case by case."""
    label = setting_labels(rows)
    for row in sorted(rows, key=lambda row: row["speedup"] is None)[:_MOST_VARIANTS]:
        low, high, base = row["speedup_ci_low"], row["speedup_ci_high"], row["base_suite_variant"]
        ratio = f"no ratio to {base}: {row['reason']}"
        if row["speedup"] is not None:
            between = f" (between {low:.2f} and {high:.2f})" if low is not None else ""
            ratio = f"{row['speedup']:.2f} times {base}{between}, {row['verdict']}"
        compiler = "" if row["compiler"] in ("", UNCOMPILED) else row["compiler"]
        case = ", ".join(filter(None, [titled(row["framework"]), compiler, *label(row)]))
        yield f"Variant {row['suite_variant']}, {case}: {ratio}"
    if len(rows) > _MOST_VARIANTS:
        yield f"{len(rows) - _MOST_VARIANTS} more ratios are in the table {VARIANTS.name}"


# ---- lines about all settings -------------------------------------------------------------------


def _cannot(found: Sequence[Contest]) -> tuple[list[str], list[tuple[str, str]], Lacking]:
    """Return which frameworks cannot take part in a precision: sentences, reasons by framework, and
    pairs of framework and precision."""
    reasons: dict[str, dict[str, str]] = defaultdict(dict)
    measured: set[tuple[str, str]] = set()
    for contest in found:
        precision = contest.setting.case.precision
        names = [*contest.missing, *(result.case.framework for result in contest.entrants)]
        measured |= {(name, precision) for name in names}
        why = {runs_in(result.case): result.reason for result in contest.without
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


def _careful(results: Iterable[CaseResult]) -> list[str]:
    """Return reasons not to trust the figures."""
    figures = [result for result in results if result.throughput is not None]
    lines = []
    if disturbed := sum(DISTURBED in result.flags for result in figures):
        lines.append(
            f"Other programs used this machine during {disturbed} of {len(figures)} figures."
        )
    if unverified := sum(result.verifiable for result in figures):
        lines.append(
            f"{unverified} of {len(figures)} figures are unverified: {verified.VERIFY_COMMAND}"
        )
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
