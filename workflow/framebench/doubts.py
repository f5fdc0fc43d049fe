"""What a record tells against the figure in it, judged from its raw samples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from . import disturbance, steady
from .run import Doubt


def of(record: Mapping[str, Any], steps: Sequence[float]) -> tuple[Doubt, ...]:
    """All doubts about an ok record; ``steps``: seconds of the timed steps of its slowest rank."""
    return (*_unsteady(record, steps), *_disturbed(record))


def _unsteady(record: Mapping[str, Any], steps: Sequence[float]) -> Iterator[Doubt]:
    limit = record["settings"].get("warmup_limit")
    if limit and any(rank.get("settled_after") is None for rank in record["ranks"]):
        yield Doubt("unsteady", f"the step time had not settled after {limit} steps of warm-up")
    if why := steady.unsteady(steps):
        yield Doubt("unsteady", why)


def _disturbed(record: Mapping[str, Any]) -> Iterator[Doubt]:
    if why := disturbance.disturbed(record.get("watch")):
        yield Doubt(disturbance.MARK, why)
