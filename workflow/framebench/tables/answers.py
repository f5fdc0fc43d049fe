"""What was found out, in words: which framework is fastest at what, by how much and whether that is
shown, what precisions, compilers and devices bring, and what failed. The first screen of the report
and the last lines of the terminal are made of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import shorten

import pandas as pd

from ..cases.conditions import THROUGHPUT
from ..cases.names import topology
from ..config import statuses
from ..statistics.verdicts import FASTER
from . import contests, parameters, view
from .columns import Row
from .declared import coverage
from .declared.fastest import DECIDED, FASTEST, too_few
from .declared.gains import GAINS
from .declared.reasons import FAILURES
from .measured import NO_FRAMEWORK
from .results import marks_of_all, other_marks
from .table import Table

#: Of the terminal: characters of a line, lines, and those of gains; reasons of a status.
WIDTH, LINES, MOST = 100, 15, 3
#: Of what a figure is of, so that the figure has room beside it.
SETTING = 52
LONGEST_REASON = 120
SHOWN, NOT_SHOWN = "shown", "not shown"


@dataclass(frozen=True)
class Answer:
    """Which ``framework`` is fastest at one ``setting``; ``fastest`` says too what it had its own
    way. ``lead``: over the ``next``, with its ``interval``; all are "" where there is none.
    ``why``: what keeps the lead from being shown, or why there is none; ``needs``: the
    repeats that could show it, where there are fewer."""

    setting: str
    framework: str
    fastest: str
    figure: str
    next: str
    lead: str
    interval: str
    verdict: str
    why: str
    needs: int | None
    marks: str
    compared: int
    tried: int
    missing: str

    @property
    def of(self) -> int:
        """Count how many frameworks were tried, or are still to be."""
        return self.tried + len(list(filter(None, self.missing.split(", "))))

    @property
    def is_shown(self) -> bool:
        return self.verdict == SHOWN

    @property
    def short_verdict(self) -> str:
        """With what it takes, or why there is none."""
        if self.needs is not None:
            return self.why
        return self.verdict or self.why


@dataclass(frozen=True)
class Answers:
    """``first_gains``: one of precisions, one of compilers, and so on. ``failures``: each status,
    and a sentence; ``counted``: all in one. ``everywhere``: the marks that all figures of the
    fastest carry. ``coverage``: how much of each suite has been measured."""

    fastest: Sequence[Answer]
    gains: Sequence[str]
    first_gains: Sequence[str]
    failures: Sequence[tuple[str, str]]
    counted: str
    everywhere: Sequence[str]
    coverage: Sequence[str]

    @property
    def verdicts(self) -> str:
        """How many leads are shown, of how many, and what the others need."""
        leads = [one for one in self.fastest if one.lead]
        missing = list(dict.fromkeys(
            name for one in self.fastest for name in filter(None, one.missing.split(", "))
        ))  # fmt: skip
        if not leads and missing:
            return f"not known yet: {', '.join(missing)} not measured"
        if not leads:
            return "there is nothing to compare"
        counted = Counter(one.verdict for one in leads if one.needs is None)
        parts = [f"{counted.pop(SHOWN, 0)} of {len(leads)} leads are shown"]
        if needs := sorted(one.needs for one in leads if one.needs is not None):
            enough = f"{needs[0]} to {needs[-1]}" if needs[-1] > needs[0] else str(needs[0])
            parts.append(f"{len(needs)} have too few repeats: {enough} could show them")
        return "; ".join([*parts, *(f"{count} {verdict}" for verdict, count in counted.items())])

    def most_compared(self, most: int) -> list[Answer]:
        """At ``most`` so many, those of most frameworks, in their order."""
        ranked = sorted(range(len(self.fastest)), key=lambda at: -self.fastest[at].compared)
        return [self.fastest[at] for at in sorted(ranked[:most])]


def of(tables: Mapping[Table, pd.DataFrame]) -> Answers:
    """From the tables that have them."""
    rows = view.records(tables[FASTEST])
    everywhere = marks_of_all(row["marks"] for row in rows if row["median"] is not None)
    gains, failed = view.records(tables[GAINS]), view.records(tables[FAILURES])
    first = {row["of_table"]: row for row in reversed(gains)}
    told = parameters.telling(rows)
    name = contests.named(rows, lambda row: _case(row, told(row)))
    return Answers(
        [_answer(row, name(row), everywhere) for row in rows],
        [_gain(row, everywhere) for row in gains],
        [_gain(row, everywhere) for row in gains if row is first[row["of_table"]]],
        [*_failures(failed)],
        _counted(failed),
        everywhere,
        coverage.sentences(coverage.rows_of(tables)),
    )


def lines(answers: Answers, last: Sequence[str]) -> list[str]:
    """For the terminal, at most LINES of WIDTH characters; ``last``: those at the end."""
    behind = [*answers.first_gains[:MOST], *[answers.counted] * bool(answers.failures)]
    if answers.everywhere:
        behind.append(f"every figure of the fastest is marked: {' '.join(answers.everywhere)}")
    covered = answers.coverage[:MOST]
    chosen = answers.most_compared(LINES - len(covered) - len(behind) - len(last) - 2)
    width = max((len(_shortened(one.setting)) for one in chosen), default=0)
    alike = len({one.verdict or one.why for one in answers.fastest}) == 1  # the heading says it
    shown = [_line(one, width, not alike) for one in chosen]
    if missing := len(answers.fastest) - len(chosen):
        shown.append(f".. and {missing} more settings in tables/{FASTEST.name}.md")
    return [cut(line) for line in (*covered, f"Fastest: {answers.verdicts}", *shown, *behind)] + [
        *last
    ]


def _line(one: Answer, width: int, verdict: bool) -> str:
    """With the interval of the lead, where there is room for it, and perhaps its ``verdict``."""
    marks = f" [{one.marks}]" if one.marks else ""
    start = f"{_shortened(one.setting):<{width}}  {one.fastest} {one.figure}".rstrip()
    if not one.lead:
        return f"{start}{marks}  {one.why if verdict or not one.fastest else ''}".rstrip()
    interval = f" ({one.interval})" if one.interval else ""
    end = f" {one.next}{f', {one.verdict}' * verdict}{marks}"
    texts = [f"{start}, {one.lead}x{more}{end}" for more in (interval, "")]
    return next((text for text in texts if len(text) <= WIDTH), texts[-1])


def _shortened(setting: str) -> str:
    """Not longer than SETTING, with its last word: of a kind with many parameters, the metric."""
    if len(setting) <= SETTING:
        return setting
    last = setting.rpartition(" ")[2][: SETTING // 2]
    return f"{setting[: SETTING - len(last) - 3]}.. {last}"


def cut(text: str) -> str:
    """Not longer than WIDTH."""
    return text if len(text) <= WIDTH else text[: WIDTH - 2] + ".."


def _case(row: Row, told: str) -> str:
    """What a row is of, but for conditions."""
    size = topology(row["nodes"], row["devices_per_node"])
    batch = f"b{row['batch_per_device']}" if row["batch_per_device"] else ""
    metric = "" if row["metric"] == THROUGHPUT else row["metric"]
    words = (row["model"], row["mode"], row["precision"], size, batch, told, metric)
    return " ".join(filter(None, words))


def _answer(row: Row, setting: str, everywhere: Sequence[str]) -> Answer:
    low, high = row["lead_ci_low"], row["lead_ci_high"]
    has_figure = row["median"] is not None
    return Answer(
        setting,
        row["framework"] or NO_FRAMEWORK,
        _entrant(row, "") if has_figure else "",
        f"{_figure(row['median'])} {row['unit']}" if has_figure else "",
        _entrant(row, "next_"),
        "" if row["lead"] is None else f"{row['lead']:.2f}",
        "" if low is None else f"{low:.2f} {view.DASH} {high:.2f}",
        _verdict(row),
        row["reason"],
        _needs(row),
        other_marks(row["marks"], everywhere),
        row["compared"],
        row["tried"],
        row["missing"],
    )


def _needs(row: Row) -> int | None:
    undecided = row["lead"] is not None and row["verdict"] not in DECIDED
    return row["repeats_to_show"] if undecided and too_few(row) else None


def _verdict(row: Row) -> str:
    if row["lead"] is None:
        return ""
    if row["verdict"] == FASTER:
        return SHOWN
    return NOT_SHOWN if _needs(row) else row["verdict"]


def _entrant(row: Row, prefix: str) -> str:
    """The framework, and what it had its own way."""
    name = row[f"{prefix}framework"]
    compiler = row[f"{prefix}compiler"]
    words = [name or ("" if prefix else NO_FRAMEWORK)]
    words += [compiler] if compiler not in ("", "none") else []
    words += [row[f"{prefix}arm"]] if row[f"{prefix}arm"] else []
    return "+".join(words)


def _figure(value: float) -> str:
    return f"{value:.0f}" if value >= 1000 else f"{value:#.4g}"


def _gain(row: Row, everywhere: Sequence[str]) -> str:
    """The range, of which cases its ends are, and what the verdicts say."""
    marks = f" [{marks}]" if (marks := other_marks(row["marks"], everywhere)) else ""
    alone, line = row["ratios"] == 1, f"{row['perfect'] or 1}x"
    ends = f"{row['most']:.2f}x ({row['most_of']})"
    if not alone:
        ends = f"{row['least']:.2f}x ({row['least_of']}) to {ends}"
    if not row["faster"] and (row["slower"] or row["perfect"]):
        shown = f"{row['slower']} of {row['ratios']} shown below {line}"
    else:
        shown = f"{row['faster']} of {row['ratios']} shown above {line}"
        shown += f", {row['slower']} below" if row["slower"] else ""
    return f"{row['change']}: {ends}, {shown}{marks}"


def _failures(rows: Sequence[Row]) -> Iterator[tuple[str, str]]:
    """A line for each status: how many runs, and their commonest reasons."""
    for status, some in _by_status(rows).items():
        reasons = [f"{row['failed_runs']} {row['failed_in']}: {_short(row['reason'])}"
                   for row in some[:MOST]]  # fmt: skip
        reasons += [f"reasons left out: {len(some) - MOST}"] * (len(some) > MOST)
        yield status, f"{_count(status, some)}: {'; '.join(reasons)}"


def _counted(rows: Sequence[Row]) -> str:
    """All statuses, and the commonest reason of the first."""
    statuses = _by_status(rows)
    counts = ", ".join(_count(status, some) for status, some in statuses.items())
    return counts + (f"; {rows[0]['failed_in']}: {_short(rows[0]['reason'])}" if rows else "")


def _by_status(rows: Sequence[Row]) -> dict[str, list[Row]]:
    statuses: dict[str, list[Row]] = {}
    for row in rows:
        statuses.setdefault(row["status"], []).append(row)
    return statuses


def _count(status: str, rows: Sequence[Row]) -> str:
    count = sum(row["failed_runs"] for row in rows)
    return f"{count} run{'s' * (count != 1)} {statuses.FAILURES[status].words}"


def _short(reason: str) -> str:
    return shorten(reason, LONGEST_REASON, placeholder=" ..")
