"""Micro-benchmarks: validation of suites, cases, and tables."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from core.case import Case
from framebench import comparison
from framebench.cases import matrix
from framebench.config.validation import ConfigError
from framebench.records import record_sets
from framebench.records.run import MetricValue, Run
from framebench.tables.results import group

from ...conftest import ROOT
from ..browser import render
from ..made_up_runs import inputs_of, measured_rows, run
from ..made_up_runs import measured as of_kind
from ..page_rows import page_rows
from ..settings import CATALOG, settings

KINDS = str(ROOT / "tests" / "kinds")
COPY = {"memory_copy": {"size": [1000, 2000]}}


def cases_of(folder: Path, suite: dict[str, Any]) -> list[Case]:
    loaded = settings(folder, suite, kinds=KINDS)
    return matrix.narrow(matrix.cases(loaded.suite, CATALOG), loaded)


def test_cases_are_the_product_of_axes_and_parameters(tmp_path: Path) -> None:
    copies = {"memory_copy": {"size": [1000, 2000], "copies": 3, "devices_per_node": [1, 2]}}
    actual = cases_of(tmp_path, {"measurements": copies})
    assert [(case.devices_per_node, case.parameters) for case in actual] == [
        (devices, (("copies", 3), ("size", size))) for devices in (1, 2) for size in (1000, 2000)
    ]
    assert {(case.mode, case.framework, case.model) for case in actual} == {("memory_copy", "", "")}


def test_a_measurement_takes_unstated_axes_from_the_suite(tmp_path: Path) -> None:
    axes = {"framework": ["mxnet"], "model": ["bert_base"], "precision": ["fp32", "amp"],
            "devices_per_node": [2], "batch_per_device": [4]}  # fmt: skip
    suite = {"axes": axes, "measurements": {**COPY, "peak_flops": {"devices_per_node": 1}}}
    actual = cases_of(tmp_path, suite)
    assert len(actual) == 2 + 2 + 2, "steps, copies and peaks"
    peaks = [case for case in actual if case.mode == "peak_flops"]
    assert [(peak.framework, peak.precision, peak.devices_per_node) for peak in peaks] == [
        ("mxnet", "fp32", 1),
        ("mxnet", "amp", 1),
    ]
    assert {peak.batch_per_device for peak in peaks} == {0}, "a peak has no batch"
    assert {case.devices_per_node for case in actual if case.mode == "memory_copy"} == {2}


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ({"memory_cpoy": {"size": 1}}, "memory_cpoy: found 'memory_cpoy' (did you mean memory_"),
        ({"memory_copy": {}}, "memory_copy.size: found nothing; allowed: how much is copied"),
        ({"memory_copy": {"size": 1, "precision": "fp32"}}, "an axis that memory_copy does not"),
    ],
)
def test_bad_measurements(tmp_path: Path, written: dict[str, Any], expected: str) -> None:
    with pytest.raises(ConfigError) as error:
        settings(tmp_path, {"measurements": written}, kinds=KINDS)
    assert expected in str(error.value)
    assert "my.yaml: " in str(error.value)


def copies(*bandwidths: float, **parameters: Any) -> list[Run]:
    return [
        replace(
            of_kind(
                "memory_copy",
                [
                    MetricValue("bandwidth", value, "GB/s"),
                    MetricValue("longest", 1 / value, "ms", "lower"),
                ],
                **parameters,
            ),
            repeat=number,
        )
        for number, value in enumerate(bandwidths, 1)
    ]


def test_a_row_for_each_metric_of_each_case() -> None:
    table = measured_rows(*copies(1.0, 4.0, 2.0, size=10), *copies(8.0, size=20), run())
    rows = table[["size", "metric", "median", "unit", "better", "repeats"]].to_numpy().tolist()
    assert rows == [
        [10, "bandwidth", 2.0, "GB/s", "higher", 3],
        [10, "longest", 0.5, "ms", "lower", 3],
        [20, "bandwidth", 8.0, "GB/s", "higher", 1],
        [20, "longest", 0.125, "ms", "lower", 1],
    ]
    assert not {"framework", "model", "precision", "batch_per_device"} & {*table.columns}


@pytest.mark.parametrize("metric", ["bandwidth", "longest"])
def test_a_ratio_above_one_is_better_whether_high_or_low_values_are(metric: str) -> None:
    base = copies(*(1 + 0.001 * n for n in range(8)), size=10)
    candidate = copies(*(2 + 0.002 * n for n in range(8)), size=10)
    table = comparison.compare(group(base, None), group(candidate, None))
    (row,) = (entry for entry in table.to_dict("records") if entry["metric"] == metric)
    assert row["ratio"] == pytest.approx(2.0)
    assert (row["verdict"], row["parameters"]) == ("faster", "size 10")
    worse = comparison.compare(group(candidate, None), group(base, None))
    assert set(worse["verdict"]) == {"slower"}


def test_the_page_shows_it_with_the_records_behind_each_row(tmp_path: Path) -> None:
    runs = [
        replace(copy, origin=f"{place}.csv:1")
        for place, copy in enumerate([*copies(1.0, 2.0, size=10), *copies(4.0, size=20), run()])
    ]
    inputs = inputs_of(runs)
    actual = record_sets.RecordSet(tuple(runs), (), tmp_path)
    rows = page_rows(render(actual, tmp_path / "report.html", inputs))
    links = [[name[0] for name in row.records] for row in rows["memory_copy"]]
    assert links == [["0", "1"], ["0", "1"], ["2"], ["2"]]
    behind = [[name[0] for name in row.records] for row in rows["fastest"]]
    assert sorted(behind) == [["0", "1"], ["2"], ["3"]], (
        "a size lacks its records, or has those of another"
    )
