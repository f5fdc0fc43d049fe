"""The jobs that a call waits for, known by their wildcards."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from ..plan.forecast import Task

#: What one and several of each kind are called, in the order of the status line.
NOUNS = {
    "run": ("run", "runs"),
    "search": ("largest batch", "largest batches"),
    "environment": ("environment", "environments"),
    "probe": ("probe", "probes"),
    "reference": ("reference", "references"),
    "comparison": ("certificate", "certificates"),
    "tables": ("report", "reports"),
}

#: The wildcards that a job of a kind has, the telling one first; the last that fits is meant.
_WILDCARDS = {
    "environment": ("name", "digest"),
    "reference": ("digest", "reference"),
    "run": ("run", "framework", "model", "case"),
    "search": ("search", "framework", "model"),
    "comparison": ("comparison", "framework", "reference"),
    "probe": ("probe", "framework"),
}


class Awaited(NamedTuple):
    """A job. ``label``: for people; ``record``: what it leaves, None where that says nothing of
    how it went; ``log``: of the job."""

    task: Task
    kind: str
    label: str
    record: Path | None = None
    log: Path | None = None


def count_of(number: int, kind: str, done: int | None = None) -> str:
    """``84 runs``, or ``12/84 runs``."""
    noun = NOUNS[kind][number != 1]
    return f"{number} {noun}" if done is None else f"{done}/{number} {noun}"


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
