"""Comparison of frameworks at equal settings."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from core import inputs as inputs_
from core import precisions
from core.case import Case

from ..cases.conditions import KEYS, OF_VARIANT, Conditions, Key
from ..config.kinds import INDEPENDENT
from ..machine.identities import Identity
from ..records.record_sets import machine_label
from ..records.sidecars.expected import unmeasured
from ..statistics.verdicts import FALSE_WINNERS
from . import formatting
from .columns import TEXT, Column, Row
from .results import CaseResult, CaseResults
from .table import Inputs

#: Fields in which cases of one setting may differ; a framework's fastest case counts.
OWN = (
    "framework", "framework_version", "source", "compiler", *OF_VARIANT, "environment",
)  # fmt: skip
#: Fields that make up a setting; the machine belongs to it too.
SETTING = tuple(name for name in KEYS if name not in OWN)
ON_MACHINE = Column(
    "on_machine", TEXT, "label of the machine, where the set has several", title="on machine",
    hoisted=True,
)  # fmt: skip


@dataclass(frozen=True)
class Contest:
    """All cases of one setting.

    ``setting``: key without the fields OWN. ``machine``: label; "" if all cases are from one.
    ``entrants``: fastest case of each framework with a figure, fastest first. ``figures``: number
    of cases with a figure behind each entrant. ``without``: a case of each framework without a
    figure. ``missing``: frameworks of the suite with unmeasured cases here, so that the fastest is
    unknown. ``error``: probability of a wrong winner here, where a time budget decided the repeats;
    None for fixed numbers of repeats."""

    setting: Key
    machine: str
    results: Sequence[CaseResult]
    entrants: Sequence[CaseResult]
    figures: Sequence[int]
    without: Sequence[CaseResult]
    missing: Sequence[str]
    error: float | None = None

    @property
    def tried(self) -> int:
        """Number of frameworks with a measured case."""
        return len(self.entrants) + len(self.without)

    @property
    def pair(self) -> tuple[CaseResult, CaseResult] | None:
        """The fastest and the next entrant; None if no ratio exists or a framework is missing."""
        first = () if self.missing else self.entrants[:2]
        positive = all(min(one.values) > 0 for one in first)
        return (first[0], first[1]) if len(first) == 2 and positive else None


def of(inputs: Inputs) -> list[Contest]:
    """Return the contests of steps and of other benchmarks' principal metrics.

    Controls of scaling series are left out, and users' own models, which one framework runs. Order:
    by model, training first, then inference, then other benchmarks."""
    groups: dict[tuple[Key, Identity], list[CaseResult]] = defaultdict(list)
    for result in principal_results(inputs.cases, inputs.others):
        if result.case.model in inputs.own_models:
            continue
        groups[_setting(result.key), result.runs[0].machine].append(result)
    several = len({machine for _, machine in groups}) > 1
    present = (os.path.dirname(run.origin) for some in groups.values() for one in some
               for run in one.runs)  # fmt: skip
    missing: dict[tuple[Case, Conditions], set[str]] = defaultdict(set)
    for lacking in unmeasured(inputs.expected, present):
        asked = _asked(lacking.case, lacking.conditions)
        missing[asked].add(lacking.case.framework)
    budgeted = {_asked(one.case, one.conditions) for one in inputs.expected if one.is_budgeted}
    return [
        _contest(
            key,
            machine_label(machine) if several and machine.hardware else "",
            groups[key, machine],
            sorted(missing[asked] - _no_longer_awaited(groups[key, machine], asked in budgeted)),
            FALSE_WINNERS / len(budgeted) if asked in budgeted else None,
        )
        for key, machine in sorted(groups, key=_place)
        for asked in [_asked(key.case, key.conditions)]
    ]


def principal_results(*sets: CaseResults) -> Iterator[CaseResult]:
    """Yield the result of each case in its principal metric, without controls of scaling series."""
    for cases in sets:
        for key, result in cases.items():
            if key == result.runs[0].key and key.case.mode != INDEPENDENT:
                yield result


def _no_longer_awaited(results: Sequence[CaseResult], is_budgeted: bool) -> set[str]:
    """Return the frameworks whose further cases are not awaited before a winner is named.

    Within a time budget one case of a framework is enough: others, with a compiler, may follow.
    """
    return {one.case.framework for one in results} if is_budgeted else set()


def _setting(key: Key) -> Key:
    conditions = replace(key.conditions.without_variant, environment="")
    return key._replace(case=key.case.setting, conditions=conditions)


def _asked(case: Case, conditions: Conditions) -> tuple[Case, Conditions]:
    """Return what a suite requests at a setting, without fields that only records have."""
    source = inputs_.without_identity(conditions.input)
    return case.setting, replace(conditions.without_variant.unlabelled, input=source)


def _place(group: tuple[Key, Identity]) -> tuple[Any, ...]:
    key, machine = group
    case = key.case
    mode = (not case.is_step, case.mode != "train", case.mode)
    return (case.model, mode, precisions.baseline(case.precision) is not None, *key.order, machine)


def _contest(
    setting: Key,
    machine: str,
    results: Sequence[CaseResult],
    missing: Sequence[str],
    error: float | None,
) -> Contest:
    frameworks: dict[str, list[CaseResult]] = defaultdict(list)
    for result in results:
        frameworks[result.case.framework].append(result)
    sides = [(ranked(some), some) for some in frameworks.values()]
    entrants = sorted((some for some, _ in sides if some), key=lambda some: _speed(some[0]))
    return Contest(
        setting,
        machine,
        results,
        [some[0] for some in entrants],
        [len(some) for some in entrants],
        [some[0] for good, some in sides if not good],
        missing,
        error,
    )


def best(results: Sequence[CaseResult]) -> CaseResult | None:
    """Return the fastest result; None if none has a figure."""
    return next(iter(ranked(results)), None)


def ranked(results: Sequence[CaseResult]) -> list[CaseResult]:
    """Return results with a figure, fastest first."""
    return sorted((one for one in results if one.throughput is not None), key=_speed)


def _speed(result: CaseResult) -> float:
    """Return a sort key that puts the fastest first."""
    value = result.throughput or 0.0
    return -value if result.better == "higher" else value


def named(rows: Sequence[Row], name: Callable[[Row], str]) -> Callable[[Row], str]:
    """Return a function that gives a row's ``name`` and what distinguishes its setting."""
    return formatting.distinct_names(rows, name, (*OWN, "machine"), (ON_MACHINE.name,))
