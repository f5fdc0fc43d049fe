"""Metrics that a run has at several points: from records to rows, ratios and lines."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from framebench import comparison
from framebench.records import record_files
from framebench.records.run import MetricValue, Run
from framebench.report import measured_panels
from framebench.report.plots import Look, Plot
from framebench.tables import measured
from framebench.tables.results import group

from ..made_up_runs import measured as of_kind
from ..made_up_runs import measured_rows
from ..saved_records import peak_flops_record

SIZES = (8, 1024, 64)
LOOK = Look(["no framework"])


def runs(*bandwidths: float, operation: str = "copy", **changes: Any) -> list[Run]:
    return [
        replace(
            of_kind(
                "wire",
                [
                    MetricValue("average", 2 * value, "GB/s"),
                    *(
                        MetricValue("bandwidth", number * value, "GB/s", point=(("bytes", size),))
                        for number, size in enumerate(SIZES, 1)
                    ),
                ],
                operation=operation,
            ),
            repeat=repeat,
            **changes,
        )
        for repeat, value in enumerate(bandwidths, 1)
    ]


def test_a_label_leaves_out_what_follows_from_framework_and_model() -> None:
    metric = [MetricValue("time_to_target", 1.0, "s", "lower")]
    made = []
    for framework, compiler in (("jax", "jit"), ("mxnet", "none")):
        for model, length in (("images", None), ("texts", 24)):
            for target in (0.9, 0.98):
                run = of_kind("converge", metric, target=target)
                case = run.case._replace(framework=framework, compiler=compiler, model=model)
                case = case._replace(sequence_length=length)
                made.append(replace(run, case=case))
    results = [*group(made, None).values()]
    label = measured.labels(results)
    assert sorted(map(label, results))[-2:] == [
        "mxnet, 1n1g, texts, target 0.9", "mxnet, 1n1g, texts, target 0.98",
    ]  # fmt: skip
    shorter = replace(made[-1], case=made[-1].case._replace(sequence_length=12))
    results = [*group([*made, shorter], None).values()]
    assert "length 12" in " ".join(map(measured.labels(results), results)), "nothing else tells it"


def test_each_point_has_a_row_of_its_own_in_their_order() -> None:
    table = measured_rows(*runs(1.0, 5.0, 3.0))
    rows = table[["metric", "bytes", "median", "repeats"]].astype(object)
    assert rows.where(rows.notna(), None).to_numpy().tolist() == [
        ["average", None, 6.0, 3],
        ["bandwidth", 8, 3.0, 3],
        ["bandwidth", 1024, 6.0, 3],
        ["bandwidth", 64, 9.0, 3],
    ]


def test_what_has_no_figure_says_so_once_and_not_at_each_point() -> None:
    (one,) = runs(1.0)
    lost = tuple(metric._replace(value=None) for metric in one.metrics)
    refused = replace(one, status="unsupported", reason="no wire", metrics=lost)
    table = measured_rows(refused, *runs(1.0, operation="send"))
    rows = table[table["operation"] == "copy"]
    assert rows[["metric", "status", "reason"]].to_numpy().tolist() == [
        ["average", "unsupported", "no wire"]
    ]
    assert (table["operation"] == "send").sum() == 4


def test_sets_are_compared_point_by_point() -> None:
    base = [
        replace(run, started=100.0 * run.repeat, wall_seconds=1.0)
        for run in runs(*(1 + 0.001 * number for number in range(8)))
    ]
    better = [
        replace(
            run,
            started=100.0 * run.repeat + 2,
            metrics=tuple(
                metric._replace(value=(metric.value or 0) * (3 if metric.point else 1))
                for metric in run.metrics
            ),
        )
        for run in base
    ]
    table = comparison.compare(group(base, None), group(better, None))
    assert set(table["pairs"]) == {8}
    ratios = {row["parameters"]: row["ratio"] for row in table.to_dict("records")}
    assert ratios == {
        "operation copy": pytest.approx(1.0),
        **{f"operation copy, bytes {size}": pytest.approx(3.0) for size in SIZES},
    }


def drawn(*some: Run) -> list[Plot]:
    return measured_panels.panels(group(list(some), None), LOOK, "wire")


def test_sizes_are_lines_and_words_among_the_parameters_panels() -> None:
    plots = drawn(*runs(1.0, 2.0), *runs(4.0, operation="send"))
    assert [plot.title for plot in plots] == [
        "average, GB/s (higher is better)",
        "copy: bandwidth, GB/s (higher is better)",
        "send: bandwidth, GB/s (higher is better)",
    ]
    assert "bytes (logarithmic axis)" in plots[1].svg
    assert "1 Ki" in plots[1].svg


def test_what_needs_no_framework_has_a_panel_for_each_unit() -> None:
    metrics = [MetricValue(name, value, unit, better) for name, value, unit, better in (
        ("read_bandwidth", 2.0, "GB/s", "higher"), ("read_latency", 9.0, "us", "lower"),
        ("write_bandwidth", 1.0, "GB/s", "higher"),
    )]  # fmt: skip
    plots = drawn(of_kind("wire", metrics))
    assert [plot.title for plot in plots] == [
        "wire, GB/s (higher is better)",
        "read latency, us (lower is better)",
    ]
    assert "(figures: 2)" in plots[0].caption
    for name in ("read bandwidth, 1n1g", "write bandwidth, 1n1g"):
        assert name in plots[0].svg
    of_frameworks = [
        replace(run, case=run.case._replace(framework="toy")) for run in [of_kind("wire", metrics)]
    ]
    plots = measured_panels.panels(group(of_frameworks, None), Look(["toy"]), "wire")
    assert len(plots) == 3, "frameworks are compared by each metric"


def test_a_record_has_its_points_in_its_metrics(tmp_path: Path) -> None:
    made = {
        **peak_flops_record(),
        "kind": "wire",
        "parameters": {"operation": "copy"},
        "metrics": {
            "bandwidth at bytes 8": {
                "value": 2.0, "unit": "GB/s", "better": "higher", "quantity": "bandwidth",
                "at": {"bytes": 8},
            },
        },
    }  # fmt: skip
    file = tmp_path / "r1.json"
    file.write_text(json.dumps(made))
    ((run,), problems) = record_files.read_folder(tmp_path)
    assert not problems
    assert run.metrics == (MetricValue("bandwidth", 2.0, "GB/s", "higher", (("bytes", 8),)),)
    assert run.value("bandwidth", (("bytes", 8),)) == 2.0
    assert run.value("bandwidth") is None
    assert measured.parameters_text(run.case, run.key.point) == "operation copy, bytes 8"
