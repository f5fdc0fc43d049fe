"""Weak and strong scaling by hand-computed numbers: rows and baselines."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pandas as pd
import pytest
from framebench.records import record_sets
from framebench.records.fields import GradientAllReduce
from framebench.records.run import Run
from framebench.report import html_report
from framebench.tables import frames

from ..browser import render
from ..made_up_records import write_records
from ..made_up_runs import build, in_markdown, repeats, run
from ..page_rows import page_rows
from ..table_rows import row, shown

VALUES = (99.2, 99.6, 99.9, 100.0, 100.1, 100.4, 100.9)

COMMUNICATION = [
    *("communication_alone", "communication_alone_ci_low", "communication_alone_ci_high"),
    "gradient_messages",
]


def on(devices: int, total: int, throughput: float | None = 100.0, **changes: Any) -> Run:
    return run(throughput, devices_per_node=devices, batch_per_device=total // devices, **changes)


def strong(runs: list[Run]) -> pd.DataFrame:
    return build(runs)["strong_scaling"]


def rows_of(table: pd.DataFrame) -> list[tuple[int, int, int]]:
    return list(zip(table["devices"], table["total_batch"], table["batch_per_device"], strict=True))


# ---- strong scaling -----------------------------------------------------------------------------


def test_strong_scaling_is_relative_to_the_same_total_batch() -> None:
    runs = [on(1, 64, 100.0), on(2, 64, 160.0), on(4, 64, 200.0)]
    actual = strong(runs)
    assert rows_of(actual) == [(1, 64, 64), (2, 64, 32), (4, 64, 16)]
    assert list(actual["speedup"]) == [1.0, 1.6, 2.0]
    assert list(actual["efficiency"]) == [1.0, 0.8, 0.5]
    # there is no run on one device with the same batch per device
    weak = build(runs)["weak_scaling"]
    assert list(weak[weak["devices"] > 1]["reason"]) == ["no 1n1g run"] * 2


def test_one_run_is_the_baseline_of_both_kinds() -> None:
    runs = [
        on(1, 64, 100.0),
        on(2, 128, 180.0),  # weak: 64 on each
        on(2, 64, 150.0),  # strong: 32 on each
    ]
    made = build(runs)
    weak, both = made["weak_scaling"], made["strong_scaling"]
    assert row(weak, devices=2, batch_per_device=64)["speedup"] == 1.8
    assert row(weak, devices=2, batch_per_device=32)["reason"] == "no 1n1g run"
    assert rows_of(both) == [(1, 64, 64), (2, 64, 32)]
    assert row(both, devices=2)["speedup"] == 1.5


def test_intervals_of_an_efficiency_are_those_of_the_speedup_by_devices() -> None:
    one = repeats(*VALUES, batch_per_device=64)
    two = repeats(*(1.9 * value for value in VALUES), devices_per_node=2, batch_per_device=32)
    weak = repeats(*(1.8 * value for value in VALUES), devices_per_node=2, batch_per_device=64)
    made = build([*one, *two, *weak])
    for name, speedup in (("weak_scaling", 1.8), ("strong_scaling", 1.9)):
        actual = row(made[name], devices=2, speedup=speedup)
        assert actual["efficiency"] == speedup / 2
        low, high = actual["efficiency_ci_low"], actual["efficiency_ci_high"]
        assert (low, high) == (actual["speedup_ci_low"] / 2, actual["speedup_ci_high"] / 2)
        assert low < actual["efficiency"] < high
    few = build([*one[:2], *two[:2]])["strong_scaling"]
    assert few["efficiency_ci_low"].isna().tolist() == [False, True]


def test_a_series_without_1n1g_is_none() -> None:
    assert not len(strong([on(2, 64), on(4, 64)]))


def test_equal_total_batches_of_a_weak_grid_are_no_series() -> None:
    """DLPerf's: 8 x 64 = 16 x 32, but every case has its baseline in weak scaling."""
    grid = [
        run(100.0 + nodes * devices, nodes=nodes, devices_per_node=devices, batch_per_device=batch)
        for nodes, devices in ((1, 1), (1, 8), (2, 8), (4, 8))
        for batch in (32, 48, 64, 96)
    ]
    assert not len(strong(grid))


def test_equal_total_batches_with_1n1g_are_a_series_whoever_asked_for_them() -> None:
    actual = strong([run(batch_per_device=b, devices_per_node=d) for b in (32, 64) for d in (1, 2)])
    assert rows_of(actual) == [(1, 64, 64), (2, 64, 32)]


# ---- texts and plots ----------------------------------------------------------------------------


def test_the_report_has_both_kinds(tmp_path: Path) -> None:
    source = write_records(tmp_path / "runs", 5, frameworks=("pytorch",), batches=(2, 4))
    actual = record_sets.load(source)
    text = render(actual, tmp_path / "report.html")
    for name, kind in (("weak-scaling", "weak_scaling"), ("strong-scaling", "strong_scaling")):
        part = text.split(f'<details class="part" id="{name}">')[1].split("</details>")[0]
        assert f">{frames.known_tables()[kind].title}</h3>" in part
        assert "<figure" in part
        (titles, *_) = (row.cells for row in page_rows(text)[kind])
        assert any("efficiency % from" in title for title in titles)
    alone = [one for one in actual.runs if one.case.batch_per_device == 4]
    single = [one for one in alone if one.case.devices == 1]
    for some, is_there in ((alone, [True, False]), (single, [False, False])):
        with patch.object(html_report, "draw_table", return_value=[]):  # charts take long
            text = render(replace(actual, runs=tuple(some)), tmp_path / "report.html")
        parts = ("weak-scaling", "strong-scaling")
        assert [f'id="{name}"' in text for name in parts] == is_there


def test_a_missing_interval_says_what_it_needs_where_there_is_a_ratio() -> None:
    made = build([on(1, 64), on(2, 64), on(1, 128, None), on(2, 128)])["strong_scaling"]
    rows = shown(in_markdown("strong_scaling", made))
    notes = {row["total batch"]: row["efficiency % from"] for row in rows
             if row["devices"] != "1n1g"}  # fmt: skip
    assert notes == {"64": "- (needs 7 repeats)", "128": "- (see reason)"}


def test_the_gradients_alone_have_the_interval_of_their_repeats() -> None:
    rounds = [(0.0, 0.02 + 0.001 * n, 9.0) for n in range(-3, 4)]
    runs = [on(1, 64), *(on(2, 64, 640.0, repeat=n, gradient_all_reduce=GradientAllReduce(item, 5))
                         for n, item in enumerate(rounds, 1))]  # fmt: skip
    for name in ("weak_scaling", "strong_scaling"):
        actual = row(build(runs)[name], devices=2)
        assert actual["communication_alone"] == pytest.approx(0.2)
        low, high = actual["communication_alone_ci_low"], actual["communication_alone_ci_high"]
        assert 0.17 <= low < 0.2 < high <= 0.23
        assert actual["gradient_messages"] == 5


def test_what_is_not_known_of_communication_is_missing_and_says_why() -> None:
    known = {"gradient_all_reduce": GradientAllReduce((0.02,), 5)}
    runs = [
        on(1, 64),
        on(2, 64, **known),
        on(4, 64, framework="jax"),
        on(2, 64, mode="inference", **known),
        on(2, 64, None, framework="mxnet"),
    ]
    made = build(runs)["weak_scaling"]
    assert made["communication_alone"].notna().sum() == 1
    assert made[made["devices"] == 1][COMMUNICATION].isna().all(axis=None)
    notes = {
        (row["framework"], row["devices"]): row["communication alone %"]
        for row in shown(in_markdown("weak_scaling", made))
        if row["mode"] == "train"
    }
    assert notes["jax", "1n4g"] == "- (not timed)"
    assert notes["mxnet", "1n2g"] == "- (see reason)"
    imported = in_markdown("weak_scaling", build([on(1, 64), on(2, 64)])["weak_scaling"])
    assert "Communication alone" not in imported, "a column of which nothing is known"
