"""Memory limits of runs, in bytes or in percent of the available memory."""

from __future__ import annotations

import re
from typing import NamedTuple

_UNITS = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_LIMIT = re.compile(r"([0-9]+(?:[.][0-9]+)?)(%|KiB|MiB|GiB|TiB)")


class Limit(NamedTuple):
    """Memory limit of ``number`` bytes, or percent of the total."""

    number: float
    is_percent: bool

    def bytes_of(self, total: int) -> int:
        """Return the limit in bytes, of ``total`` bytes."""
        return int(total * self.number / 100 if self.is_percent else self.number)

    def part(self, share: float) -> Limit:
        """Return a ``share`` of the limit."""
        return self._replace(number=share * self.number)

    def __str__(self) -> str:
        """Return the text of which :func:`parse_limit` makes the limit."""
        return f"{self.number:.6f}%" if self.is_percent else f"{self.number / 2**20:.6f}MiB"


def parse_limit(text: str) -> Limit:
    """Parse ``80%`` or ``16GiB``. Raises ValueError for anything else."""
    match = _LIMIT.fullmatch(text)
    number = float(match.group(1)) if match else 0.0
    if not match or number <= 0 or (match.group(2) == "%" and number > 100):
        raise ValueError(f"must be like 16GiB, or a share of up to 100%, not {text!r}")
    unit = match.group(2)
    return Limit(number * _UNITS.get(unit, 1), unit == "%")
