"""Gate and history convert figures that differ in unit only, or name the units."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from framebench import cli
from framebench.features.gate import decisions

from ..comparison.made_up_sides import launch_latencies
from ..made_up_records import record_of
from ..made_up_verifications import CASE
from ..table_rows import rows_of


@pytest.mark.parametrize(
    ("unit", "factor", "verdict", "reason"),
    [
        ("ms", 1e3, "within the margin", ""),
        ("GB/s", 1.0, "not compared", "the units differ: s and GB/s"),
    ],
)
def test_the_gate_converts_or_names_units(
    unit: str, factor: float, verdict: str, reason: str
) -> None:
    base, candidate = launch_latencies("s", 1.0), launch_latencies(unit, factor)
    (decision,) = decisions.decide(base, candidate, 0.05)
    assert (decision.verdict, decision.reason) == (verdict, reason)


def test_history_has_one_series_of_sets_with_other_units(tmp_path: Path) -> None:
    for name, unit in (("a", "sequences/s"), ("b", "seq/s")):
        record = record_of(random.Random(1), CASE, 1)
        record["metrics"]["throughput"]["unit"] = unit
        path = tmp_path / name / "runs" / "case" / "r1.json"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(record))
    sets = ["--sets", str(tmp_path / "a"), str(tmp_path / "b"), "--by", "name"]
    assert cli.main(["history", "--results", str(tmp_path), *sets]) == 0
    rows = rows_of(tmp_path, "history")
    assert [(row["position"], row["unit"]) for row in rows] == [
        ("1", "sequences/s"), ("2", "sequences/s"),
    ]  # fmt: skip
