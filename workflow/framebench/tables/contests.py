"""Comparison of frameworks at equal settings."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any

from core import inputs as inputs_
from core import precisions
from core.case import Case

from ..cases.conditions import Conditions, Key
from ..config import catalog
from ..config.kinds import INDEPENDENT
from ..machine.identities import Identity
from ..records.expected import unmeasured
from ..records.record_sets import machine_label
from ..statistics.verdicts import FALSE_WINNERS
from . import formatting
from .columns import OWN, Row
from .results import CaseResult, CaseResults
from .table import Inputs

#: Column of the machine's label, where the set has several.
ON_MACHINE = "on_machine"


@dataclass(frozen=True)
class Contest:
    """All cases of one setting.

    ``setting``: key without the fields OWN. ``machine``: label; "" if all cases are from one.
    ``entrants``: fastest case of each framework with a figure that is not excluded, fastest first.
    ``figures``: number of such cases behind each entrant. ``without``: a case of each other
    framework. ``missing``: frameworks of the suite with unmeasured cases here, so that the fastest
    is unknown. ``error``: probability of a wrong winner here, where a time budget decided the
    repeats; None for fixed numbers of repeats. ``left_out``: why a plan leaves out a framework, by
    name. ``other_batch``: who is faster with the batch that checks this one; "" for the same."""

    setting: Key
    machine: str
    results: Sequence[CaseResult]
    entrants: Sequence[CaseResult]
    figures: Sequence[int]
    without: Sequence[CaseResult]
    missing: Sequence[str]
    error: float | None = None
    left_out: Mapping[str, str] = field(default_factory=dict)
    other_batch: str = ""

    @property
    def tried(self) -> int:
        """Number of frameworks with a measured case."""
        return len(self.entrants) + len(self.without)

    @property
    def excluded(self) -> str:
        """The excluded cases with the reason of each, as text; "" for none."""
        return "; ".join(map(exclusion, filter(attrgetter("excluded"), self.results)))

    @property
    def pair(self) -> tuple[CaseResult, CaseResult] | None:
        """The fastest and the next entrant; None if no ratio exists or a framework is missing."""
        first = () if self.missing else self.entrants[:2]
        positive = all(min(result.values) > 0 for result in first)
        return (first[0], first[1]) if len(first) == 2 and positive else None


def find_contests(inputs: Inputs) -> list[Contest]:
    """Return the contests of steps and of other benchmarks' principal metrics.

    Controls of scaling series are left out, and users' own models, which one framework runs. Order:
    by model, training first, then inference, then other benchmarks."""
    settings: dict[tuple[Key, Identity], list[CaseResult]] = defaultdict(list)
    for result in principal_results(inputs.cases, inputs.others):
        case = result.case
        # A roof of the machine has no framework, and is no contest of a user's own model.
        if case.model not in inputs.own_models and (case.framework or not inputs.own_models):
            settings[_setting(result.key), result.runs[0].machine].append(result)
    several = len({machine for _, machine in settings}) > 1
    missing = _missing(inputs, [result for some in settings.values() for result in some])
    left_out: dict[tuple[Case, Conditions], dict[str, str]] = defaultdict(dict)
    for lacking in inputs.left_out:
        asked = _asked(lacking.case, lacking.conditions)
        left_out[asked][lacking.case.framework] = lacking.left_out
    known_cases = inputs.expected
    budgeted = {_asked(case.case, case.conditions) for case in known_cases if case.is_budgeted}
    found = []
    for key, machine in sorted(settings, key=_place):
        results = settings[key, machine]
        asked = _asked(key.case, key.conditions)
        entrants = _first_of_each(ranked(results))
        figures = Counter(result.case.framework for result in ranked(results))
        first = _first_of_each(results)
        # Within a time budget one case of a framework is enough: others, with a compiler, follow.
        present = {result.case.framework for result in results}
        enough = present if asked in budgeted else set()
        not_yet = sorted(missing.get(asked, set()) - enough)
        known = present.union(not_yet)
        contest = Contest(
            key,
            machine_label(machine) if several and machine.hardware else "",
            results,
            [*entrants.values()],
            [figures[name] for name in entrants],
            [result for name, result in first.items() if name not in entrants],
            not_yet,
            FALSE_WINNERS / len(budgeted) if asked in budgeted else None,
            {name: why for name, why in left_out.get(asked, {}).items() if name not in known},
        )
        found.append(contest)
    return _with_batch_checks(found, {_asked(case.case, case.conditions) for case in known_cases})


def _with_batch_checks(
    found: Sequence[Contest], expected: Collection[tuple[Case, Conditions]]
) -> list[Contest]:
    """Return the contests without those that check the batch of another, which names the outcome.

    No suite expects them: ``expected`` has the settings of all suites. Within a time budget the two
    leaders of a setting are measured with a larger batch, too."""

    def rest(contest: Contest) -> tuple[Key, str]:
        case = contest.setting.case._replace(batch_per_device=0)
        return contest.setting._replace(case=case), contest.machine

    budgeted = {rest(contest): contest for contest in found if contest.error is not None}
    results = []
    checks: dict[tuple[Key, str], Contest] = {}
    for contest in found:
        case, base = contest.setting.case, budgeted.get(rest(contest))
        is_larger = base and case.batch_per_device > base.setting.case.batch_per_device
        if is_larger and _asked(case, contest.setting.conditions) not in expected:
            checks[rest(contest)] = contest
        else:
            results.append(contest)
    return [
        replace(contest, other_batch=_changed(contest, checks.get(rest(contest))))
        if contest.error is not None
        else contest
        for contest in results
    ]


def _changed(contest: Contest, check: Contest | None) -> str:
    """Return who is faster with the batch of ``check``, if another framework is."""
    pair = check.pair if check else None
    if not check or not pair or not contest.entrants:
        return ""
    first, second = pair
    if first.case.framework == contest.entrants[0].case.framework:
        return ""
    ratio = (first.throughput or 0) / (second.throughput or 1)
    return (
        f"with batch {check.setting.case.batch_per_device}: {first.case.framework} "
        f"{ratio:.2f}x {second.case.framework}, {formatting.counted(len(first.values), 'repeat')}"
    )


def _missing(
    inputs: Inputs, results: Iterable[CaseResult]
) -> dict[tuple[Case, Conditions], set[str]]:
    """Return the frameworks with unmeasured cases by what the suites request."""
    present = (os.path.dirname(run.origin) for result in results for run in result.runs)
    missing: dict[tuple[Case, Conditions], set[str]] = defaultdict(set)
    for lacking in unmeasured(inputs.expected, present):
        missing[_asked(lacking.case, lacking.conditions)].add(lacking.case.framework)
    return missing


def principal_results(*sets: CaseResults) -> Iterator[CaseResult]:
    """Yield the result of each case in its principal metric, without controls of scaling series."""
    for cases in sets:
        for key, result in cases.items():
            if key == result.runs[0].key and key.case.mode != INDEPENDENT:
                yield result


def _setting(key: Key) -> Key:
    conditions = replace(key.conditions.without_variant, environment="")
    return key._replace(case=key.case.setting, conditions=conditions)


def _asked(case: Case, conditions: Conditions) -> tuple[Case, Conditions]:
    """Return what a suite requests at a setting, without fields that only records have."""
    source = inputs_.without_identity(conditions.input)
    return case.setting, replace(conditions.without_variant.unlabelled, input=source)


def _place(contest: tuple[Key, Identity]) -> tuple[Any, ...]:
    key, machine = contest
    case = key.case
    mode = (not case.is_step, case.mode != "train", case.mode)
    return (case.model, mode, precisions.baseline(case.precision) is not None, *key.order, machine)


def ranked(results: Sequence[CaseResult]) -> list[CaseResult]:
    """Return results with a figure that is not excluded, fastest first."""
    return sorted((result for result in results if result.compared is not None), key=_speed)


def _first_of_each(results: Sequence[CaseResult]) -> dict[str, CaseResult]:
    """Return the first case of each framework, by framework."""
    first: dict[str, CaseResult] = {}
    for result in results:
        first.setdefault(result.case.framework, result)
    return first


def exclusion(result: CaseResult) -> str:
    """Name a case whose figure is excluded, and say why."""
    case, titled = result.case, catalog.framework_declaration(result.case.framework)
    framework = "+".join([titled.get("title", case.framework), *result.variation])
    mode = "training" if case.mode == "train" else case.mode
    return f"{framework}, {case.model} {mode}, {case.precision}: {result.excluded}"


def _speed(result: CaseResult) -> float:
    """Return a sort key that puts the fastest of cases with figures first."""
    value = result.compared or 0.0
    return -value if result.better == "higher" else value


def named(rows: Sequence[Row], name: Callable[[Row], str]) -> Callable[[Row], str]:
    """Return a function that gives a row's ``name`` and what distinguishes its setting."""
    return formatting.distinct_names(rows, name, (*OWN, "machine"), (ON_MACHINE,))
