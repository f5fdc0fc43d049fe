"""The answer as data: origin of the figures, an answer for each setting, and the sentence that says
who is fastest where, by how much, how sure."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from itertools import chain

from core.text import counted, duration

from ..cases.conditions import MODES
from ..cases.names import in_words, listed
from ..config.catalog import model_title
from ..machine.identities import UNKNOWN
from ..records.run import Run
from ..records.sidecars import CallEntry
from ..statistics.verdicts import NO_DIFFERENCE
from .columns import Row
from .contests import precision_words
from .declared.fastest import OPEN, ORDER_SURE, SURE
from .measured import NO_FRAMEWORK, runs_in
from .table import Inputs

#: Settings that fit on the first screen; pages fold others.
MOST_SETTINGS = 4
EACH_FASTEST = "each in its fastest precision"
#: Most clauses of the sentence.
_MOST_CLAUSES = 3
#: Most models that the first line names.
_MOST_MODELS = 3


@dataclass(frozen=True)
class Origin:
    """Origin of a set of runs.

    ``machines``, ``commits``, ``suites``: without duplicates. ``first``, ``last``: days in UTC, ""
    if unknown. ``seconds``: total wall time of the runs. ``command``: last call that measured."""

    machines: Sequence[str]
    first: str
    last: str
    seconds: float
    commits: Sequence[str]
    suites: Sequence[str]
    command: str

    @property
    def took(self) -> str:
        """Total wall time as text; "" if unknown."""
        return duration(self.seconds) if self.seconds else ""

    @property
    def caption(self) -> str:
        """Machine, days and commit on one line, as far as known."""
        several = len(self.machines) > 1
        machine = f"{len(self.machines)} machines" if several else "".join(self.machines)
        days = self.first if self.first == self.last else f"{self.first} to {self.last}"
        commit = f"commit {', '.join(self.commits)}" if self.commits else ""
        return ", ".join(filter(None, (machine, days, commit)))


def describe_origin(runs: Sequence[Run], called: Sequence[CallEntry] = ()) -> Origin:
    """Return the origin of ``runs``. ``called``: known calls that measured."""
    days = sorted(
        datetime.fromtimestamp(run.started, UTC).date().isoformat()
        for run in runs
        if run.started is not None
    )
    machines = {run.machine for run in runs if run.hardware} - {UNKNOWN}
    return Origin(
        sorted({machine.in_short for machine in machines}),
        days[0] if days else "",
        days[-1] if days else "",
        sum(run.wall_seconds or 0.0 for run in runs),
        sorted({run.commit for run in runs} - {""}),
        list(dict.fromkeys(call.suite for call in called)),
        called[-1].command if called else "",
    )


def first_line(runs: Sequence[Run], provenance: Origin) -> list[str]:
    """Return suite, models, machines, days and number of runs, as far as known."""
    models = [model_title(name) for name in dict.fromkeys(run.case.model for run in runs) if name]
    ends = dict.fromkeys([provenance.first, provenance.last])
    days = [date.fromisoformat(text) for text in ends if text]
    took = f" in {provenance.took}" if provenance.took else ""
    parts = [
        ", ".join(provenance.suites),
        listed(models) if len(models) <= _MOST_MODELS else f"{len(models)} models",
        "; ".join(provenance.machines) or "machine not recorded",
        " to ".join(f"{day.day} {day:%b %Y}" for day in days),
        counted(len(runs), "run") + took,
    ]
    return [*filter(None, parts)]


def coverage(inputs: Inputs) -> list[str]:
    """Return a sentence for each suite with unmeasured cases, which names their frameworks."""
    results = chain(inputs.cases.values(), inputs.others.values())
    measured = {os.path.dirname(run.origin) for result in results for run in result.runs}
    lines = []
    for suite in dict.fromkeys(case.suite for case in inputs.expected):
        cases = [case for case in inputs.expected if case.suite == suite]
        missing = [case.case for case in cases if case.folder not in measured]
        if missing:
            every = Counter(runs_in(case.case) for case in cases)
            lacking = Counter(map(runs_in, missing))
            names = (f"{name} ({lacking[name]} of {every[name]})" for name in sorted(lacking))
            found = f"{len(cases) - len(missing)} of {len(cases)} cases of suite {suite} measured"
            lines.append(f"{found}; not yet: {', '.join(names)}")
    return lines


# ---- answers -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Entrant:
    """A figure at a setting.

    ``label``: title of the framework. ``value``: median, in the setting's unit. ``percent``:
    percent of the best figure. ``interval``: 95 % interval of ``value``; None with too few repeats.
    ``notes``: whatever distinguishes the figure, such as its compiler. ``axes``: its framework,
    compiler and precision, as in records."""

    label: str
    figure: str
    value: float
    percent: int
    interval: tuple[float, float] | None
    notes: Sequence[str]
    axes: Mapping[str, str]


@dataclass(frozen=True)
class SettingAnswer:
    """The answer at one setting.

    ``title``: model and benchmark; ``details``: precision, devices, batch. ``verdict``: who leads
    by how much; ``between``: interval of the lead and what it depends on. ``state``: SURE,
    ORDER_SURE, OPEN, or "" if there is nothing to compare. ``leader``: title of the fastest, ""
    without one. ``aside``: who has no figure here, and why, one line each. ``row``: the row of the
    table FASTEST."""

    title: str
    details: str
    unit: str
    better: str
    verdict: str
    between: str
    state: str
    leader: str
    entrants: Sequence[Entrant]
    aside: Sequence[str]
    row: Row
    is_each_fastest: bool = False

    @property
    def name(self) -> str:
        return f"{self.title}, {self.details}" if self.details else self.title


@dataclass(frozen=True)
class NextStep:
    """Open question that the next call settles. ``seconds``: its expected time, None if unknown."""

    text: str
    seconds: float | None
    command: str


@dataclass(frozen=True)
class FirstScreen:
    """Content of the first screen.

    ``what``: suite, machine, day and number of runs. ``sentence``: the answer. ``cannot``: who
    cannot take part; ``why_not``: the reason of each. ``excluded``: figures that take part in no
    comparison. ``careful``: what speaks against trusting the figures. ``findings``: sentences on a
    user's own model and on variants. ``page``: path of the report, "" if there is none."""

    what: Sequence[str]
    sentence: str
    settings: Sequence[SettingAnswer]
    cannot: Sequence[str]
    why_not: Sequence[tuple[str, str]]
    excluded: Sequence[str]
    careful: Sequence[str]
    findings: Sequence[str]
    next: NextStep | None
    page: str


# ---- the sentence --------------------------------------------------------------------------------


def answer_sentence(settings: Sequence[SettingAnswer], machines: Sequence[str]) -> str:
    """Return the sentence that answers: who is fastest where, by how much, how sure."""
    compared = [setting for setting in settings if setting.leader]
    if not compared:
        return _without_comparison(settings)
    here = "On these machines " if len(machines) > 1 else "On this machine " * len(machines)
    leaders = _by_leader(compared)
    if len(leaders) == 1:
        (leader, some), *_ = leaders.items()
        several = f"{len(some)} of {len(settings)} settings"
        if len(some) == len(settings):
            several = f"all {len(some)} settings"
        where = some[0].name if len(settings) == 1 else several
        return f"{here}{_leads(leader, some)} in {where}, {_sizes(some)} ({_certainty(some)})."
    open_settings = [setting for setting in settings if not setting.leader]
    for words in (
        _precision_kind,
        lambda setting: in_words(setting.row["mode"]) if setting.row["mode"] in MODES else "",
        lambda setting: model_title(setting.row["model"]) if setting.row["model"] else "",
        lambda setting: setting.title,
    ):
        if {*map(words, compared)} & {*map(words, open_settings)}:
            continue  # the words would also claim a lead where there is none
        places = {leader: [*dict.fromkeys(map(words, some))] for leader, some in leaders.items()}
        named = [place for some in places.values() for place in some]
        if len(named) == len({*named}) and all(named) and len(leaders) <= _MOST_CLAUSES:
            clauses = [
                f"{_leads(leader, some)} in {listed(places[leader])}, {_sizes(some)} "
                f"({_certainty(some)})"
                for leader, some in leaders.items()
            ]
            return f"{here}{'; '.join(clauses)}."
    counts = [f"{_leads(leader, some)} in {len(some)}" for leader, some in leaders.items()]
    counts[0] += f" of {len(settings)} settings"
    return f"{here}{listed(counts)} ({_certainty(compared)})."


def _by_leader(compared: Sequence[SettingAnswer]) -> dict[str, list[SettingAnswer]]:
    """Return the settings by leader, the leader of most settings first."""
    leaders: dict[str, list[SettingAnswer]] = defaultdict(list)
    for setting in compared:
        even = setting.row["verdict"] == NO_DIFFERENCE
        names = [entrant.label for entrant in setting.entrants[:2]]
        leaders[listed(names) if even else setting.leader].append(setting)
    return dict(sorted(leaders.items(), key=lambda pair: -len(pair[1])))


def _leads(leader: str, some: Sequence[SettingAnswer]) -> str:
    if all(setting.row["verdict"] == NO_DIFFERENCE for setting in some):
        return f"{leader} are equally fast"
    is_settled = all(setting.state in (SURE, ORDER_SURE) for setting in some)
    return f"{leader} is fastest" if is_settled else f"{leader} leads"


def _sizes(some: Sequence[SettingAnswer]) -> str:
    """Return the leads over the runner-up as text, such as ``9 to 55 % ahead``."""
    leads = sorted(setting.row["lead"] or 1.0 for setting in some)
    low, high = lead_size(leads[0]), lead_size(leads[-1])
    if low == high:
        return f"{low} the next" if leads[0] >= 2 else f"{low} ahead"
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
    leading = precision_words(setting.entrants[0].axes["precision"])
    is_mixed = leading == precision_words("amp")
    return leading if is_mixed else f"the fastest precision of each ({leading})"


def _without_comparison(settings: Sequence[SettingAnswer]) -> str:
    names = dict.fromkeys(entrant.label for some in settings for entrant in some.entrants)
    if waiting := [some for some in settings if some.state == OPEN]:
        return f"No answer yet: {waiting[0].between}."
    if not names:
        return "Nothing was measured: no run has a figure."
    only = [name for name in names if name != NO_FRAMEWORK]
    return (
        f"Only {listed(only)} was measured, so there is nothing to compare."
        if len(only) == 1
        else "There is nothing to compare: no two frameworks have a figure at the same setting."
    )


def ahead(lead: float) -> str:
    """Return a lead as text: ``6 % ahead of``, ``2.3 times as fast as``."""
    return f"{lead_size(lead)} as fast as" if lead >= 2 else f"{lead_size(lead)} ahead of"


def lead_size(lead: float) -> str:
    if lead >= 2:
        return f"{lead:.2g} times"
    return f"{100 * (lead - 1):.0f} %" if lead >= 1.01 else "less than 1 %"


def interval_of_lead(low: float, high: float) -> str:
    """Return the interval of a lead as text."""
    if high >= 2:
        return f"between {low:.2f} and {high:.2f} times"
    if low < 1:
        return f"between {100 * (1 - low):.0f} % behind and {100 * (high - 1):.0f} % ahead"
    return f"between {100 * (low - 1):.0f} and {100 * (high - 1):.0f} %"
