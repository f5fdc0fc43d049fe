"""Summary of a gate: a Markdown note for a pull request, and JUnit XML."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree import ElementTree

from core.text import printable

from ...cases.conditions import MODES
from ...cases.names import topology_of
from ...records import pairs
from ...statistics.descriptive import median
from ...statistics.verdicts import CANNOT_TELL
from ...tables import formatting, measured
from ...tables.formatting import escape
from ...tables.results import CaseResult, flags_of
from .decisions import (
    BROKEN,
    FAULTY,
    NOT_COMPARED,
    OPEN,
    PASSED,
    REGRESSED,
    REGRESSION,
    WITHIN,
    Decision,
    counted,
)

HEADINGS = {
    PASSED: "passed",
    REGRESSED: "regression",
    OPEN: "cannot tell yet",
    FAULTY: "broken",
}
#: Largest number of cases that a note lists.
NAMED = 3
#: Largest number of characters of a line of a note, which has the reasons of both sides.
_LONGEST = 1200


@dataclass(frozen=True)
class GateRequest:
    """The comparison as requested. ``margin``: a fraction. ``measured``: whether the call measured;
    then the summary says how to continue."""

    base: str
    candidate: str
    margin: float
    measured: bool


def note(decisions: Sequence[Decision], status: int, request: GateRequest) -> str:
    """Return a Markdown note of at most ten lines."""
    lines = [_first(status, request), "", _counts(decisions), *_then(decisions, status, request)]
    worst = _worst(decisions)
    lines += [f"- {_line(decision)}" for decision in worst[:NAMED]]
    left = len(worst) - NAMED
    lines += [f"- and {left} more, see `tables/gate.md`"] if left > 0 else []
    return _text(lines)


def broken_note(message: str, request: GateRequest) -> str:
    """Return the note of a gate without a decision."""
    return _text([_first(FAULTY, request), "", message])


def junit(decisions: Sequence[Decision], request: GateRequest) -> str:
    """Return JUnit XML with a test case for each decision.
    A regression is a failure and a broken case an error; undecided and uncompared cases are
    skipped."""
    counts = counted(decisions)
    suite = ElementTree.Element(
        "testsuite",
        name="framebench gate",
        tests=str(len(decisions)),
        failures=str(len(counts[REGRESSION])),
        errors=str(len(counts[BROKEN])),
        skipped=str(len(counts[CANNOT_TELL]) + len(counts[NOT_COMPARED])),
    )
    names = _names(decisions)
    for decision, name in zip(decisions, names, strict=True):
        case = ElementTree.SubElement(
            suite, "testcase", classname=_case(decision).case.framework or "framebench", name=name
        )
        if decision.verdict != WITHIN:
            kind = {REGRESSION: "failure", BROKEN: "error"}.get(decision.verdict, "skipped")
            message = f"{decision.verdict}: {_figures(decision, request)}"
            ElementTree.SubElement(case, kind, message=message, type=decision.verdict)
        out = ElementTree.SubElement(case, "system-out")
        out.text = _figures(decision, request)
    return _xml(suite)


def broken_junit(message: str) -> str:
    """Return the JUnit XML of a gate without a decision."""
    suite = ElementTree.Element(
        "testsuite", name="framebench gate", tests="1", failures="0", errors="1", skipped="0"
    )
    case = ElementTree.SubElement(suite, "testcase", classname="framebench", name="gate")
    ElementTree.SubElement(case, "error", message=printable(message), type=BROKEN)
    return _xml(suite)


def _xml(suite: ElementTree.Element) -> str:
    suites = ElementTree.Element("testsuites")
    suites.append(suite)
    ElementTree.indent(suites)
    text = ElementTree.tostring(suites, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _first(status: int, request: GateRequest) -> str:
    sides = f"{escape(request.candidate)} against {escape(request.base)}"
    return f"**Framebench gate: {HEADINGS[status]}**: {sides}, margin {request.margin:.1%}"


def _counts(decisions: Sequence[Decision]) -> str:
    counts = {name: len(some) for name, some in counted(decisions).items() if some}
    text = ", ".join(f"{count} {name}" for name, count in counts.items())
    flags = Counter(flag for decision in decisions for flag in _flags(decision).split())
    flagged = ", ".join(f"{flag} (cases: {count})" for flag, count in sorted(flags.items()))
    said = f" Flags: {flagged}." if flags else ""
    return f"{formatting.counted(len(decisions), 'case')}: {text or 'none on either side'}.{said}"


def _flags(decision: Decision) -> str:
    """Return the flags of both sides in alphabetical order."""
    return flags_of(decision.matched.base, decision.matched.candidate)


def _worst(decisions: Sequence[Decision]) -> list[Decision]:
    """Return the decisions that do not pass, worst first."""
    counts = counted(decisions)
    some = [*counts[REGRESSION], *counts[BROKEN], *counts[CANNOT_TELL]]

    def place(decision: Decision) -> tuple[int, float]:
        order = (REGRESSION, BROKEN, CANNOT_TELL).index(decision.verdict)
        return order, decision.estimate.ratio if decision.estimate else 0.0

    return sorted(some, key=place)


def _line(decision: Decision) -> str:
    figures = decision.reason
    if decision.estimate:
        figures = _ratio(decision) + (f"; {decision.reason}" if decision.reason else "")
    return f"{decision.verdict}: {escape(_name(_case(decision)))}: {escape(figures)}"


def _then(decisions: Sequence[Decision], status: int, request: GateRequest) -> list[str]:
    """Return lines on what to do next and on caveats."""
    lines = []
    counts = counted(decisions)
    if status == OPEN:
        needed = [decision.needed for decision in counts[CANNOT_TELL]]
        present = [number for number in needed if number is not None]
        if present and request.measured:
            lines.append(f"To decide: the same command with at least `--pairs {max(present)}`.")
        elif present:
            lines.append(f"To decide: {max(present)} pairs, measured by the gate itself.")
        if None in needed:
            lines.append("Pairs alone may not do: choose another margin, or a longer window.")
        if not needed:
            lines.append("No case has a figure on both sides: nothing could be compared.")
    orders = {decision.estimate.order for decision in decisions if decision.estimate}
    if pairs.ONE_AFTER_THE_OTHER in orders:
        lines.append("Measured one after the other: the machine's drift counts as a difference.")
    return lines


def _figures(decision: Decision, request: GateRequest) -> str:
    parts = [_ratio(decision)] if decision.estimate else []
    flags = _flags(decision)
    parts += [f"margin {request.margin:.1%}", decision.reason, flags and f"flags: {flags}"]
    return printable("; ".join(filter(None, parts)))


def _step_times(decision: Decision) -> str:
    """Return the median step times of base and candidate in milliseconds; "" without steps."""
    times = [
        median([1000 * median(run.step_seconds) for run in side.ok])
        for side in decision.matched.both or ()
        if side.ok and all(run.step_seconds for run in side.ok)
    ]
    return f" ({times[0]:.4g} ms -> {times[1]:.4g} ms per step)" if len(times) == 2 else ""


def _ratio(decision: Decision) -> str:
    assert decision.estimate is not None
    text = f"{_case(decision).key.metric} ratio {decision.estimate.ratio:.3f}"
    if decision.estimate.interval:
        low, high = decision.estimate.interval
        text += f" [{low:.3f} .. {high:.3f}]"
    text += _step_times(decision)
    if decision.estimate.pairs:
        return f"{text}, {decision.estimate.pairs} pairs"
    base, candidate = decision.matched.base, decision.matched.candidate
    counts = [len(side.values) if side else 0 for side in (base, candidate)]
    return f"{text}, {counts[0]} and {counts[1]} repeats"


def _case(decision: Decision) -> CaseResult:
    case = decision.matched.base or decision.matched.candidate
    assert case is not None
    return case


def _name(case: CaseResult) -> str:
    """Return the name of a case without its settings and environment."""
    axes = case.case
    if axes.mode not in MODES:
        parts = [axes.mode, case.key.metric, axes.framework, topology_of(axes)]
        return " ".join(filter(None, [*parts, measured.parameters_text(axes)]))
    parts = [axes.framework, axes.model, axes.mode, axes.precision, axes.compiler]
    return " ".join([*parts, topology_of(axes), f"batch {axes.batch_per_device}"])


def _names(decisions: Sequence[Decision]) -> list[str]:
    """Return distinct names for JUnit: with the settings in which cases differ."""
    cases = [_case(decision) for decision in decisions]
    apart = formatting.differing_conditions([case.key.row for case in cases])
    return [printable(" ".join(filter(None, (_name(case), apart(case.key.row))))) for case in cases]


def _text(lines: Sequence[str]) -> str:
    """Join lines to a note; long ones are cut."""
    flat = [" ".join(line.split()) for line in lines]
    cut = [text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…" for text in flat]
    return "\n".join(cut) + "\n"
