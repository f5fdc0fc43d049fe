"""The answer as data, for the first screen of the page and the last lines of the terminal.

It says who is fastest at each setting, by how much, how sure that is, and who is excluded and why.
"""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cache
from itertools import chain

import pandas as pd
from core import precisions
from core.text import duration

from .. import PROJECT
from ..cases.conditions import OF_VARIANT, THROUGHPUT
from ..cases.names import topology
from ..config import catalog, statuses
from ..config.catalog import model_title
from ..records import verified
from ..records.fields import disturbance
from ..records.run import Run
from ..records.sidecars.expected import TOO_SLOW
from ..statistics.verdicts import FASTER, NO_DIFFERENCE, SLOWER
from . import contests, formatting, view
from .columns import Row
from .contests import Contest
from .declared import efficiency, own_model
from .declared.fastest import OPEN, ORDER_SURE, SURE, judge, open_order, too_few
from .declared.variants import VARIANTS
from .measured import NO_FRAMEWORK
from .origin import Origin
from .results import CaseResult
from .table import Inputs, Table

#: Benchmarks that time steps of a model, in words.
MODES = {"train": "training", "inference": "inference"}
#: Settings that fit on the first screen; pages fold others.
MOST_SETTINGS = 4
EACH_FASTEST = "each in its fastest precision"
#: Clauses of the sentence, and names in one list.
_MOST_CLAUSES = 3
#: Command of the next call where no call is known.
_COMMAND = "snakemake --cores all"


@dataclass(frozen=True)
class Entrant:
    """A figure at a setting.

    ``label``: title of the framework, and its compiler; of a variant, its name. ``precision``: in
    words. ``value``: median, in the setting's unit, or ratio of a variant to the first one.
    ``percent``: of the best figure. ``interval``: 95 % interval of ``value``; None with too few
    repeats. ``notes``: whatever distinguishes the figure, such as its compiler."""

    framework: str
    label: str
    precision: str
    figure: str
    unit: str
    value: float
    percent: int
    interval: tuple[float, float] | None
    repeats: int
    notes: Sequence[str]
    results: Sequence[CaseResult]


@dataclass(frozen=True)
class SettingAnswer:
    """The answer at one setting.

    ``title``: model and benchmark; ``details``: precision, devices, batch. ``verdict``: who leads
    by how much; ``between``: interval of the lead and what it depends on. ``state``: SURE,
    ORDER_SURE, OPEN, or "" if there is nothing to compare. ``leader``: title of the fastest, ""
    without one; ``lead``: ratio to the runner-up. ``aside``: who has no figure here, and why, one
    line each. ``row``: the row of the table FASTEST or VARIANTS."""

    title: str
    details: str
    unit: str
    better: str
    verdict: str
    between: str
    state: str
    leader: str
    lead: float | None
    entrants: Sequence[Entrant]
    aside: Sequence[str]
    row: Row
    is_each_fastest: bool = False
    is_variants: bool = False

    @property
    def name(self) -> str:
        return f"{self.title}, {self.details}" if self.details else self.title


@dataclass(frozen=True)
class NextStep:
    """What the next call settles. ``seconds``: that it takes, None if unknown."""

    text: str
    seconds: float | None
    command: str


@dataclass(frozen=True)
class FirstScreen:
    """Content of the first screen.

    ``what``: suite, machine, day and number of runs. ``sentence``: the answer. ``cannot``: who
    cannot take part; ``why_not``: the reason of each. ``excluded``: figures that take part in no
    comparison. ``careful``: what speaks against trusting the figures. ``own_model``: sentences on a
    user's own model. ``page``: path of the report, "" if there is none."""

    what: Sequence[str]
    sentence: str
    settings: Sequence[SettingAnswer]
    cannot: Sequence[str]
    why_not: Sequence[tuple[str, str]]
    excluded: Sequence[str]
    careful: Sequence[str]
    own_model: Sequence[str]
    next: NextStep | None
    page: str

    @property
    def each_fastest(self) -> list[SettingAnswer]:
        return [setting for setting in self.settings if setting.is_each_fastest]


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
    rows = view.records(judge(every))
    label = _labels(rows)
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
        _sentence(settings, about_own, provenance.machines),
        settings,
        cannot,
        why_not,
        _excluded(results),
        _careful(results),
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
    several = len({result.case.precision for result in contest.entrants}) > 1
    entrants = [
        _entrant(result, top or 1.0, is_each_fastest or several, is_slow.get(id(result), False))
        for result in contest.entrants
    ]
    verdict, between, state = _verdict(contest, row)
    leader = _title(first) if first and row["lead"] is not None else ""
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
        _aside(contest, hidden),
        row,
        is_each_fastest,
    )


def _entrant(result: CaseResult, top: float, with_precision: bool, is_slow: bool) -> Entrant:
    value = result.throughput or 0.0
    part = value / top if result.better == "higher" else top / value if value else 0.0
    precision = precision_words(result.case.precision).removesuffix(" precision")
    notes = [precision] if with_precision else []
    notes += result.variation
    repeats = len(result.values)
    notes += [] if result.interval else [formatting.counted(repeats, "repeat")]
    notes += ["slow library"] if is_slow else []
    return Entrant(
        result.case.framework,
        _title(result),
        precision,
        formatting.rounded(value, "#.3g"),
        result.unit,
        value,
        round(100 * part),
        result.interval,
        repeats,
        notes,
        [result],
    )


def _verdict(contest: Contest, row: Row) -> tuple[str, str, str]:
    """Return who leads, the interval of the lead with what it depends on, and the state."""
    if contest.missing:
        return "Open", f"not measured yet: {_names(contest.missing)}", OPEN
    if not contest.entrants:
        return "No figure", "", ""
    first = _title(contest.entrants[0])
    if row["lead"] is None:
        # A roof of the machine has no framework, and none competes.
        return (f"Only {first} has a figure", "", "") if row["framework"] else ("", "", "")
    second = _title(contest.entrants[1])
    interval = (row["lead_ci_low"], row["lead_ci_high"])
    between = [_between(*interval)] if None not in interval else []
    if row["verdict"] == NO_DIFFERENCE:
        between.append("more repeats would not settle it")
        return f"No difference between {first} and {second}", "; ".join(between), row["certainty"]
    if row["certainty"] == OPEN:
        between.append(_why_open(contest, row))
    elif row["certainty"] == ORDER_SURE:
        between.append(_why_unsure(row))
    if contest.other_batch:
        between.append(titled(contest.other_batch))
    ahead = _ahead(row["lead"])
    verdict = f"{first}, {ahead} {second}"
    return verdict, "; ".join(filter(None, between)), row["certainty"]


def _why_open(contest: Contest, row: Row) -> str:
    order = open_order(contest)
    if order:
        rivals = [_title(result) for result in order.contenders[1:]]
        return f"not settled against {_listed(rivals)}"
    if too_few(row):
        return f"too few repeats: needs {row['repeats_to_show']}"
    return "not significant"


def _why_unsure(row: Row) -> str:
    if not (row["lead_ci_low"] or 0) > 1:
        return "size of the lead not yet"
    flags = {*row["flags"].split()}
    return "other programs disturbed it" if disturbance.FLAG in flags else "its figures vary"


def _ahead(lead: float) -> str:
    """Return a lead as text: ``6 % ahead of``, ``2.3 times as fast as``."""
    return f"{_size(lead)} as fast as" if lead >= 2 else f"{_size(lead)} ahead of"


def _size(lead: float) -> str:
    if lead >= 2:
        return f"{lead:.2g} times"
    return f"{100 * (lead - 1):.0f} %" if lead >= 1.01 else "less than 1 %"


def _between(low: float, high: float) -> str:
    """Return the interval of a lead as text."""
    if high >= 2:
        return f"between {low:.2f} and {high:.2f} times"
    if low < 1:
        return f"between {100 * (1 - low):.0f} % behind and {100 * (high - 1):.0f} % ahead"
    return f"between {100 * (low - 1):.0f} and {100 * (high - 1):.0f} %"


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
    if contest.entrants and contest.missing:
        reasons["not measured yet"] = [*contest.missing]
    return [f"{reason}: {_names(names)}" for reason, names in reasons.items()]


def _variants(rows: Sequence[Row]) -> Iterator[SettingAnswer]:
    """Yield an answer for each case with variants: their ratios to the first one."""
    parameters_of = formatting.own_parameters(rows)

    def name_of(row: Row) -> str:
        compiler = "" if row["compiler"] == "none" else row["compiler"]
        parts = (titled(row["framework"]), compiler, *_name(row, parameters_of(row)))
        return ", ".join(filter(None, parts))

    apart = (*OF_VARIANT, "framework_version", "environment", "machine")
    name = formatting.distinct_names(rows, name_of, apart, (contests.ON_MACHINE.name,))
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
        size = _size(ratio) if ratio >= 1 else f"{100 * (1 - ratio):.0f} %"
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
    result: CaseResult = row["result"]
    count = len(result.values)
    return Entrant(
        result.case.framework, row["suite_variant"], precision_words(result.case.precision),
        f"{ratio:.2f}\N{MULTIPLICATION SIGN}", "", ratio, round(100 * ratio / top),
        None if low is None else (low, high), count,
        [] if low is not None else [formatting.counted(count, "repeat")], [result],
    )  # fmt: skip


# ---- names --------------------------------------------------------------------------------------


@cache
def _titles() -> Mapping[str, str]:
    """Return the titles of this project's frameworks, by name."""
    declared = catalog.load_catalog(PROJECT).frameworks
    return {name: framework["title"] for name, framework in declared.items()}


def titled(text: str) -> str:
    """Return a text with the titles of frameworks in place of their names."""
    titles = _titles()
    return re.sub(r"\b\w+\b(?!\.\w)", lambda match: titles.get(match[0], match[0]), text)


def _title(result: CaseResult) -> str:
    return titled(contest_name(result))


def contest_name(result: CaseResult) -> str:
    """Return the framework of a case, or NO_FRAMEWORK."""
    return result.case.framework or NO_FRAMEWORK


def _listed(names: Sequence[str]) -> str:
    """Return names as a list in prose."""
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def _names(names: Iterable[str]) -> str:
    return ", ".join(map(titled, dict.fromkeys(names)))


def precision_words(precision: str) -> str:
    """Return a precision in words."""
    return "mixed precision" if precision == "amp" else precision


def _name(row: Row, parameters: str = "") -> tuple[str, str]:
    """Return the title of a setting and its details, without settings and environment."""
    metric = "" if row["metric"] == THROUGHPUT else row["metric"]
    batch = row["batch_per_device"]
    each = " per device" if (row["nodes"] or 1) * (row["devices_per_node"] or 1) > 1 else ""
    size = f"batch {batch}{each}" if batch else ""
    if row["mode"] in MODES:
        title, devices = f"{model_title(row['model'])} {MODES[row['mode']]}", _devices(row)
    else:
        title = " ".join(filter(None, [row["mode"].replace("_", " "), row["model"]]))
        title = title[:1].upper() + title[1:]
        devices = topology(row["nodes"], row["devices_per_node"])
    parts = [precision_words(row["precision"]), devices, size, parameters, metric]
    return title, ", ".join(filter(None, parts))


def _devices(row: Row) -> str:
    """Return the devices of a row in words: ``2 cores``, ``2 nodes x 8 GPUs``; "" if unknown."""
    nodes, count, cores = row["nodes"], row["devices_per_node"], row["cores_per_device"]
    if not nodes or not count:
        return ""
    words = formatting.counted(count, "GPU" if row["accelerator"] == "cuda" else "device")
    if row["accelerator"] == "cpu" and cores:
        several = f"{count} x " if count > 1 else ""
        words = several + formatting.counted(cores, "core")
    return f"{nodes} nodes x {words}" if nodes > 1 else words


def _labels(rows: Sequence[Row]) -> Callable[[Row], tuple[str, str]]:
    """Return a function that gives the title and details of a row, with what distinguishes it."""
    parameters_of = formatting.own_parameters(rows)

    def full(row: Row) -> str:
        return "\n".join(_name(row, parameters_of(row)))

    name = contests.named(rows, full)

    def label(row: Row) -> tuple[str, str]:
        title, _, details = name(row).partition("\n")
        return title, details

    return label


# ---- lines --------------------------------------------------------------------------------------


def _what(runs: Sequence[Run], provenance: Origin) -> list[str]:
    models = [model_title(name) for name in dict.fromkeys(run.case.model for run in runs) if name]
    days = [_day(text) for text in dict.fromkeys([provenance.first, provenance.last]) if text]
    took = f" in {provenance.took}" if provenance.took else ""
    parts = [
        ", ".join(provenance.suites),
        _listed(models) if len(models) <= _MOST_CLAUSES else f"{len(models)} models",
        "; ".join(provenance.machines) or "machine not recorded",
        " to ".join(days),
        formatting.counted(len(runs), "run") + took,
    ]
    return [*filter(None, parts)]


def _day(text: str) -> str:
    """Return an ISO date in words."""
    day = date.fromisoformat(text)
    return f"{day.day} {day:%b %Y}"


def _sentence(
    settings: Sequence[SettingAnswer], about_own: Sequence[str], machines: Sequence[str]
) -> str:
    """Return the sentence that answers: who is fastest where, by how much, how sure."""
    frameworks = [setting for setting in settings if not setting.is_variants]
    compared = [setting for setting in frameworks if setting.leader]
    if not compared:
        return _without_comparison(frameworks, settings, about_own)
    here = "On these machines " if len(machines) > 1 else "On this machine " * len(machines)
    leaders = _by_leader(compared)
    if len(leaders) == 1:
        (leader, some), *_ = leaders.items()
        several = f"{len(some)} of {len(frameworks)} settings"
        if len(some) == len(frameworks):
            several = f"all {len(some)} settings"
        where = some[0].name if len(frameworks) == 1 else several
        return f"{here}{_leads(leader, some)} in {where}, {_sizes(some)} ({_certainty(some)})."
    for words in (_precision_kind, _mode, _model, lambda setting: setting.title):
        places = {leader: [*dict.fromkeys(map(words, some))] for leader, some in leaders.items()}
        named = [place for some in places.values() for place in some]
        if len(named) == len({*named}) and all(named) and len(leaders) <= _MOST_CLAUSES:
            clauses = [
                f"{_leads(leader, some)} in {_listed(places[leader])}, {_sizes(some)} "
                f"({_certainty(some)})"
                for leader, some in leaders.items()
            ]
            return f"{here}{'; '.join(clauses)}."
    counts = [f"{leader} in {len(some)}" for leader, some in leaders.items()]
    text = f"leads in {len(compared)} settings: {_listed(counts)} ({_certainty(compared)})."
    return f"{here}{text}" if here else text.capitalize()


def _by_leader(compared: Sequence[SettingAnswer]) -> dict[str, list[SettingAnswer]]:
    """Return the settings by leader, the one of most settings first."""
    leaders: dict[str, list[SettingAnswer]] = defaultdict(list)
    for setting in compared:
        even = setting.row["verdict"] == NO_DIFFERENCE
        names = [entrant.label for entrant in setting.entrants[:2]]
        leaders[_listed(names) if even else setting.leader].append(setting)
    return dict(sorted(leaders.items(), key=lambda pair: -len(pair[1])))


def _leads(leader: str, some: Sequence[SettingAnswer]) -> str:
    if all(setting.row["verdict"] == NO_DIFFERENCE for setting in some):
        return f"{leader} are equally fast"
    is_settled = all(setting.state in (SURE, ORDER_SURE) for setting in some)
    return f"{leader} is fastest" if is_settled else f"{leader} leads"


def _sizes(some: Sequence[SettingAnswer]) -> str:
    """Return the leads over the runner-up as text, such as ``9 to 55 % ahead``."""
    leads = sorted(setting.lead or 1.0 for setting in some)
    low, high = _size(leads[0]), _size(leads[-1])
    if low == high:
        return low if leads[0] >= 2 else f"{low} ahead"
    if leads[-1] < 2:
        return f"{low.removesuffix(' %')} to {high} ahead"
    return f"{leads[0]:.2g} to {leads[-1]:.2g} times the next"


def _certainty(some: Sequence[SettingAnswer]) -> str:
    """Return how sure the leads are: ``sure``, or ``order sure in 1, open in 2``."""
    states = Counter(setting.state for setting in some)
    if len(states) == 1:
        return some[0].state
    return ", ".join(
        f"{state} in {states[state]}" for state in (SURE, ORDER_SURE, OPEN) if states[state]
    )


def _precision_kind(setting: SettingAnswer) -> str:
    """Return the precision in words; "" if there is none."""
    if not setting.is_each_fastest:
        return precision_words(setting.row["precision"])
    leading = setting.entrants[0].precision
    return "mixed precision" if leading == "mixed" else f"the fastest precision of each ({leading})"


def _mode(setting: SettingAnswer) -> str:
    return MODES.get(setting.row["mode"], "")


def _model(setting: SettingAnswer) -> str:
    return model_title(setting.row["model"]) if setting.row["model"] else ""


def _without_comparison(
    frameworks: Sequence[SettingAnswer],
    settings: Sequence[SettingAnswer],
    about_own: Sequence[str],
) -> str:
    if about_own:
        return f"{about_own[0]}."
    variants = [setting for setting in settings if setting.is_variants]
    if variants and not any(len(setting.entrants) > 1 for setting in frameworks):
        return _sentence_of_variants(variants)
    names = dict.fromkeys(entrant.label for some in frameworks for entrant in some.entrants)
    if waiting := [some for some in frameworks if some.state == OPEN]:
        return f"No answer yet: {waiting[0].between}."
    if not names:
        return "Nothing was measured: no run has a figure."
    only = [name for name in names if name != NO_FRAMEWORK]
    return (
        f"Only {_listed(only)} was measured, so there is nothing to compare."
        if len(only) == 1
        else "There is nothing to compare: no two frameworks have a figure at the same setting."
    )


def _sentence_of_variants(variants: Sequence[SettingAnswer]) -> str:
    if len(variants) == 1:
        found = variants[0]
        return f"{found.verdict}{f' ({found.state})' if found.state else ''}."
    base = variants[0].row["base_suite_variant"]
    counts = Counter(setting.leader for setting in variants if setting.state == SURE)
    if not counts:
        return f"No variant differs significantly from {base} yet."
    won = [f"{name} in {count}" for name, count in counts.most_common()]
    return f"Fastest variant of {len(variants)} cases: {_listed(won)} (significant ones)."


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
        lines.append(f"{_listed([*map(titled, sorted(names))])} {verb} no {what} here.")
        why_not += [(titled(name), titled(reasons[name])) for name in names]
        hidden |= {(name, precision) for name in names}
    return lines, why_not, hidden


def _excluded(results: Iterable[CaseResult]) -> list[str]:
    """Return a sentence for each figure that takes part in no comparison."""
    lines = []
    for result in results:
        if result.excluded:
            title, details = _name({**result.key.row, "metric": result.key.metric})
            name = "+".join([_title(result), *result.variation])
            lines.append(f"Excluded: {name}, {title}, {details}: {result.excluded}")
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
        return NextStep(f"To measure {_names(missing)}", None, command)
    orders = [order for contest in found if (order := open_order(contest))]
    if orders:
        seconds = sum(order.seconds for order in orders)
        rivals = [_title(result) for order in orders for result in order.contenders]
        names = _listed([*dict.fromkeys(rivals)])
        text = f"To settle the order of {names}, about {duration(60 * round(seconds / 60 + 0.5))}"
        return NextStep(text, seconds, command)
    return None
