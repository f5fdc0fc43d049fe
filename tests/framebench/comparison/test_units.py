"""Sets whose figures differ in unit only are compared in one unit, or the units are named."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path

import pytest
from framebench import cli
from framebench.comparison import compare
from framebench.features.gate import decisions
from framebench.records.run import MetricValue
from framebench.tables import grouping
from framebench.tables.results import CaseResults

from ..made_up_records import record_of
from ..made_up_runs import measured
from ..made_up_verifications import CASE
from ..table_rows import rows_of


def figures(unit: str, factor: float) -> CaseResults:
    """Return a micro-benchmark of eight repeats around 0.2 s."""
    values = [factor * 0.2 * (1 + n / 1e3) for n in range(8)]
    runs = [measured("launch", [MetricValue("latency", value, unit, "lower")]) for value in values]
    return grouping.group([replace(run, repeat=n) for n, run in enumerate(runs, 1)], None)


@pytest.mark.parametrize(
    ("unit", "factor"), [("ms", 1e3), ("us", 1e6), ("sec", 1.0), ("µs", 1e6), ("s", 1.0)]
)
def test_figures_are_converted_to_the_unit_of_the_base(unit: str, factor: float) -> None:
    base, candidate = figures("s", 1.0), figures(unit, factor)
    (row,) = compare.compare(base, candidate).itertuples()
    assert (row.unit, row.reason, row.verdict) == ("s", "", "no difference shown")
    assert row.candidate_median == pytest.approx(row.base_median)
    (decision,) = decisions.decide(base, candidate, 0.05)
    assert decision.verdict == "within the margin"


def test_units_of_other_quantities_are_named() -> None:
    (row,) = compare.compare(figures("s", 1.0), figures("GB/s", 1.0)).itertuples()
    assert (row.verdict, row.reason) == ("cannot tell", "the units differ: s and GB/s")
    (decision,) = decisions.decide(figures("s", 1.0), figures("GB/s", 1.0), 0.05)
    assert decision.reason == "the units differ: s and GB/s"


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
