"""Table of the keys of a model of the configuration."""

from __future__ import annotations

from typing import NamedTuple


class KeyTable(NamedTuple):
    """Table of a model's keys. The first cell of a row names its keys, separated by commas; the
    last cell is the description."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def descriptions(self) -> dict[str, str]:
        """Return the description of each key."""
        return {key: row[-1] for row in self.rows for key in row[0].split(", ")}

    def markdown(self) -> str:
        """Return the table as Markdown."""
        rows = [(f"`{row[0].replace(', ', '`, `')}`", *row[1:]) for row in self.rows]
        lines = [self.header, ("---",) * len(self.header), *rows]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines).replace("| --- ", "|---")
