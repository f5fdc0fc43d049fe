"""How a run can end: declared here, and nowhere else spelled out but in the record's schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

OK = "ok"


class Failure(NamedTuple):
    """An end that leaves no figure. ``words``: in the place of a number; ``told``: of runs, behind
    how many there are; ``in_junit``: the element that it is there."""

    words: str
    told: str
    in_junit: str


#: In the order in which they tell most of a case whose repeats ended in several ways.
FAILURES: Mapping[str, Failure] = {
    "oom": Failure("out of memory", "out of memory", "failure"),
    "unsupported": Failure("unsupported", "unsupported", "skipped"),
    "timeout": Failure("over the time limit", "timed out", "failure"),
    "failed": Failure("failed", "failed", "error"),
    "not_converged": Failure("not converged", "not converged", "failure"),
}
STATUSES = (OK, *FAILURES)
#: In which people are told of them: what is wrong first, what was never to be had last.
FOR_PEOPLE = (OK, "failed", "oom", "timeout", "not_converged", "unsupported")
