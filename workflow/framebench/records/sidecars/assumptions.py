"""Assumptions for costs, emissions and equivalence: node price, grid intensity, score margin.

Kept in ``assumptions.json`` in the results, with the latest values.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

from ...files import json_files
from ...files.whole_files import write_whole
from ..run import Problem, cause

FILE = "assumptions.json"


class Assumptions(NamedTuple):
    """Assumed quantities; None for those that are not assumed.

    ``price_per_hour``: of a node, in ``currency`` (ISO 4217); ``grid_intensity``: g CO2e per kWh;
    ``pue``: energy of the computing centre over that of its computers (power usage effectiveness,
    ISO/IEC 30134-2); ``equivalence_margin``: difference up to which scores from 0 to 1 count as
    equal.
    """

    price_per_hour: float | None = None
    currency: str = ""
    grid_intensity: float | None = None
    pue: float = 1.0
    equivalence_margin: float | None = None

    @property
    def has_costs(self) -> bool:
        """Return whether money or emissions can be computed."""
        return self.price_per_hour is not None or self.grid_intensity is not None


NONE = Assumptions()
_OF_COSTS = ("price_per_hour", "currency", "grid_intensity", "pue")


def load(results: Path) -> tuple[Assumptions, list[Problem]]:
    """Return the stored assumptions; NONE with a problem if the file is invalid, NONE without a
    file."""
    try:
        content = json_files.read(results / FILE)
        price, currency, intensity, pue = (content[name] for name in _OF_COSTS)
        margin = content.get("equivalence_margin")
        numbers = [entry for entry in (price, intensity, pue, margin) if entry is not None]
        if not isinstance(currency, str) or not all(
            type(number) in (int, float) for number in numbers
        ):
            raise ValueError("is not a file that Framebench wrote")
        return Assumptions(price, currency, intensity, pue, margin), []
    except FileNotFoundError:
        return NONE, []
    except (KeyError, TypeError):
        return NONE, [Problem(FILE, "is not a file that Framebench wrote")]
    except (OSError, ValueError) as error:
        return NONE, [Problem(FILE, cause(error))]


def keep(results: Path, assumptions: Assumptions) -> None:
    """Write changed assumptions; those that are not given keep their stored value. Raises
    OSError."""
    kept, _ = load(results)
    wanted = assumptions if assumptions.has_costs else kept
    margin = assumptions.equivalence_margin or kept.equivalence_margin
    wanted = wanted._replace(equivalence_margin=margin)
    if wanted != kept:
        write_whole(results / FILE, json.dumps(wanted._asdict(), indent=1) + "\n")
