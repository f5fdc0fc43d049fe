"""What a record tells against the figure in it, judged from its raw samples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from . import steady
from .run import Doubt


def of(record: Mapping[str, Any], steps: Sequence[float]) -> tuple[Doubt, ...]:
    """All doubts about an ok record; ``steps``: seconds of the timed steps of its slowest rank."""
    return tuple(_unsteady(record, steps))


def _unsteady(record: Mapping[str, Any], steps: Sequence[float]) -> Iterator[Doubt]:
    if why := steady.unsteady(steps):
        yield Doubt("unsteady", why)
