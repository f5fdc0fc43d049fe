"""Tasks that a call waits for: a name, a kind and expected seconds for each job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

#: The wildcards that a job of a kind has, the telling one first; the last that fits is meant.
_WILDCARDS = {
    "environment": ("name", "digest"),
    "reference": ("digest", "reference"),
    "run": ("run", "framework", "model", "case"),
    "search": ("search", "framework", "model"),
    "comparison": ("comparison", "framework", "reference"),
    "probe": ("probe", "framework"),
}


class Task(NamedTuple):
    """Something to wait for. ``case``: shared by its repeats; ``seconds``: expected;
    ``is_measured``: ``seconds`` are those of records of its case."""

    name: str
    kind: str
    case: str
    seconds: float
    is_measured: bool = False


def name_of(wildcards: Mapping[str, str], rule: str) -> str:
    """The name of a job's task: its kind and wildcards, or its rule where it has none."""
    kind = kind_of(wildcards)
    if not kind:
        return rule
    return "/".join([kind, *(wildcards[name] for name in sorted(_WILDCARDS[kind]))])


def kind_of(wildcards: Mapping[str, str]) -> str:
    """ "" for a job that is none of ours, or has no wildcards."""
    names = set(wildcards)
    return next((kind for kind, own in _WILDCARDS.items() if names == set(own)), "")
