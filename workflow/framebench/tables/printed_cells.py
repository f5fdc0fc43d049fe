"""Cells of published tables, with lint's findings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Printed:
    """A cell of a published table.

    ``cell``: row of published.csv by column. ``findings``: contradictions; () for none."""

    cell: Mapping[str, str]
    findings: tuple[str, ...] = ()
