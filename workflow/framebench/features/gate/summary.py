"""Summary of a gate: a Markdown note for a pull request, and JUnit XML."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from xml.etree import ElementTree

from core.text import printable

from ...records.run import ONE_AFTER_THE_OTHER
from ...statistics import sequential
from ...statistics.descriptive import median
from ...statistics.verdicts import CANNOT_TELL
from ...tables import formatting
from ...tables.formatting import escape
from ...tables.measured import figure_name
from ...tables.results import flags_of
from .decisions import (
    BROKEN,
    FAULTY,
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
#: Largest number of cases that a note lists, and of characters of its lines.
NAMED, LONGEST = 3, 1200


def note(sides: str, status: int, lines: Sequence[str]) -> str:
    """Return a Markdown note with these lines, of which long ones are cut."""
    head = f"**Framebench gate: {HEADINGS[status]}**: {escape(sides)}"
    return "".join(f"{' '.join(line.split())[:LONGEST]}\n" for line in (head, "", *lines))


def lines(decisions: Sequence[Decision], status: int) -> list[str]:
    """Return the content of a note, in at most eight lines."""
    counts = counted(decisions)
    worst = [
        decision
        for verdict in (REGRESSION, BROKEN, CANNOT_TELL)
        for decision in sorted(
            counts[verdict], key=lambda one: one.estimate.ratio if one.estimate else 0.0
        )
    ]
    said = [_counts(decisions), *_then(decisions, status)]
    for decision in worst[:NAMED]:
        figures = "; ".join(filter(None, (_ratio(decision), decision.reason)))
        name = figure_name(decision.matched.either.key)
        said.append(f"- {decision.verdict}: {escape(name)}: {escape(figures)}")
    left = len(worst) - NAMED
    return [*said, f"- and {left} more, see `tables/gate.md`"] if left > 0 else said


def junit(decisions: Sequence[Decision]) -> str:
    """Return JUnit XML with a test case for each decision.
    A regression is a failure and a broken case an error; undecided and uncompared cases are
    skipped."""
    keys = [decision.matched.either.key for decision in decisions]
    apart = formatting.differing_conditions([key.row for key in keys])
    cases = []
    for decision, key in zip(decisions, keys, strict=True):
        flags = _flags(decision)
        parts = (_ratio(decision), decision.reason, f"flags: {flags}" if flags else "")
        name = " ".join(filter(None, (figure_name(key), apart(key.row))))
        figures = "; ".join(filter(None, parts))
        cases.append((key.case.framework, name, decision.verdict, figures))
    return _xml(cases)


def broken_junit(message: str) -> str:
    """Return the JUnit XML of a gate without a decision."""
    return _xml([("", "gate", BROKEN, message)])


def _xml(cases: Sequence[tuple[str, str, str, str]]) -> str:
    """Return JUnit XML of cases: framework, name, verdict and figures of each."""
    suites = ElementTree.Element("testsuites")
    suite = ElementTree.SubElement(suites, "testsuite", name="framebench gate")
    counts = Counter[str]()
    for framework, name, verdict, figures in cases:
        case = ElementTree.SubElement(
            suite, "testcase", classname=framework or "framebench", name=printable(name)
        )
        if verdict != WITHIN:
            kind = {REGRESSION: "failure", BROKEN: "error"}.get(verdict, "skipped")
            counts[kind] += 1
            message = printable(f"{verdict}: {figures}")
            ElementTree.SubElement(case, kind, message=message, type=verdict)
        ElementTree.SubElement(case, "system-out").text = printable(figures)
    suite.set("tests", str(len(cases)))
    for kind, heading in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
        suite.set(heading, str(counts[kind]))
    ElementTree.indent(suites)
    text = ElementTree.tostring(suites, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


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


def _then(decisions: Sequence[Decision], status: int) -> list[str]:
    """Return lines on what to do next and on caveats."""
    lines = []
    if status == OPEN:
        looks = [one.next_look or sequential.LOOKS[-1] for one in counted(decisions)[CANNOT_TELL]]
        lines.append(
            f"To decide: at least {max(looks)} pairs (`--pairs`), a larger margin, or a longer "
            "window."
            if looks
            else "No case has a figure on both sides: nothing could be compared."
        )
    orders = {decision.estimate.order for decision in decisions if decision.estimate}
    if ONE_AFTER_THE_OTHER in orders:
        lines.append("Measured one after the other: the machine's drift counts as a difference.")
    return lines


def _step_times(decision: Decision) -> str:
    """Return the median step times of base and candidate in milliseconds; "" without steps."""
    times = [
        median([1000 * median(run.step_seconds) for run in side.ok])
        for side in decision.matched.comparable_sides or ()
        if side.ok and all(run.step_seconds for run in side.ok)
    ]
    return f" ({times[0]:.4g} ms -> {times[1]:.4g} ms per step)" if len(times) == 2 else ""


def _ratio(decision: Decision) -> str:
    """Return the ratio and its quantity; "" if nothing is compared."""
    estimate, both = decision.estimate, decision.matched.comparable_sides
    if estimate is None or both is None:
        return ""
    text = f"{both[0].key.metric} ratio {estimate.ratio:.3f}"
    if estimate.interval:
        text += " [{:.3f} .. {:.3f}]".format(*estimate.interval)
    text += _step_times(decision)
    if estimate.pairs:
        return f"{text}, {estimate.pairs} pairs"
    return f"{text}, {len(both[0].values)} and {len(both[1].values)} repeats"
