"""Import of SuperBench's results: every documented metric with its unit, and what is left out."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path
from typing import Any

import pytest
from framebench.features.formats import file_formats
from framebench.features.formats.imported import ImportedFile
from framebench.features.node_health.judging import name_of
from framebench.records.run import Run

from ....conftest import ROOT

#: Keys in SuperBench's documentation (v0.4.0 to v0.12.0, expanded), with unit and direction;
#: settings have no direction.
DOCUMENTED = [
    *csv.DictReader((ROOT / "tests/data/superbench_documented.csv").read_text().splitlines())
]


def read(folder: Path, *nodes: dict[str, Any]) -> tuple[list[Run], ImportedFile]:
    file = folder / "results-summary.jsonl"
    folder.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(node) + "\n" for node in nodes))
    source, reader = ImportedFile(file), file_formats.reader("superbench").read
    assert reader
    return [figure.run for figure in reader(source)], source


def test_every_documented_metric_keeps_value_and_unit_or_is_named(tmp_path: Path) -> None:
    values = {row["key"]: number + 0.5 for number, row in enumerate(DOCUMENTED)}
    runs, source = read(tmp_path, {"node": "n", **values})
    actual = {}
    for run in runs:
        head, _, metric = name_of(run.key).rpartition("/")
        actual[head, metric] = (run.figure, run.unit, run.metrics[0].better)
    expected = {
        tuple(row["key"].rsplit("/", 1)): (values[row["key"]], row["unit"], row["better"])
        for row in DOCUMENTED
        if row["better"]
    }
    assert actual == expected
    assert {name for _, name in source.left_out} == {
        row["key"] for row in DOCUMENTED if not row["better"]
    }


def test_throughput_of_megatron_is_of_all_devices(tmp_path: Path) -> None:
    names = ("megatron-gpt:a/megatron-gpt/fp16_train", "model-benchmarks:b/pytorch-gpt2/fp16_train")
    runs, _ = read(tmp_path, {"node": "n", **{f"{name}_throughput": 8.0 for name in names}})
    assert [run.metrics[0].name for run in runs] == ["throughput", "throughput_per_device"]


@pytest.mark.parametrize(
    "key",
    [
        "my-benchmark/score:0",
        "gpcnet-network-test/rr_get_lat_avg",  # documented as a bandwidth
        "model-benchmarks/pytorch-bert-base/deterministic_config_num_steps",
        "monitor/gpu_temperature:0",
    ],
)
def test_a_figure_that_is_not_taken_is_named(key: str, tmp_path: Path) -> None:
    runs, source = read(tmp_path, {"node": "n", key: 1.5})
    assert not runs
    assert [name for _, name in source.left_out] == [key]


def test_a_return_code_and_a_negative_time_are_failures(tmp_path: Path) -> None:
    options = {
        "cudnn-function/return_code": 0,
        "nccl-bw/return_code": 36,
        "cudnn-function/name_conv_time": -1,
    }
    runs, _ = read(tmp_path, {"node": "n", **options})
    results = {name_of(run.key): (run.status, run.figure, run.reason) for run in runs}
    assert results["cudnn-function/return_code"] == ("ok", 0.0, "")
    assert results["nccl-bw/return_code"] == ("failed", None, "return code 36")
    status, figure, reason = results["cudnn-function/name_conv_time"]
    assert (status, figure) == ("failed", None)
    assert "-1" in reason


def test_a_value_that_is_no_number_is_a_failure_of_its_figure_alone(tmp_path: Path) -> None:
    options = {"mem-bw/h2d_bw:0": math.nan, "mem-bw/d2h_bw:0": None, "mem-bw/d2d_bw:0": 25.5}
    runs, _ = read(tmp_path, {"node": "n", **options})
    results = {run.metrics[0].name: (run.status, run.figure) for run in runs}
    assert results == {
        "h2d_bw": ("failed", None), "d2h_bw": ("failed", None), "d2d_bw": ("ok", 25.5),
    }  # fmt: skip
