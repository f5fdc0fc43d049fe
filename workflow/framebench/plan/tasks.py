"""What a call waits for, job by job: how it is named, what it is like, what it is expected to
take."""

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


class Traits(NamedTuple):
    """What a task may have in common with others, "" where it has nothing of it. ``devices``: as
    ``1n2g``; ``case``: its own, which only its repeats share."""

    kind: str
    framework: str = ""
    model: str = ""
    mode: str = ""
    precision: str = ""
    compiler: str = ""
    devices: str = ""
    case: str = ""


class Guess(NamedTuple):
    """Seconds: ``start``, until a framework has started, built and compiled, and whatever else does
    not grow with the operations; ``work``, what does."""

    start: float
    work: float = 0.0

    @property
    def seconds(self) -> float:
        return self.start + self.work

    def of(self, seconds: float) -> Guess:
        """So many seconds, with the same share of either."""
        factor = seconds / self.seconds
        return Guess(self.start * factor, self.work * factor)


class Task(NamedTuple):
    """Something to wait for. ``is_measured``: that much is expected because its case took as long
    before."""

    name: str
    traits: Traits
    guess: Guess
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
