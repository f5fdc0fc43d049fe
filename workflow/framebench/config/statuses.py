"""Statuses of a run, declared here and in the record's schema only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

OK = "ok"


class Failure(NamedTuple):
    """A status without a figure. ``words``: shown instead of a number, and after a number of runs;
    ``in_junit``: its JUnit element."""

    words: str
    in_junit: str


#: Failures by precedence: the first one describes a case whose repeats ended in several ways.
FAILURES: Mapping[str, Failure] = {
    "oom": Failure("out of memory", "failure"),
    "unsupported": Failure("unsupported", "skipped"),
    "timeout": Failure("timed out", "failure"),
    "failed": Failure("failed", "error"),
    "not_converged": Failure("not converged", "failure"),
}
STATUSES = (OK, *FAILURES)
#: Order of statuses for people: faults first, unsupported last.
FOR_PEOPLE = (OK, "failed", "oom", "timeout", "not_converged", "unsupported")
