"""Cells, footnotes and grids of Markdown tables."""

from __future__ import annotations

import re
from collections.abc import Iterable

MISSING = "-"


class Footnotes:
    """Footnotes with reasons, numbered by first use, each once."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def mark(self, text: str) -> str:
        """Return the footnote mark of a reason, " [3]"; "" for no text."""
        if not text:
            return ""
        return f" [{self._numbers.setdefault(text, len(self._numbers) + 1)}]"

    def numbered(self) -> list[tuple[int, str]]:
        """Return each reason with its number."""
        return [(number, text) for text, number in self._numbers.items()]

    def lines(self) -> list[str]:
        # An escaped bracket, because "[3]:" would be a hidden link definition.
        return [f"\\[{number}]: {escape(text)}" for text, number in self._numbers.items()]


def grid(header: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    """Return a Markdown table. Cells must be escaped."""
    header = list(header)
    return [
        f"| {' | '.join(header)} |",
        f"|{'|'.join('---' for _ in header)}|",
        *(f"| {' | '.join(row)} |" for row in rows),
    ]


def escape(text: str) -> str:
    """Return text safe for one cell: one line, without links, images or code.

    Reasons come from foreign programs."""
    plain = re.sub(r"([\\`*\[\]|])", r"\\\1", " ".join(text.split()))
    return plain.replace("&", "&amp;").replace("<", "&lt;")
