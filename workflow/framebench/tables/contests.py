"""Comparison of frameworks at equal settings, and names of settings and excluded cases in words."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, lru_cache
from typing import Any

from core import precisions
from core.case import Case

from .. import PROJECT
from ..cases.conditions import MODES, THROUGHPUT, Conditions, Key
from ..cases.names import in_words
from ..config import catalog
from ..config.catalog import model_title
from ..config.measurements import INDEPENDENT
from ..machine.identities import Identity
from ..records.record_sets import machine_label
from ..records.sidecars import ExpectedCase
from ..statistics.verdicts import FALSE_WINNERS
from . import formatting
from .columns import OWN, Row
from .measured import runs_in
from .results import CaseResult, CaseResults
from .table import Inputs

#: Column of the machine's label, where the set has several.
ON_MACHINE = "on_machine"
#: Case fields and conditions by which a suite requests a setting.
Asked = tuple[Case, Conditions]


@dataclass(frozen=True)
class Contest:
    """All cases of one setting.

    ``setting``: key without the fields OWN. ``machine``: label; "" if all cases are from one.
    ``missing``: frameworks of the suite with unmeasured cases here, so that the fastest is unknown.
    ``error``: probability of a wrong winner here, if a time budget decided the repeats; None for
    fixed numbers of repeats. ``left_out``: by framework without a case, why the plan leaves it out.
    ``other_batch``: which other framework is faster with the batch of a check; "" for none."""

    setting: Key
    machine: str
    results: Sequence[CaseResult]
    missing: Sequence[str]
    error: float | None = None
    left_out: Mapping[str, str] = field(default_factory=dict)
    other_batch: str = ""

    @cached_property
    def entrants(self) -> list[CaseResult]:
        """Fastest case of each framework with a figure that is not excluded, fastest first."""
        return [*_first_of_each(ranked(self.results)).values()]

    @cached_property
    def without(self) -> list[CaseResult]:
        """First case of each framework without a figure to compare."""
        compared = {entrant.case.framework for entrant in self.entrants}
        first = _first_of_each(self.results)
        return [result for name, result in first.items() if name not in compared]

    @property
    def choices(self) -> int:
        """Number of cases that the fastest entrant was chosen from."""
        first = self.entrants[0].case.framework
        return sum(result.case.framework == first for result in ranked(self.results))

    @property
    def pair(self) -> tuple[CaseResult, CaseResult] | None:
        """The fastest and the next entrant; None if no ratio exists or a framework is missing."""
        first = () if self.missing else self.entrants[:2]
        positive = all(min(result.values) > 0 for result in first)
        return (first[0], first[1]) if len(first) == 2 and positive else None


@lru_cache(maxsize=2)  # used by several tables; a comparison needs the contests of two sets
def find_contests(inputs: Inputs) -> list[Contest]:
    """Return the contests of steps and of other benchmarks' principal metrics.

    Controls of scaling series are left out, and users' own models, which one framework runs. Order:
    by model, training first, then inference, then other benchmarks."""
    settings: dict[tuple[Key, Identity], list[CaseResult]] = defaultdict(list)
    for result in principal_results(inputs.cases, inputs.others):
        case = result.case
        # A roof of the machine has no framework, and a user's own model has no contest.
        if case.model not in inputs.own_models and (case.framework or not inputs.own_models):
            settings[_setting(result.key), result.runs[0].machine].append(result)
    several = len({machine for _, machine in settings}) > 1
    present = {os.path.dirname(run.origin)
               for some in settings.values() for result in some for run in result.runs}  # fmt: skip
    expected, left_out = _by_setting(inputs.expected), _by_setting(inputs.left_out)
    budgeted = {asked for asked, cases in expected.items() if any(one.is_budgeted for one in cases)}
    found = []
    for key, machine in sorted(settings, key=_place):
        results = settings[key, machine]
        asked = _asked(key.case, key.conditions)
        measured = {result.case.framework for result in results}
        not_yet = {one.case.framework for one in expected[asked] if one.folder not in present}
        # Within a time budget one case of a framework is enough; cases with a compiler follow.
        not_yet -= measured if asked in budgeted else set()
        contest = Contest(
            key,
            machine_label(machine) if several and machine.hardware else "",
            results,
            sorted(not_yet),
            FALSE_WINNERS / len(budgeted) if asked in budgeted else None,
            {one.case.framework: one.left_out for one in left_out[asked]
             if one.case.framework not in measured | not_yet},
        )  # fmt: skip
        found.append(contest)
    return _with_batch_checks(found, expected)


def _by_setting(cases: Sequence[ExpectedCase]) -> dict[Asked, list[ExpectedCase]]:
    found: dict[Asked, list[ExpectedCase]] = defaultdict(list)
    for one in cases:
        found[_asked(one.case, one.conditions)].append(one)
    return found


def _with_batch_checks(
    found: Sequence[Contest], expected: Mapping[Asked, Sequence[ExpectedCase]]
) -> list[Contest]:
    """Remove batch checks, and note the outcome of each in the contest that it checks.

    In a batch check, the two leaders of a setting with a time budget are measured with a larger
    batch. Its cases are not among those that suites request (``expected``)."""

    def rest(contest: Contest) -> tuple[Key, str]:
        case = contest.setting.case._replace(batch_per_device=0)
        return contest.setting._replace(case=case), contest.machine

    batches = {rest(contest): contest.setting.case.batch_per_device
               for contest in found if contest.error is not None}  # fmt: skip

    def is_check(contest: Contest) -> bool:
        batch = contest.setting.case.batch_per_device
        asked = _asked(contest.setting.case, contest.setting.conditions)
        return batch > batches.get(rest(contest), batch) and not expected.get(asked)

    checks = {rest(contest): contest for contest in found if is_check(contest)}
    return [
        replace(contest, other_batch=_changed(contest, checks.get(rest(contest))))
        if contest.error is not None
        else contest
        for contest in found
        if not is_check(contest)
    ]


def _changed(contest: Contest, check: Contest | None) -> str:
    """Return which other framework leads with the batch of ``check``, as text; "" for none."""
    if not (check and check.pair and contest.entrants):
        return ""
    first, second = check.pair
    if first.case.framework == contest.entrants[0].case.framework:
        return ""
    ratio = (first.throughput or 0) / (second.throughput or 1)
    return (
        f"with batch {check.setting.case.batch_per_device}: {first.case.framework} "
        f"{ratio:.2f}x {second.case.framework}, {formatting.counted(len(first.values), 'repeat')}"
    )


def principal_results(*sets: CaseResults) -> Iterator[CaseResult]:
    """Yield the result of each case in its principal metric, without controls of scaling series."""
    for cases in sets:
        for key, result in cases.items():
            if key == result.runs[0].key and key.case.mode != INDEPENDENT:
                yield result


def _setting(key: Key) -> Key:
    conditions = replace(key.conditions.without_variant, environment="")
    return key._replace(case=key.case.setting, conditions=conditions)


def _asked(case: Case, conditions: Conditions) -> Asked:
    """Return the case fields that a suite requests at a setting, without those that only records
    have."""
    source = conditions.input.partition("@")[0]
    return case.setting, replace(conditions.without_variant.unlabelled, input=source)


def _place(contest: tuple[Key, Identity]) -> tuple[Any, ...]:
    key, machine = contest
    case = key.case
    mode = (not case.is_step, case.mode != "train", case.mode)
    return (case.model, mode, precisions.baseline(case.precision) is not None, *key.order, machine)


def ranked(results: Sequence[CaseResult]) -> list[CaseResult]:
    """Return results with a figure that is not excluded, fastest first."""

    def speed(result: CaseResult) -> float:
        value = result.compared or 0.0
        return -value if result.better == "higher" else value

    return sorted((result for result in results if result.compared is not None), key=speed)


def _first_of_each(results: Sequence[CaseResult]) -> dict[str, CaseResult]:
    """Return the first case of each framework, by framework."""
    first: dict[str, CaseResult] = {}
    for result in results:
        first.setdefault(result.case.framework, result)
    return first


# ---- names in words ------------------------------------------------------------------------------


def named(rows: Sequence[Row], name: Callable[[Row], str]) -> Callable[[Row], str]:
    """Return a function that gives a row's ``name`` and what distinguishes its setting.

    ``rows``: rows of a table with the column ``on_machine``."""
    return formatting.distinct_names(rows, name, (*OWN, "machine"), (ON_MACHINE,))


@cache
def _titles() -> Mapping[str, str]:
    """Return the titles of this project's frameworks, by name."""
    declared = catalog.load_catalog(PROJECT).frameworks
    return {name: framework["title"] for name, framework in declared.items()}


def titled(text: str) -> str:
    """Return a text with the titles of frameworks in place of their names."""
    titles = _titles()
    return re.sub(r"\b\w+\b(?!\.\w)", lambda match: titles.get(match[0], match[0]), text)


def title_of(result: CaseResult) -> str:
    return titled(runs_in(result.case))


def titles(names: Iterable[str]) -> str:
    return ", ".join(map(titled, dict.fromkeys(names)))


def precision_words(precision: str) -> str:
    """Return a precision in words."""
    return "mixed precision" if precision == "amp" else precision


def setting_name(row: Row, parameters: str = "") -> tuple[str, str]:
    """Return the title of a setting (model, mode) and its details (precision, devices, batch)."""
    metric = "" if row["metric"] == THROUGHPUT else row["metric"]
    batch = row["batch_per_device"]
    each = " per device" if (row["nodes"] or 1) * (row["devices_per_node"] or 1) > 1 else ""
    size = f"batch {batch}{each}" if batch else ""
    if row["mode"] in MODES:
        title = f"{model_title(row['model'])} {in_words(row['mode'])}"
    else:
        title = " ".join(filter(None, [in_words(row["mode"]), row["model"]]))
        title = title[:1].upper() + title[1:]
    parts = [precision_words(row["precision"]), _devices(row), size, parameters, metric]
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


def exclusion(result: CaseResult) -> str:
    """Name a case whose figure is excluded, and say why."""
    title, _ = setting_name({**result.key.row, "metric": result.key.metric})
    name = "+".join([title_of(result), *result.variation])
    parts = filter(None, [name, title, precision_words(result.case.precision)])
    return f"{', '.join(parts)}: {result.excluded}"


def setting_labels(rows: Sequence[Row]) -> Callable[[Row], tuple[str, str]]:
    """Return a function that gives the title and details of a row, with what distinguishes it."""
    parameters_of = formatting.own_parameters(rows)
    name = named(rows, lambda row: "\n".join(setting_name(row, parameters_of(row))))

    def label(row: Row) -> tuple[str, str]:
        title, _, details = name(row).partition("\n")
        return title, details

    return label
