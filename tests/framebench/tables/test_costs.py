"""Cost and emissions, by hand-computed numbers, and the assumptions behind them."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from framebench.commands import reporting
from framebench.config.validation import ConfigError
from framebench.records.sidecars import assumptions
from framebench.records.sidecars.assumptions import Assumptions
from framebench.statistics.intervals import median_interval
from framebench.tables import frames
from framebench.tables.declared.costs import COSTS
from framebench.tables.grouping import group
from framebench.tables.table import Inputs

from ..chartless import without_charts
from ..made_up_records import write_records
from ..made_up_runs import changed, repeats, run
from ..settings import settings
from ..table_rows import only

PRICED = Assumptions(3.6, "EUR")


def table(*runs: Any, assumed: Assumptions = PRICED) -> pd.DataFrame:
    inputs = Inputs(group(runs, None), assumptions=assumed)
    return frames.frame(COSTS, COSTS.rows(inputs))


def test_a_million_images_cost_the_hours_that_they_take() -> None:
    # 100 images/s at 3.60 per hour, which is 0.001 per second.
    actual = only(table(run(100.0)))
    assert actual["cost"] == pytest.approx(10.0)
    assert (actual["per"], actual["currency"]) == ("million images", "EUR")
    assert math.isnan(actual["emissions"])


def test_all_nodes_are_paid() -> None:
    assert only(table(run(100.0, nodes=2)))["cost"] == pytest.approx(20.0)


def test_sequences_are_counted_in_tokens() -> None:
    # 100 sequences/s of 128 tokens are 12,800 tokens/s.
    actual = only(table(run(100.0, model="bert_base", sequence_length=128)))
    assert actual["per"] == "million tokens"
    assert actual["cost"] == pytest.approx(1e6 / 12_800 * 0.001)


def test_the_interval_is_that_of_the_throughput_the_other_way_round() -> None:
    rates = (80.0, 90.0, 100.0, 100.0, 110.0, 125.0)
    low, high = median_interval(rates) or (math.nan, math.nan)
    actual = only(table(*repeats(*rates)))
    assert actual["cost_ci_low"] == pytest.approx(1000 / high)
    assert actual["cost_ci_high"] == pytest.approx(1000 / low)
    assert actual["cost_ci_low"] < actual["cost"] < actual["cost_ci_high"]


def test_emissions_are_of_the_energy_that_was_read() -> None:
    assumed = Assumptions(grid_intensity=360.0, pue=1.5)
    some = [changed(run(100.0, repeat=n), joules_per_sample=joules)
            for n, joules in enumerate((1.0, 2.0, 4.0), 1)]  # fmt: skip
    actual = only(table(*some, assumed=assumed))
    # 2 J x 1.5 x 1e6 = 3 MJ = 0.8333 kWh
    assert actual["emissions"] == pytest.approx(300.0)
    assert math.isnan(actual["cost"])
    nothing = only(table(run(100.0), assumed=assumed))
    assert math.isnan(nothing["emissions"])
    assert nothing["reason"] == "no energy could be read on this machine"


def test_a_case_without_a_figure_and_a_set_without_assumptions_have_no_row() -> None:
    assert table(run(None, status="failed")).empty
    assert table(run(100.0), assumed=assumptions.NONE).empty


def test_what_was_assumed_stays_with_the_results(tmp_path: Path) -> None:
    write_records(tmp_path / "runs", frameworks=("pytorch",), repeats=1)
    with without_charts():
        reporting.make_report(tmp_path / "runs", tmp_path)
    costs, stated = tmp_path / "tables" / "costs.csv", tmp_path / "tables" / reporting.FINGERPRINT
    before = stated.read_text()
    assert not costs.exists()
    assumptions.keep(tmp_path, PRICED)
    assumptions.keep(tmp_path, assumptions.NONE)  # a call without assumptions
    with without_charts():
        reporting.make_report(tmp_path / "runs", tmp_path)
    assert set(pd.read_csv(costs)["price_per_hour"]) == {3.6}
    assert "Costs and emissions" in (tmp_path / "report.html").read_text()
    assert stated.read_text() != before, "tables would stay stale"


@pytest.mark.parametrize("text", ["[]", "{}", '{"price_per_hour": "3", "currency": "EUR", '
                         '"grid_intensity": null, "pue": 1}', "{"])  # fmt: skip
def test_a_file_of_something_else_is_reported(text: str, tmp_path: Path) -> None:
    (tmp_path / assumptions.FILE).write_text(text)
    actual, problems = assumptions.load(tmp_path)
    assert actual == assumptions.NONE
    assert [problem.origin for problem in problems] == [assumptions.FILE]


@pytest.mark.parametrize(
    ("key", "value", "allowed"),
    [
        ("price_per_hour", "2.90", "an amount above 0 with its currency, like 2.90EUR"),
        ("price_per_hour", "0EUR", "an amount above 0 with its currency, like 2.90EUR"),
        ("grid_intensity", -1, "g CO2e per kWh: 0 or more, at most 5000"),
        ("pue", 0.9, "a number from 1 to 10"),
        ("pue", 1.2, "grid_intensity"),
    ],
)
def test_what_cannot_be_assumed(key: str, value: Any, allowed: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=allowed):
        settings(tmp_path, **{key: value})
    assert settings(tmp_path, price_per_hour="2.90EUR").price_per_hour == (2.9, "EUR")


def test_a_kept_assumption_is_read_again(tmp_path: Path) -> None:
    assumptions.keep(tmp_path, Assumptions(2.9, "EUR", 380.0, 1.2))
    assert json.loads((tmp_path / assumptions.FILE).read_text())["pue"] == 1.2
    assert assumptions.load(tmp_path) == (Assumptions(2.9, "EUR", 380.0, 1.2), [])
