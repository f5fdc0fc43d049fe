"""First screen of the report: the figures of all frameworks at a setting, relative to the best.

The bars are drawn as HTML here and, for what a filter leaves, by the page's script, which gets
figures and intervals of all settings from :func:`data`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

from ..statistics import intervals, repeated_intervals
from ..tables import formatting
from ..tables.answers import Answer, VariantAnswer
from ..tables.columns import Row
from ..tables.contests import Contest, ranked
from ..tables.measured import runs_in
from ..tables.results import CaseResult, flags_of, other_flags
from .page_data import short
from .panels import STATUS_WORDS
from .selection import axes_of

#: Settings and ratios of variants on the first screen, and settings with bars.
MAX_ANSWERS, MAX_BLOCKS = 12, 6


@dataclass(frozen=True)
class AnswerBar:
    """A line of a block: the median of a case, in percent of the block's width.

    ``end``: of the bar; None without a figure, for the reason ``why``. ``interval``: left and width
    of the 95 % interval of the median; None without one, where ``points``, the repeats, stand in
    place of a bar. ``peak``: its part of the framework's own peak, and that peak's part of the
    best; ``slow``: whether the latter is low."""

    label: str
    framework: str
    figure: str = ""
    end: float | None = None
    interval: tuple[float, float] | None = None
    points: Sequence[float] = ()
    why: str = ""
    peak: str = ""
    slow: bool = False


@dataclass(frozen=True)
class SettingBars:
    """The bars of one setting. ``reference``: place of a line that they are read against."""

    title: str
    unit: str
    bars: Sequence[AnswerBar]
    reference: float | None = None
    axes: Mapping[str, str] = field(default_factory=dict)


#: Function that returns the fields ``peak`` and ``slow`` of a bar.
OwnPeak = Callable[[CaseResult], tuple[str, bool]]


def blocks(answers: Sequence[tuple[Answer, Contest]], own_peak: OwnPeak) -> list[SettingBars]:
    """Return a block for each setting that has a figure, up to MAX_BLOCKS."""
    shown = [(answer, contest) for answer, contest in answers if contest.entrants]
    return [_block(answer, contest, own_peak) for answer, contest in shown[:MAX_BLOCKS]]


def _block(answer: Answer, contest: Contest, own_peak: OwnPeak) -> SettingBars:
    first = contest.entrants[0]
    top = first.throughput or 1.0

    def share(value: float) -> float:
        """Return a figure as part of the best, or its inverse where less is better."""
        part = value / top if first.better == "higher" else top / value if value else 0.0
        return 100 * part

    ends = [sorted(map(share, entrant.interval or entrant.values)) for entrant in contest.entrants]
    width = max([100.0, *(end[-1] for end in ends)]) / 100
    bars = [
        replace(_bar(entrant, share, some, width), peak=peak, slow=slow)
        for entrant, some in zip(contest.entrants, ends, strict=True)
        for peak, slow in [own_peak(entrant)]
    ]
    bars += [
        AnswerBar(
            runs_in(result.case),
            runs_in(result.case),
            why=STATUS_WORDS.get(result.standing, result.standing),
        )
        for result in contest.without
    ]
    bars += [AnswerBar(name, name, why="not measured yet") for name in contest.missing]
    bars += [AnswerBar(name, name, why="left out") for name in contest.left_out]
    return SettingBars(answer.setting, contest.setting.unit, bars)


def left_out(answers: Sequence[tuple[Answer, Contest]]) -> list[str]:
    """Return a sentence for each framework that a plan leaves out of settings with a block, and for
    each reason: where, and why."""
    where: dict[tuple[str, str], list[str]] = defaultdict(list)
    for answer, contest in answers:
        for name, why in contest.left_out.items() if contest.entrants else ():
            where[name, why].append(answer.setting)
    return [
        f"{name} is left out of {some[0] if len(some) == 1 else f'{len(some)} settings'}: {why}"
        for (name, why), some in where.items()
    ]


def _bar(
    result: CaseResult, share: Callable[[float], float], ends: Sequence[float], width: float
) -> AnswerBar:
    low, high = (value / width for value in (ends[0], ends[-1]))
    has_interval = result.interval is not None
    return AnswerBar(
        label(result),
        runs_in(result.case),
        formatting.rounded(result.throughput, "#.4g"),
        round(share(result.throughput or 0.0) / width, 1),
        (round(low, 1), round(high - low, 1)) if has_interval else None,
        () if has_interval else [round(end / width, 1) for end in ends],
    )


def variant_blocks(answers: Sequence[tuple[VariantAnswer, Row]]) -> list[SettingBars]:
    """Return a block for each case, up to MAX_BLOCKS: the ratio of each variant to the first."""
    cases: dict[str, list[tuple[VariantAnswer, Row]]] = defaultdict(list)
    for answer, row in answers:
        cases[answer.case].append((answer, row))
    return [_ratios(case, some) for case, some in [*cases.items()][:MAX_BLOCKS]]


def _ratios(case: str, answers: Sequence[tuple[VariantAnswer, Row]]) -> SettingBars:
    ratios = [row["speedup"] for _, row in answers if row["speedup"] is not None]
    highs = [row["speedup_ci_high"] for _, row in answers if row["speedup_ci_high"] is not None]
    width = max([1.0, *ratios, *highs]) / 100
    bars = []
    for answer, row in answers:
        who = (answer.variant, row["framework"])
        ratio, low, high = (row[f"speedup{end}"] for end in ("", "_ci_low", "_ci_high"))
        if ratio is None:
            bars.append(AnswerBar(*who, why=answer.verdict))
            continue
        end, figure = round(ratio / width, 1), f"{answer.ratio}\N{MULTIPLICATION SIGN}"
        if low is None:
            bars.append(AnswerBar(*who, figure, end, points=[end]))
        else:
            interval = (round(low / width, 1), round((high - low) / width, 1))
            bars.append(AnswerBar(*who, figure, end, interval))
    return SettingBars(
        case, f"against {answers[0][0].base}", bars, round(1 / width, 1), axes_of(answers[0][1])
    )


def label(result: CaseResult) -> str:
    """Return the framework of a case with its compiler and variant."""
    return "+".join([runs_in(result.case), *result.variation])


def data(
    answers: Sequence[tuple[Answer, Contest]],
    everywhere: Collection[str],
    own_peak: OwnPeak,
    place: Callable[[Sequence[Any]], int],
    number: Callable[[Sequence[Any]], int],
) -> dict[str, Any]:
    """Return all settings for the page's script, which answers for what a filter leaves.

    Of each setting, the fastest case of each framework and compiler stands in ``entrants``, whose
    columns are lists. ``pairs`` has the 95 % interval of the ratio of two entrants of different
    frameworks, by their numbers.

    Parameters
    ----------
    found
        All settings, with their answers.
    everywhere
        Flags of all fastest figures.
    own_peak
        Function that says how a case relates to its framework's own peak.
    place, number
        Functions that return the number of a group of runs, and that of a list.
    """
    entrants: list[tuple[int, CaseResult]] = []
    pairs: dict[str, tuple[float, float]] = {}
    for at, (_, contest) in enumerate(answers):
        some = _fastest_by_compiler(contest)
        numbered = [*enumerate(some, len(entrants))]
        for (value, first), (other, second) in combinations(numbered, 2):
            if ratio := _ratio_interval(first, second, contest.error is not None):
                pairs[f"{value} {other}"] = ratio
        entrants += [(at, result) for result in some]
    ends = [result.interval for _, result in entrants]
    contests = [contest for _, contest in answers]
    peaks = [own_peak(result) for _, result in entrants]
    return {
        "settings": number([answer.setting for answer, _ in answers]),
        "verdicts": number([answer.short_verdict for answer, _ in answers]),
        "units": number([contest.setting.unit for contest in contests]),
        "better": number([contest.results[0].better for contest in contests]),
        "without": number(
            ["\t".join(f"{runs_in(result.case)} {result.standing}" for result in contest.without)
             for contest in contests]
        ),
        "missing": number(["\t".join(contest.missing) for contest in contests]),
        "left_out": number(["\t".join(contest.left_out) for contest in contests]),
        "count": len(contests),
        "entrants": {
            "count": len(entrants),
            "at": number([at for at, _ in entrants]),
            "case": number([place(result.runs) for _, result in entrants]),
            "framework": number([runs_in(result.case) for _, result in entrants]),
            "compiler": number([result.case.compiler for _, result in entrants]),
            "label": number([label(result) for _, result in entrants]),
            "flags": number([other_flags(flags_of(result), everywhere) for _, result in entrants]),
            "peak": number([peak for peak, _ in peaks]),
            "slow": number([slow for _, slow in peaks]),
            "low": number([end and short(end[0]) for end in ends]),
            "high": number([end and short(end[1]) for end in ends]),
        },
        "pairs": pairs,
        "status": STATUS_WORDS,
    }  # fmt: skip


def _fastest_by_compiler(contest: Contest) -> list[CaseResult]:
    """Return the fastest case of each framework and compiler, the fastest first."""
    found: dict[tuple[str, str], CaseResult] = {}
    for result in ranked(contest.results):
        found.setdefault((result.case.framework, result.case.compiler), result)
    return [*found.values()]


def _ratio_interval(
    faster: CaseResult, slower: CaseResult, is_budgeted: bool
) -> tuple[float, float] | None:
    """Return the interval of the ratio of two frameworks, above 1 where the first is better.

    ``is_budgeted``: what was measured decided the number of repeats, so that it holds at all looks.
    """
    if faster.case.framework == slower.case.framework or min(*faster.values, *slower.values) <= 0:
        return None
    below, above = (slower, faster) if faster.better == "higher" else (faster, slower)
    method = repeated_intervals if is_budgeted else intervals
    ends = method.ratio_interval(below.values, above.values)
    return ends and (short(ends[0]), short(ends[1]))
