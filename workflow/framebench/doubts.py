"""What a record tells against the figure in it, besides its step times (see `cases.doubts_of`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from . import disturbance
from .run import Doubt


def of(record: Mapping[str, Any]) -> tuple[Doubt, ...]:
    """All such doubts about an ok record."""
    return (*_never_settled(record), *_disturbed(record))


def _never_settled(record: Mapping[str, Any]) -> Iterator[Doubt]:
    limit = record["settings"].get("warmup_limit")
    if limit and any(rank.get("settled_after") is None for rank in record["ranks"]):
        yield Doubt("unsteady", f"the step time had not settled after {limit} steps of warm-up")


def _disturbed(record: Mapping[str, Any]) -> Iterator[Doubt]:
    if why := disturbance.disturbed(record):
        yield Doubt(disturbance.MARK, why)
