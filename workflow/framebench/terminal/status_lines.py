"""Terminal lines: a result, what was verified, and the progress of a call."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from core.text import clock, counted

from ..cases import names
from ..cases.conditions import THROUGHPUT
from ..records import verifications
from ..statistics.descriptive import median
from ..tables.formatting import figure
from .outcome import RunOutcome

#: Outcomes of verifications in words.
_OUTCOMES = {
    verifications.PASSED: "passed",
    verifications.DIFFERS: "failed",
    verifications.PARTLY: "partly in another precision",
    verifications.NOT_MADE: "could not be made",
    verifications.UNSUPPORTED: "not supported",
}


def result(seconds: float, label: str, outcome: RunOutcome, repeats: Sequence[float] = ()) -> str:
    """Return a result line: ``4:31  pytorch  ResNet-50 training  fp32  6.82 images/s``.
    Status and reason replace a missing figure. ``repeats``: figures of all repeats so far."""
    if outcome.figure is None:
        status = "cannot" if outcome.status == "unsupported" else outcome.status
        what = ": ".join(filter(None, [status, " ".join(outcome.reason.split())]))
    else:
        name = "" if outcome.metric == THROUGHPUT else f"{outcome.metric} "
        what = f"{name}{figure(outcome.figure)} {outcome.unit}"
        if len(repeats) > 1:
            what += f"  ({_ordinal(len(repeats))}; median {figure(median(repeats))})"
    return "  ".join([clock(seconds), label, what])


def environments(total: int, built: Sequence[str]) -> str:
    """Return the line on environments: ``Environments: 2 of 9 built (jax, mxnet)``."""
    which = f" ({', '.join(built)})" if 0 < len(built) < total else ""
    return f"Environments: {len(built)} of {total} built{which}"


def verified(paths: Iterable[Path]) -> str:
    """Return how many verifications passed, and which failed, by their new records; "" for none."""
    found = []
    for path in paths:
        try:
            found.append(verifications.read_result(path))
        except (OSError, ValueError):
            continue  # the report names the file
    counts = Counter(result.outcome for result in found)
    parts = [
        f"{counts[outcome]} {words}" for outcome, words in _OUTCOMES.items() if counts[outcome]
    ]
    failed = [
        f"{names.frameworks([result.case])[0]}, {names.workload(result.case)}, "
        f"{names.in_words(result.case.precision)}: {result.difference}"
        for result in found
        if result.outcome == verifications.DIFFERS
    ]
    text = f"Verified against the float64 reference: {', '.join(parts)}"
    return "; ".join([text, *failed]) if found else ""


def progress(seconds: float, budget: float | None, parts: Iterable[str], failed: int) -> str:
    """Return the status line: ``4:10 of 10:00 · leads settled: 1 of 3 · next: ..``."""
    used = clock(seconds) if budget is None else f"{clock(seconds)} of {clock(budget)}"
    shown = [used, *([f"{counted(failed, 'job')} failed"] if failed else []), *filter(None, parts)]
    return " \N{MIDDLE DOT} ".join(shown)


def _ordinal(number: int) -> str:
    """Return a number like ``2nd``."""
    teens = 10 < number % 100 < 14
    return f"{number}{'th' if teens else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"
