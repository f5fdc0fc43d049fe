"""Gate decisions: whether a candidate passes against a base, case by case and overall.

1. Cases and pairs are matched as in a comparison (:func:`compare.match`). With fewer pairs than can
   show a single difference, each side is a set.
2. ``regression``: the case is shown to be slower by more than the margin. The p-value is adjusted
   for the number of cases: at most 2.5 % of calls report any false regression
   (:func:`intervals.family_wise`).
3. ``within the margin``: the case is shown not to be slower; its whole 95 % interval lies above 1 -
   margin.
4. ``broken``: the base has a figure, and the candidate has none or fails the verification that the
   base passes.
5. ``cannot tell``: none of these. The estimated number of additional pairs decides it with a
   probability of 80 %.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from ...comparison import compare
from ...records.verified import FAILED
from ...statistics import intervals, margins, signed_rank
from ...statistics.verdicts import CANNOT_TELL
from ...tables import frames, matched, measured, pairs
from ...tables.columns import (
    CASE_COLUMNS,
    COUNT,
    NUMBER,
    P_VALUE,
    TEXT,
    THOUSANDTHS,
    WHOLE,
    Column,
    Form,
    Row,
    shared,
)
from ...tables.matched import Estimate, Matched
from ...tables.results import CaseResult, CaseResults
from ...tables.table import Table

REGRESSION, WITHIN, BROKEN = "regression", "within the margin", "broken"
#: Verdict on a case that only one side has, or that has no figure in the base.
NOT_COMPARED = "not compared"
VERDICT = Form(
    looks={
        WITHIN: "ok",
        REGRESSION: "failed",
        BROKEN: "failed",
        CANNOT_TELL: "unsupported",
        NOT_COMPARED: "unsupported",
    }
)
#: Exit statuses. 2 is the status of a shell or of Snakemake for invalid arguments.
PASSED, REGRESSED, OPEN, FAULTY = 0, 1, 3, 4

TABLE = Table(
    name="gate",
    title="Gate",
    explanation="Candidate over base, or base over candidate for a metric of which less is better, "
    "so that above 1 is better. A case is a regression where it is shown to be slower by more than "
    "the margin, within the margin where it is shown not to be, and else it cannot be told.",
    columns=(
        *CASE_COLUMNS,
        measured.PARAMETERS,
        measured.METRIC,
        *compare.SIDES,
        Column("limit", NUMBER, "1 - margin", form=THOUSANDTHS, hoisted=True),
        Column(
            "p_beyond", NUMBER, "one-sided p-value that it is slower by more than the margin, "
            "adjusted for the number of cases (Holm)", form=P_VALUE,
        ),
        Column(
            "p_within", NUMBER, "one-sided p-value that it is not, which needs no adjustment",
            form=P_VALUE,
        ),
        Column(
            "verdict", TEXT,
            "`regression`, `within the margin`, `broken`, `cannot tell` or `not compared`",
            form=VERDICT,
        ),
        Column("pairs", WHOLE, "pairs that were compared; 0 where each side was a set"),
        Column("base_repeats", WHOLE, "ok repeats of the base"),
        Column("candidate_repeats", WHOLE, "ok repeats of the candidate"),
        Column(
            "pairs_needed", COUNT, "of a case that cannot be told: pairs in all that decide it "
            "with a chance of 80 %, if the ratio is what it seems to be",
        ),
        Column("order", TEXT, "in which both sides were measured", hoisted=True),
        *shared("reason"),
        Column("differences", TEXT, "what besides is not the same on both sides", note=True),
        *shared("marks"),
    ),
    empty="Neither side has a case.",
    sectioned=True,
)  # fmt: skip


@dataclass(frozen=True)
class Decision:
    """Decision about one case. ``claims``: with ``beyond`` adjusted; None if nothing is compared.
    ``needed``: pairs that decide an undecided case; None if no number would."""

    matched: Matched
    estimate: Estimate | None
    claims: margins.Claims | None
    verdict: str
    reason: str
    needed: int | None


def decide(base: CaseResults, candidate: CaseResults, margin: float) -> list[Decision]:
    """Decide about every case of either side. ``margin``: a fraction."""
    cases = list(compare.match(base, candidate))
    compared = [one for one in cases if one.both and not _broken(one)]
    count = len(compared)
    estimates = {id(one): matched.estimate(*_sides(one), count) for one in compared}
    claims = {id(one): _claims(one, estimates[id(one)], margin) for one in compared}
    adjusted = intervals.family_wise([one.beyond for one in claims.values()])
    claims = {
        name: one._replace(beyond=p)
        for (name, one), p in zip(claims.items(), adjusted, strict=True)
    }
    return [
        _decision(one, estimates.get(id(one)), claims.get(id(one)), margin, count) for one in cases
    ]


def frame(decisions: Sequence[Decision], margin: float) -> pd.DataFrame:
    """Return a table row for each decision; nothing is rounded."""
    return frames.frame(TABLE, [_row(one, margin) for one in decisions])


def counted(decisions: Sequence[Decision]) -> Mapping[str, list[Decision]]:
    """Group decisions by verdict."""
    names = (BROKEN, REGRESSION, CANNOT_TELL, WITHIN, NOT_COMPARED)
    return {name: [one for one in decisions if one.verdict == name] for name in names}


def status(decisions: Sequence[Decision]) -> int:
    """Return the exit status; precedence: regression, then broken, then undecided."""
    found = counted(decisions)
    if found[REGRESSION]:
        return REGRESSED
    if found[BROKEN]:
        return FAULTY
    return PASSED if found[WITHIN] and not found[CANNOT_TELL] else OPEN


def _sides(matched: Matched) -> tuple[CaseResult, CaseResult]:
    assert matched.both is not None, "asked for only where there are both"
    return matched.both


def _ordered(matched: Matched) -> tuple[CaseResult, CaseResult]:
    """Return both sides so that a larger ratio of the second to the first is better."""
    base, candidate = _sides(matched)
    return (base, candidate) if base.better == "higher" else (candidate, base)


def _broken(matched: Matched) -> str:
    """Return the fault of a candidate whose base has none; "" if there is none."""
    base, candidate = matched.base, matched.candidate
    if base is None or base.throughput is None:
        return ""
    if candidate is None:
        return "the candidate has no run of it"
    if candidate.throughput is None:
        return f"the candidate is {candidate.status}: {candidate.reason}"
    if FAILED in candidate.marks - base.marks:
        return "the candidate's computation differs from the reference: see the verification table"
    return ""


def _claims(matched: Matched, estimate: Estimate, margin: float) -> margins.Claims:
    below, above = _ordered(matched)
    if estimate.pairs:
        ratios = pairs.ratios(below.ok, above.ok, below.key.metric)
        return margins.of_pairs(ratios, margin)
    return margins.of_sets(below.values, above.values, margin)


def _decision(
    matched: Matched,
    estimate: Estimate | None,
    claims: margins.Claims | None,
    margin: float,
    cases: int,
) -> Decision:
    if wrong := _broken(matched):
        return Decision(matched, None, None, BROKEN, wrong, None)
    if estimate is None or claims is None:
        return Decision(matched, None, None, NOT_COMPARED, _why_not(matched), None)
    if estimate.interval and claims.beyond <= margins.LEVEL:
        return Decision(matched, estimate, claims, REGRESSION, "", None)
    if estimate.interval and claims.within <= margins.LEVEL:
        return Decision(matched, estimate, claims, WITHIN, "", None)
    needed = _needed(matched, estimate, margin, cases)
    if needed is None:
        reason = f"more than {margins.MOST} pairs would be needed: the ratio is too near the limit"
    else:
        reason = f"about {needed} pairs would tell"
    return Decision(matched, estimate, claims, CANNOT_TELL, reason, needed)


def _needed(matched: Matched, estimate: Estimate, margin: float, cases: int) -> int | None:
    """Return the pairs expected to decide a case, above their present number; None if none is."""
    below, above = _ordered(matched)
    if estimate.pairs:
        there = estimate.pairs
        ratios = pairs.ratios(below.ok, above.ok, below.key.metric)
        scatter = margins.scatter_of_pairs(ratios)
    else:
        there = min(len(below.values), len(above.values))
        scatter = margins.scatter_of_sets(below.values, above.values)
    fewest = signed_rank.pairs_needed(cases)
    if there < 2:  # no scatter is known
        return fewest
    found = margins.needed(estimate.ratio, scatter, margin, cases)
    return None if found is None else max(found, fewest, there + 1)


def _why_not(matched: Matched) -> str:
    for name, case in (("base", matched.base), ("candidate", matched.candidate)):
        if case is None:
            return f"not in the {name}"
        if case.throughput is None:
            return f"the {name} is {case.status}: {case.reason}"
    return "a ratio needs figures above 0"


def _row(decision: Decision, margin: float) -> Row:
    matched, estimate = decision.matched, decision.estimate
    case = matched.base or matched.candidate
    assert case is not None
    claims = decision.claims
    return {
        **compare.side_cells(matched, estimate),
        measured.PARAMETERS.name: measured.parameters_text(case.case),
        "limit": 1 - margin,
        "p_beyond": claims and claims.beyond,
        "p_within": claims and claims.within,
        "verdict": decision.verdict,
        "pairs_needed": decision.needed,
        "reason": decision.reason,
    }
