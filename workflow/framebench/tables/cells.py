"""A cell as people see it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Cell:
    """``kind``: its CSS class, which says what it is. ``sort``: what it sorts by where that is not
    its text. ``why``: why there is no figure. ``marks``: the quality flags of the figure."""

    text: str
    kind: str = ""
    sort: str | None = None
    why: str = ""
    marks: str = ""

    @property
    def is_missing(self) -> bool:
        return self.kind.endswith("missing")
