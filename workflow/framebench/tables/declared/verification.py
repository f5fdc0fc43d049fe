"""Verification results as a table, an overview and text for a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from ...records.verifications import (
    DIFFERS,
    FULL,
    HARD,
    IN_OTHER_DTYPES,
    NOT_MADE,
    PARTLY,
    PASSED,
    UNSUPPORTED,
    VerificationResult,
    latest,
)
from ..columns import GROUPS, Row
from ..table import Inputs, Table, declared_table

#: Columns of a verified case.
_SUBJECT = (
    *("framework", "framework_version", "model", "mode", "precision", "compiler"),
    *GROUPS["axes"],
    "devices",
)


def rows(inputs: Inputs) -> Iterator[Row]:
    """Yield a row per quantity of each latest verification.

    A verification without comparison has one row without error."""
    for verification in latest(inputs.verification_results):
        yield from _rows(verification)


def _rows(verification: VerificationResult) -> Iterator[Row]:
    case = verification.case
    subject = {
        **{name: getattr(case, name) for name in _SUBJECT},
        "accelerator": verification.accelerator,
        "suite_variant": case.variant,
        "variables": verification.variables_text,
        "scale": verification.scale + (", soft labels" if verification.labels != HARD else ""),
        "status": verification.status,
        "reason": verification.reason,
    }
    if not verification.errors:
        nothing = {"quantity": "", "error": None, "rounding": None, "bound": None, "where": ""}
        yield {**subject, **nothing, "passed": None}
    for error in verification.errors:
        yield {**subject, **error._asdict(), "passed": not error.excess}


def overview(rows: Sequence[Row]) -> Iterator[Row]:
    """Yield a row per verification with its errors, verdict and reason.

    Runs of one case, with and without dropout, share a row."""
    parts: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        parts.setdefault(tuple(row[name] for name in VERIFICATION.keys), []).append(row)
    for part in parts.values():
        errors = {row["quantity"]: row["error"] for row in part}
        failed = [row for row in part if row["passed"] is False]
        differing = [row for row in failed if row["quantity"] not in IN_OTHER_DTYPES]
        verdict = DIFFERS if differing else PARTLY if failed else PASSED
        ended = [row for row in part if row["status"] != "ok"]
        if not failed and (not_made := [row for row in ended if row["status"] != UNSUPPORTED]):
            verdict, failed = NOT_MADE, not_made
        elif len(ended) == len(part):
            verdict, failed = UNSUPPORTED, part
        reason = "; ".join(map(_why, failed))
        quantities = ("outputs", "loss", "gradients", "losses", "dropout")
        yield {
            **{name: part[0][name] for name in VERIFICATION.keys},
            **{name: errors.get(name) for name in quantities},
            "verdict": verdict,
            "reason": reason,
        }


def _why(row: Row) -> str:
    if not row["quantity"]:
        return str(row["reason"])
    error = "inf" if row["error"] is None else f"{row['error']:.2g}"
    if row["rounding"]:
        error += f" less {row['rounding']:.2g} by rounding"
    return f"{row['quantity']} {error}, at most {row['bound']:.2g} {row['where']}".rstrip()


def summary_text(verification_results: Sequence[VerificationResult]) -> str:
    """Return a line per verification and a last line with counts of the verdicts."""
    lines = []
    for verification in verification_results:
        case = verification.case
        details = [f"{case.devices} device(s)", *["with dropout"] * verification.dropout]
        details += [f"length {case.sequence_length}"] if case.sequence_length else []
        details += [axis.text(getattr(case, axis.name)) for axis in case.differing()]
        details += [verification.scale] if verification.scale != FULL else []
        details += [" ".join(filter(None, (case.variant, verification.variables_text)))]
        (row,) = overview([*_rows(verification)])
        verdict = ": ".join(filter(None, [row["verdict"], row["reason"]]))
        what = f"{case.framework} {case.model} {case.mode} {case.precision} {case.compiler}"
        lines.append(f"{what}, {', '.join(filter(None, details))}: {verdict}")
    counted = Counter(verification.outcome for verification in verification_results)
    shown = {DIFFERS, UNSUPPORTED, *counted}
    parts = [f"{counted[PASSED]} of {len(verification_results)} passed"]
    parts += [f"{counted[name]} {name}" for name in (DIFFERS, PARTLY, NOT_MADE, UNSUPPORTED)
              if name in shown]  # fmt: skip
    lines.append("\n" + ", ".join(parts))
    return "\n".join(lines)


VERIFICATION: Table = declared_table(
    "verification", rows, overview=lambda rows: (VERIFICATION.shown, [*overview(rows)])
)
TABLES = (VERIFICATION,)
