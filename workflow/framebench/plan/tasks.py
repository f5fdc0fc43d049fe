"""Tasks of a call: a name, a kind and expected seconds for each job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

#: Wildcards of a job by kind of task.
_WILDCARDS = {
    "environment": ("name", "digest"),
    "reference": ("digest", "reference"),
    "run": ("run", "framework", "model", "case"),
    "search": ("search", "framework", "model"),
    "comparison": ("comparison", "framework", "reference"),
    "probe": ("probe", "framework"),
}


class PendingTask(NamedTuple):
    """A pending task. ``case``: shared by its repeats; ``seconds``: expected; ``is_measured``:
    ``seconds`` come from records of its case."""

    name: str
    kind: str
    case: str
    seconds: float
    is_measured: bool = False


def name_of(wildcards: Mapping[str, str], rule: str) -> str:
    """Return the name of a job's task: its kind and wildcards, or its rule if it has no kind."""
    kind = kind_of(wildcards)
    if not kind:
        return rule
    return "/".join([kind, *(wildcards[name] for name in sorted(_WILDCARDS[kind]))])


def kind_of(wildcards: Mapping[str, str]) -> str:
    """Return the kind of a job's task; "" for a job without a known set of wildcards."""
    names = set(wildcards)
    return next((kind for kind, own in _WILDCARDS.items() if names == set(own)), "")
