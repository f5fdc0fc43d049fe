"""Cells of published tables, as tables take them in: what is printed, and what ``lint`` says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Printed:
    """``cell``: a row of published.csv, by column; ``findings``: why it cannot be right, in words;
    () where nothing contradicts it."""

    cell: Mapping[str, str]
    findings: tuple[str, ...] = ()
