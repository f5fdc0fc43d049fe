"""Units and directions of SuperBench's metrics, from its documentation.

Source: docs/user-tutorial/benchmarks of SuperBench v0.4.0 to v0.12.0. Where versions disagree
(cpu-memory-bw-latency) the newest counts, because it corrects the others. Megatron-GPT's memory is
in GiB, which its documentation calls GB: DeepSpeed divides by 2**30. Values keep SuperBench's
units, in which its rules and baselines are."""

from __future__ import annotations

import csv
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

from core import bounded

_TABLE = Path(__file__).with_suffix(".csv")
#: Parts of metrics that the table names in angle brackets.
_PARTS = {
    "PRECISION": r"(?P<precision>(?:float|bfloat|fp|bf|tf|int)\d+(?:_hybrid|_e\dm\d)?)",
    "STAT": r"(min|max|avg|avg\(worst\)|99%|99\.9%)",
    "TAIL": r"(_(50|90|95|99|99\.9))?",
}

#: Exit code of every benchmark; 0 is success.
RETURN_CODE = "return_code"


class Meaning(NamedTuple):
    """Unit of a metric, and whether higher or lower is better; "" for a setting among the results.

    ``precision``, ``mode``, ``what``: parts of the metric's name for model benchmarks, else ""."""

    unit: str
    better: str
    precision: str = ""
    mode: str = ""
    what: str = ""


@cache
def _table() -> list[tuple[re.Pattern[str], re.Pattern[str], str, str]]:
    """Return benchmark (without annotation), metric (without rank), unit and direction of all
    metrics. Both expressions match in full; the first match counts."""
    _, *rows = csv.reader(bounded.read_text(_TABLE).splitlines())
    return [
        (re.compile(text), re.compile(re.sub("<([A-Z]+)>", _part, metric)), unit, better)
        for text, metric, unit, better in rows
    ]


def _part(name: re.Match[str]) -> str:
    return _PARTS[name[1]]


def meaning_of(benchmark: str, metric: str) -> Meaning | None:
    """Return unit and direction of a metric; None if it is not documented.

    ``benchmark`` has no annotation, ``metric`` no rank."""
    for benchmarks, metrics, unit, better in _table():
        match = metrics.fullmatch(metric) if benchmarks.fullmatch(benchmark) else None
        if match:
            return Meaning(unit, better, **match.groupdict())
    return None
