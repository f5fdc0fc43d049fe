"""Answers as sentences, for the first screen of the report.

They name the ratio of each variant of a suite, the fastest framework of each setting, its lead and
whether that is significant, and failures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import shorten

import pandas as pd

from ..cases.conditions import OF_VARIANT, THROUGHPUT
from ..cases.names import topology
from ..config import statuses
from ..config.catalog import model_title
from ..statistics.verdicts import FASTER, SLOWER
from . import contests, formatting, view
from .columns import Row
from .declared import efficiency, own_model
from .declared.fastest import (
    DECIDED,
    FASTEST,
    ORDER_SURE,
    SURE,
    excluded_sentences,
    percent,
    too_few,
)
from .declared.reasons import FAILURES
from .declared.variants import VARIANTS
from .measured import NO_FRAMEWORK
from .results import flags_of_all, other_flags
from .table import Table

#: Most reasons of a status.
MOST = 3
#: Benchmarks that time steps of a model, in words.
STEPS = {"train": "training", "inference": "inference"}
LONGEST_REASON = 120
SHOWN, NOT_SHOWN = "significant", "not significant"


@dataclass(frozen=True)
class Answer:
    """The fastest ``framework`` at one ``setting``.

    ``fastest``: its name with its compiler and variant. ``lead``: over the ``next``, with its
    ``interval``; all "" if there is none. ``within``: largest difference between the contenders of
    an open order, "" if unknown. ``why``: why the lead is not significant, or why there is
    none. ``needs``: the repeats that a significant lead needs; None if there are enough.
    ``other_batch``: who is faster with another batch."""

    setting: str
    framework: str
    fastest: str
    figure: str
    next: str
    lead: str
    interval: str
    verdict: str
    within: str
    why: str
    needs: int | None
    flags: str
    compared: int
    tried: int
    missing: str
    other_batch: str = ""

    @property
    def frameworks(self) -> int:
        """Number of frameworks that were tried, or still will be."""
        return self.tried + len(list(filter(None, self.missing.split(", "))))

    @property
    def is_shown(self) -> bool:
        return self.verdict == SHOWN

    @property
    def short_verdict(self) -> str:
        """Verdict of the lead, or why there is none."""
        verdict = self.why if self.needs is not None else self.verdict or self.why
        return "; ".join(filter(None, (verdict, self.other_batch)))


@dataclass(frozen=True)
class VariantAnswer:
    """The ratio of a variant to the first one of its suite, of one case.

    ``case``: the case, with its framework. ``ratio``, ``interval``: "" if there is none.
    ``verdict``: on the ratio, or why there is none."""

    case: str
    variant: str
    base: str
    ratio: str
    interval: str
    verdict: str
    flags: str

    @property
    def is_shown(self) -> bool:
        return self.verdict in (FASTER, SLOWER)


@dataclass(frozen=True)
class Answers:
    """All sentences of a report.

    ``variants``: those of suites with variants. ``failures``: (status, sentence). ``counted``: all
    failures in one sentence. ``everywhere``: flags of every fastest figure. ``coverage``: how much
    of each suite has been measured. ``slow``: frameworks whose matmuls are slow on this device.
    ``own_model``: what was found about a user's own model, which no frameworks compete for.
    ``excluded``: a sentence for each setting with figures that take part in no comparison."""

    variants: Sequence[VariantAnswer]
    fastest: Sequence[Answer]
    failures: Sequence[tuple[str, str]]
    counted: str
    everywhere: Sequence[str]
    coverage: Sequence[str]
    slow: Sequence[str]
    own_model: Sequence[str] = ()
    excluded: Sequence[str] = ()

    @property
    def variant_verdicts(self) -> str:
        """Say how many ratios of variants are significant; "" without variants."""
        if not self.variants:
            return ""
        bases = ", ".join(dict.fromkeys(variant.base for variant in self.variants))
        shown = sum(variant.is_shown for variant in self.variants)
        return f"against {bases}: {shown} of {len(self.variants)} ratios are significant"

    @property
    def compares_frameworks(self) -> bool:
        """Return whether a setting has several frameworks, or no question is answered otherwise."""
        if self.own_model and all(answer.framework == NO_FRAMEWORK for answer in self.fastest):
            return False
        return not self.variants or any(answer.frameworks > 1 for answer in self.fastest)

    @property
    def only_framework(self) -> str:
        """Name of the framework if there is a single one everywhere; "" otherwise."""
        names = {answer.framework for answer in self.fastest} - {NO_FRAMEWORK}
        return (
            names.pop()
            if len(names) == 1 and all(answer.frameworks == 1 for answer in self.fastest)
            else ""
        )

    @property
    def verdicts(self) -> str:
        """Say how many leads are significant, and how many repeats the others need."""
        leads = [answer for answer in self.fastest if answer.lead]
        missing = list(dict.fromkeys(
            name for answer in self.fastest for name in filter(None, answer.missing.split(", "))
        ))  # fmt: skip
        if not leads and missing:
            return f"not known yet: {', '.join(missing)} not measured"
        if not leads:
            return "there is nothing to compare"
        counted = Counter(lead.verdict for lead in leads if lead.needs is None)
        significant = counted.pop(SHOWN, 0)
        parts = [f"{significant} of {len(leads)} leads are significant for independent repeats"]
        if not significant and ORDER_SURE not in counted:
            parts = ["no winner is significant yet"]
        if needs := sorted(lead.needs for lead in leads if lead.needs is not None):
            enough = f"{needs[0]} to {needs[-1]}" if needs[-1] > needs[0] else str(needs[0])
            parts.append(f"{len(needs)} of {len(leads)} comparisons need {enough} repeats")
        return "; ".join([*parts, *(f"{count} {verdict}" for verdict, count in counted.items())])

    def most_compared(self, most: int) -> list[Answer]:
        """Return up to ``most`` answers, those that compare most frameworks, in their order."""
        ranked = sorted(range(len(self.fastest)), key=lambda at: -self.fastest[at].compared)
        return [self.fastest[at] for at in sorted(ranked[:most])]


def answers_of(tables: Mapping[Table, pd.DataFrame], covered: Sequence[str] = ()) -> Answers:
    """Make all sentences from the tables. ``covered``: sentences of the coverage of suites."""
    rows = view.records(tables[FASTEST])
    everywhere = flags_of_all(row["flags"] for row in rows if row["median"] is not None)
    failed = view.records(tables[FAILURES])
    parameters_of = formatting.own_parameters(rows)
    name = contests.named(rows, lambda row: _case(row, parameters_of(row)))
    return Answers(
        _variants(view.rows_of(tables, VARIANTS), everywhere),
        [_answer(row, name(row), everywhere) for row in rows],
        [*_failures(failed)],
        _counted(failed),
        everywhere,
        covered,
        efficiency.slow_libraries(tables),
        own_model.sentences(tables),
        [*excluded_sentences(rows), *excluded_sentences(view.rows_of(tables, own_model.OWN_MODEL))],
    )


def _case(row: Row, parameters: str) -> str:
    """Return the label of a row without its settings and environment."""
    metric = "" if row["metric"] == THROUGHPUT else row["metric"]
    batch = row["batch_per_device"]
    if row["mode"] in STEPS:
        words = f"{model_title(row['model'])} {STEPS[row['mode']]}"
        precision = "mixed" if row["precision"] == "amp" else row["precision"]
        sizes = [precision, _devices(row), f"batch {batch}" * bool(batch)]
        return ", ".join(filter(None, [words, *sizes, parameters, metric]))
    size = topology(row["nodes"], row["devices_per_node"])
    parts = [row["model"], row["mode"], row["precision"], size, f"b{batch}" * bool(batch)]
    return " ".join(filter(None, [*parts, parameters, metric]))


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


def _variants(rows: Sequence[Row], everywhere: Sequence[str]) -> list[VariantAnswer]:
    parameters_of = formatting.own_parameters(rows)

    def case(row: Row) -> str:
        compiler = "" if row["compiler"] == "none" else row["compiler"]
        return " ".join(filter(None, (row["framework"], compiler, _case(row, parameters_of(row)))))

    apart = (*OF_VARIANT, "framework_version", "environment", "machine")
    name = formatting.distinct_names(rows, case, apart, (contests.ON_MACHINE.name,))
    return [
        VariantAnswer(
            name(row),
            row["suite_variant"],
            row["base_suite_variant"],
            "" if row["speedup"] is None else f"{row['speedup']:.2f}",
            _interval(row["speedup_ci_low"], row["speedup_ci_high"]),
            row["reason"] if row["speedup_ci_low"] is None else row["verdict"],
            other_flags(row["flags"], everywhere),
        )
        for row in rows
    ]


def _interval(low: float | None, high: float | None) -> str:
    return "" if low is None else f"{low:.2f} {formatting.DASH} {high:.2f}"


def _answer(row: Row, setting: str, everywhere: Sequence[str]) -> Answer:
    has_figure = row["median"] is not None
    return Answer(
        setting,
        row["framework"] or NO_FRAMEWORK,
        _entrant(row, "") if has_figure else "",
        f"{formatting.rounded(row['median'], '#.4g')} {row['unit']}" if has_figure else "",
        _entrant(row, "next_"),
        "" if row["lead"] is None else f"{row['lead']:.2f}",
        _interval(row["lead_ci_low"], row["lead_ci_high"]),
        _verdict(row),
        f"all within {percent(row['within'])}" if row["within"] else "",
        row["reason"],
        _needs(row),
        other_flags(row["flags"], everywhere),
        row["compared"],
        row["tried"],
        row["missing"],
        row["other_batch"],
    )


def _needs(row: Row) -> int | None:
    undecided = row["lead"] is not None and row["verdict"] not in DECIDED
    return row["repeats_to_show"] if undecided and too_few(row) else None


def _verdict(row: Row) -> str:
    if row["lead"] is None:
        return ""
    if row["verdict"] == FASTER:
        return SHOWN if row["certainty"] == SURE else ORDER_SURE
    return NOT_SHOWN if _needs(row) else row["verdict"]


def _entrant(row: Row, prefix: str) -> str:
    """Return the framework with its compiler and variant."""
    name = row[f"{prefix}framework"]
    compiler = row[f"{prefix}compiler"]
    parts = [name or ("" if prefix else NO_FRAMEWORK)]
    parts += [compiler] if compiler not in ("", "none") else []
    parts += [row[f"{prefix}suite_variant"]] if row[f"{prefix}suite_variant"] else []
    return "+".join(parts)


def _failures(rows: Sequence[Row]) -> Iterator[tuple[str, str]]:
    """Yield (status, line) with the number of runs and their most frequent reasons."""
    for status, some in _by_status(rows).items():
        reasons = [f"{row['failed_runs']} {row['failed_in']}: {_short(row['reason'])}"
                   for row in some[:MOST]]  # fmt: skip
        reasons += [f"reasons left out: {len(some) - MOST}"] * (len(some) > MOST)
        yield status, f"{_count(status, some)}: {'; '.join(reasons)}"


def _counted(rows: Sequence[Row]) -> str:
    """Count all statuses in one line, with the most frequent reason of the first."""
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
    return f"{formatting.counted(count, 'run')} {statuses.FAILURES[status].words}"


def _short(reason: str) -> str:
    return shorten(reason, LONGEST_REASON, placeholder=" ..")
