"""What the cells of Markdown tables are made of."""

from __future__ import annotations

import re
from collections.abc import Iterable

MISSING = "-"


class Footnotes:
    """Reasons, numbered in the order of their first use, each once."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def mark(self, text: str) -> str:
        """ " [3]" for a reason, "" for none."""
        if not text:
            return ""
        return f" [{self._numbers.setdefault(text, len(self._numbers) + 1)}]"

    def numbered(self) -> list[tuple[int, str]]:
        """Each reason with its number."""
        return [(number, text) for text, number in self._numbers.items()]

    def lines(self) -> list[str]:
        # With a bracket that is none: else it would be the address of a link, and not be shown.
        return [f"\\[{number}]: {escape(text)}" for text, number in self._numbers.items()]


def grid(header: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    """A Markdown table; cells must be escaped already."""
    header = list(header)
    return [
        f"| {' | '.join(header)} |",
        f"|{'|'.join('---' for _ in header)}|",
        *(f"| {' | '.join(row)} |" for row in rows),
    ]


def escape(text: str) -> str:
    """Any text in one cell of one line, with no link, image or code in it: reasons come from
    foreign programs."""
    plain = re.sub(r"([\\`*\[\]|])", r"\\\1", " ".join(text.split()))
    return plain.replace("&", "&amp;").replace("<", "&lt;")
