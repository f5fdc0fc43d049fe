"""A formatted table cell."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Cell:
    """A formatted cell.

    ``kind``: CSS classes. ``sort``: sort key, if it is not the text. ``why``: why there is no
    figure. ``marks``: flags of the figure."""

    text: str
    kind: str = ""
    sort: str | None = None
    why: str = ""
    marks: str = ""

    @property
    def is_missing(self) -> bool:
        return self.kind.endswith("missing")
