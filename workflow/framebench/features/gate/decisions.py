"""Gate decisions: whether a candidate passes against a base, case by case and overall.

1. Cases and pairs are matched as in a comparison (:func:`comparison.match`). Measured pairs are
   decided at fixed looks (:mod:`statistics.sequential`), by which they were measured. The number of
   pairs among given records was fixed before; with fewer than can show a single difference, each
   side is a set.
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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from ... import comparison
from ...records.run import measuring_order, paired_ratios
from ...statistics import intervals, sequential
from ...statistics.sequential import Bounds
from ...statistics.verdicts import CANNOT_TELL
from ...tables import measured
from ...tables.columns import Row
from ...tables.ratios import Estimate, Matched
from ...tables.results import CaseResult, CaseResults
from ...tables.table import tables_in

REGRESSION, WITHIN, BROKEN = "regression", "within the margin", "broken"
#: Verdict on a case that one side lacks, or that has no figure in the base.
NOT_COMPARED = "not compared"
#: Exit statuses. 2 is the status of a shell or of Snakemake for invalid arguments.
PASSED, REGRESSED, OPEN, FAULTY = 0, 1, 3, 4

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


def frame(decisions: Sequence[Decision], margin: float) -> pd.DataFrame:
    """Return a table row for each decision; nothing is rounded."""
    return TABLE.frame([_row(decision, margin) for decision in decisions])


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
    """Return the fault of a candidate without a figure; "" if it has one, or none is expected."""
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
    reason = f"{repeats} repeats of both sides do not decide"
    return Decision(matched, bounds, CANNOT_TELL, reason, sequential.next_look(repeats))


def _why_not(matched: Matched) -> str:
    for name, case in (("base", matched.base), ("candidate", matched.candidate)):
        if case is None:
            return f"not in the {name}"
        if case.compared is None:
            return f"the {name} is {case.why_not_compared}"
    return matched.why_no_ratio


def _row(decision: Decision, margin: float) -> Row:
    matched, bounds = decision.matched, decision.bounds
    return {
        **comparison.side_cells(matched, decision.estimate),
        "parameters": measured.parameters_text(matched.either.case),
        "limit": 1 - margin,
        "ratio_upper": bounds and bounds.upper,
        "verdict": decision.verdict,
        "reason": decision.reason,
    }
