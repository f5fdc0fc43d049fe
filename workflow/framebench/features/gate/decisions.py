"""Gate decisions: whether a candidate passes against a base, case by case and overall; and their
summary, a Markdown note for a pull request and JUnit XML.

1. Cases and pairs are matched as in a comparison (:func:`comparison.match`). Pairs measured by the
   gate are decided at the fixed looks (:mod:`statistics.sequential`) at which measuring may stop.
   Given records have a fixed number of pairs; if these are too few to show a single difference,
   each side is treated as a set of repeats.
2. ``regression``: the case is shown to be slower by more than the margin. The bound is adjusted for
   the number of cases: at most 2.5 % of calls report any false regression.
3. ``within the margin``: the case is shown not to be slower; its whole 95 % interval lies above 1 -
   margin. A set of cases passes if each does (Berger's intersection-union test), which needs no
   adjustment.
4. ``broken``: the candidate has no figure, or one that is excluded because its verification failed;
   unless the candidate alone has the case, or neither side supports it.
5. ``cannot tell``: none of these.

Sources:

- Schuirmann, "A Comparison of the Two One-Sided Tests Procedure and the Power Approach", *Journal
  of Pharmacokinetics and Biopharmaceutics* 15, 1987 (non-inferiority is one half of it).
- Berger, "Multiparameter Hypothesis Testing and Acceptance Sampling", *Technometrics* 24, 1982.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from core.text import printable

from ... import comparison
from ...records.run import ONE_AFTER_THE_OTHER, measuring_order, paired_ratios
from ...statistics import intervals, sequential
from ...statistics.descriptive import median
from ...statistics.sequential import Bounds
from ...statistics.verdicts import CANNOT_TELL
from ...tables import formatting, measured
from ...tables.columns import Row
from ...tables.formatting import escape
from ...tables.measured import figure_name
from ...tables.ratios import Estimate, Matched
from ...tables.results import CaseResult, CaseResults, flags_of
from ...tables.table import tables_in

REGRESSION, WITHIN, BROKEN = "regression", "within the margin", "broken"
#: Verdict on a case that one side lacks, or that has no figure in the base.
NOT_COMPARED = "not compared"
#: Exit statuses. 2 is the status of a shell or of Snakemake for invalid arguments.
PASSED, REGRESSED, OPEN, FAULTY = 0, 1, 3, 4
HEADINGS = {PASSED: "passed", REGRESSED: "regression", OPEN: "cannot tell yet", FAULTY: "broken"}
#: Largest number of cases that a note lists, and of characters of its lines.
NAMED, LONGEST = 3, 1200

TABLE = tables_in(Path(__file__).with_name("tables.yaml"), comparison.TABLE.columns)["gate"]


@dataclass(frozen=True)
class Decision:
    """Decision about one case. ``bounds``: bounds of the ratio; None if nothing is compared.
    ``next_look``: pairs after which an undecided case may be decided; None after the last look."""

    matched: Matched
    bounds: Bounds | None
    verdict: str
    reason: str = ""
    next_look: int | None = None

    @property
    def estimate(self) -> Estimate | None:
        """Estimate of the ratio, as in a comparison; None if nothing is compared."""
        if self.bounds is None or self.matched.comparable_sides is None:
            return None
        order = measuring_order(*(side.ok for side in self.matched.comparable_sides))
        return Estimate(self.bounds.ratio, self.bounds.interval, None, self.bounds.pairs, order)


def decide(
    base: CaseResults, candidate: CaseResults, margin: float, at_looks: bool = False
) -> list[Decision]:
    """Decide about every case of either side.

    ``margin``: a fraction; ``at_looks``: whether pairs were measured until they decide, instead of
    a fixed number.
    """
    cases = [(matched, _broken(matched)) for matched in comparison.match(base, candidate)]
    count = sum(matched.comparable_sides is not None and not wrong for matched, wrong in cases)
    decisions = []
    for matched, wrong in cases:
        if wrong:
            decisions.append(Decision(matched, None, BROKEN, wrong))
        elif matched.comparable_sides is None:
            decisions.append(Decision(matched, None, NOT_COMPARED, _why_not(matched)))
        else:
            decisions.append(_decision(matched, *matched.comparable_sides, margin, count, at_looks))
    return decisions


def counted(decisions: Sequence[Decision]) -> Mapping[str, list[Decision]]:
    """Group decisions by verdict."""
    names = (REGRESSION, BROKEN, CANNOT_TELL, WITHIN, NOT_COMPARED)
    return {
        name: [decision for decision in decisions if decision.verdict == name] for name in names
    }


def status(decisions: Sequence[Decision]) -> int:
    """Return the exit status; precedence: regression, then broken, then undecided."""
    counts = counted(decisions)
    if counts[REGRESSION]:
        return REGRESSED
    if counts[BROKEN]:
        return FAULTY
    return PASSED if counts[WITHIN] and not counts[CANNOT_TELL] else OPEN


def _broken(matched: Matched) -> str:
    """Return why a candidate is broken; "" if it has a figure, or none is expected."""
    base, candidate = matched.base, matched.candidate
    if base is None or (base.compared is None and candidate is None):
        return ""
    if candidate is None:
        return "the candidate has no run of it"
    if candidate.compared is not None or base.standing == candidate.standing == "unsupported":
        return ""
    return f"the candidate is {candidate.why_not_compared}"


def _decision(
    matched: Matched,
    base: CaseResult,
    candidate: CaseResult,
    margin: float,
    cases: int,
    at_looks: bool,
) -> Decision:
    below, above = (base, candidate) if base.better == "higher" else (candidate, base)
    ratios = paired_ratios(below.ok, above.ok, base.key.metric, base.key.point)
    if ratios and at_looks:
        bounds = sequential.bounds(ratios, margin, cases)
    elif len(ratios) >= intervals.pairs_needed(cases):
        bounds = sequential.fixed_bounds(ratios, cases)
    else:
        bounds = sequential.bounds_of_sets(below.values, above.values, cases)
    if bounds.is_beyond(margin):
        return Decision(matched, bounds, REGRESSION)
    if bounds.is_within(margin):
        return Decision(matched, bounds, WITHIN)
    repeats = min(len(below.values), len(above.values))
    reason = f"{repeats} repeats of each side do not decide"
    return Decision(matched, bounds, CANNOT_TELL, reason, sequential.next_look(repeats))


def _why_not(matched: Matched) -> str:
    for name, case in (("base", matched.base), ("candidate", matched.candidate)):
        if case is None:
            return f"not in the {name}"
        if case.compared is None:
            return f"the {name} is {case.why_not_compared}"
    return matched.why_no_ratio


def row(decision: Decision, margin: float) -> Row:
    """Return the cells of a decision; nothing is rounded."""
    matched, bounds = decision.matched, decision.bounds
    return {
        **comparison.side_cells(matched, decision.estimate),
        "parameters": measured.parameters_text(matched.either.case),
        "limit": 1 - margin,
        "ratio_upper": bounds and bounds.upper,
        "verdict": decision.verdict,
        "reason": decision.reason,
    }


def note(sides: str, status: int, lines: Sequence[str]) -> str:
    """Return a Markdown note with these lines; long ones are cut."""
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
    shown = [_counts(decisions), *_then(decisions, status)]
    for decision in worst[:NAMED]:
        figures = "; ".join(filter(None, (_ratio(decision), decision.reason)))
        name = figure_name(decision.matched.either.key)
        shown.append(f"- {decision.verdict}: {escape(name)}: {escape(figures)}")
    left = len(worst) - NAMED
    return [*shown, f"- and {left} more, see `tables/gate.md`"] if left > 0 else shown


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
