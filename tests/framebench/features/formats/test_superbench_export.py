"""Export as SuperBench's summary: its names, its definitions, and results without a name there."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from framebench.cases.conditions import Conditions
from framebench.features.formats import file_formats
from framebench.features.formats.file_formats import ExportedFile, Results
from framebench.features.formats.superbench_metrics import meaning_of
from framebench.records import record_sets
from framebench.records.run import MetricValue, Run
from framebench.tables.results import group

from ...made_up_runs import changed, measured, run


def written(*runs: Run) -> ExportedFile:
    cases = group([*runs], None)
    write = file_formats.writer("superbench").write
    assert write
    return write(Results(cases))


def summary(*runs: Run) -> dict[str, Any]:
    """Return the summary's keys without annotations."""
    (line,) = str(written(*runs).content).splitlines()
    keys = {}
    for key, value in json.loads(line).items():
        benchmark, _, rest = key.partition("/")
        keys[f"{benchmark.partition(':')[0]}/{rest}" if rest else key] = value
    return keys


def timed(*seconds: float, **case: Any) -> Run:
    return changed(run(32.0, **case), step_seconds=seconds, waited_apart=seconds, started=1.7e9)


@pytest.mark.parametrize(
    ("model", "theirs"),
    [
        ("superbench_bert_base", "bert-base"),
        ("resnext50_32x4d", "resnext50_32x4d"),
        ("bert_base", "bert_base"),  # a different network from SuperBench's
    ],
)
def test_models_have_superbenchs_names(model: str, theirs: str) -> None:
    actual = summary(timed(0.5, 0.5, model=model, precision="fp8"))
    key = f"model-benchmarks/pytorch-{theirs}/fp8_hybrid_train_step_time"
    assert actual[key] == pytest.approx(500)
    for name in actual:
        benchmark, _, metric = name.partition("/")
        assert name == "node" or meaning_of(benchmark, metric.rpartition("/")[2])


def test_megatron_has_the_rate_of_all_devices_and_the_peak_memory() -> None:
    """8 devices with 2 sequences and 128 micro-steps make 2048 sequences per update."""
    one = timed(
        *[64.0, 64.0], model="gpt_6.7b", precision="bf16", devices_per_node=8, batch_per_device=2,
        accumulation=128,
    )  # fmt: skip
    actual = summary(replace(one, peak_device_memory=3 * 2**30))
    names = {"step_time": 64000, "throughput": 2048 / 64, "max_mem_allocated": 3}
    expected = {f"megatron-gpt/megatron-gpt/bf16_train_{name}": n for name, n in names.items()}
    code = {"megatron-gpt/megatron-gpt/return_code": 0}
    assert actual == {"node": "framebench", **code, **expected}
    assert all(meaning_of("megatron-gpt", name.rpartition("/")[2]) for name in expected)


def test_figures_are_of_a_device_and_of_steps_that_were_waited_for() -> None:
    one = changed(timed(0.09, 0.1, devices_per_node=2), step_seconds=(0.179, 0.002))
    actual = summary(one)
    metric = "model-benchmarks/pytorch-resnet50_v1.5/fp32_train"
    assert actual[f"{metric}_step_time"] == pytest.approx(95)
    assert actual[f"{metric}_throughput"] == pytest.approx((32 / 0.09 + 32 / 0.1) / 2)


def test_inference_has_percentiles_as_superbench_takes_them() -> None:
    seconds = np.random.default_rng(3).uniform(0.01, 0.09, 6636)
    actual = summary(timed(*seconds.tolist(), mode="inference"))
    metric = "model-benchmarks/pytorch-resnet50_v1.5/fp32_inference"
    for percent in ("50", "90", "95", "99", "99.9"):
        times = np.percentile(1000 * seconds, float(percent), method="nearest")
        rates = np.percentile(32 / seconds, float(percent), method="nearest")
        assert actual[f"{metric}_step_time_{percent}"] == pytest.approx(times)
        assert actual[f"{metric}_throughput_{percent}"] == pytest.approx(rates)


SIZE = (("bytes", 1024),)
SHAPE = (("k", 3), ("m", 2), ("n", 4))
#: SuperBench's defaults that its names do not state.
WHOLE = (("k", 12288), ("m", 16000), ("n", 12288))
OVERLAP = {"shape": "640x1024x1880", "matmuls": 30, "message_bytes": 28000000}


@pytest.mark.parametrize(
    ("kind", "parameters", "metric", "case", "key", "value"),
    [
        ("launch", {"elements": 1}, MetricValue("time", 5.0, "us", "lower"), {},
         "kernel-launch/wall_time", 0.005),
        ("matmul", {}, MetricValue("rate", 1.5, "TFLOP/s", "higher", (("batch", 8), *SHAPE)),
         {"precision": "fp32"}, "cublaslt-gemm/fp32_8_2_4_3_flops", 1.5),
        ("matmul", {}, MetricValue("highest_rate", 1.5, "TFLOP/s"), {"precision": "fp32"},
         "gemm-flops/fp32_flops", 1500),
        ("sharded_matmul", {"sharded": "inner"},
         MetricValue("both_time", 2.5, "ms", "lower", WHOLE), {},
         "pytorch-sharding-matmul/allreduce_time", 2.5),
        ("overlap", {"operation": "matmul", **OVERLAP},
         MetricValue("both_time", 2.5, "ms", "lower"), {},
         "pytorch-computation-communication-overlap/matmul_time", 250.0),
        ("collective", {"operation": "all_to_all"},
         MetricValue("algorithm_bandwidth", 2.5, "GB/s", "higher", SIZE),
         {"accelerator": "AMD MI250"},
         "rccl-bw/alltoall_1024_algbw", 2.5),
        ("memory", {}, MetricValue("triad", 2.5, "GB/s"), {}, "cpu-stream/triad_throughput", 2500),
        ("transfer", {},
         MetricValue("host_to_device", 2.5, "GB/s", "higher", (("device", "gpu-3"),)), {},
         "mem-bw/h2d_bw:3", 2.5),
        ("matmul", {"dtype": "int8"}, MetricValue("highest_rate", 1.5, "TFLOP/s"),
         {"precision": "fp32"}, "gemm-flops/int8_tc_iops", 1500),
        ("transfer", {}, MetricValue("device_to_device", 2.5, "GB/s"), {}, "mem-bw/d2d_bw", 5.0),
        ("storage", {}, MetricValue("random_mixed_write_latency_p99", 2.5, "us", "lower"), {},
         "disk-benchmark/file_rand_read_write_write_lat_ns_99.0", 2500),
    ],
)  # fmt: skip
def test_micro_benchmarks_have_superbenchs_names_and_units(
    kind: str, parameters: dict[str, Any], metric: MetricValue, case: dict[str, str], key: str,
    value: float,
) -> None:  # fmt: skip
    options = {"framework": "pytorch", **case}
    one = measured(kind, [metric], **parameters)
    if accelerator := options.pop("accelerator", ""):
        one = replace(one, conditions=Conditions(accelerator))
    one = replace(one, case=one.case._replace(**options), matmul_dtypes=("bfloat16",))
    actual = summary(one)
    assert actual[key] == pytest.approx(value)
    benchmark, _, name = key.partition("/")
    assert meaning_of(benchmark, name.partition(":")[0]), "SuperBench's documentation has it"
    assert actual[f"{benchmark}/return_code"] == 0


def test_superbenchs_matmul_is_exported_as_a_time() -> None:
    one = measured("matmul", [MetricValue("rate", 50.0, "TFLOP/s", "higher", WHOLE)])
    one = replace(one, case=one.case._replace(framework="jax", precision="fp32"))
    actual = summary(one)
    expected = 2 * 16000 * 12288 * 12288 / 50e12 * 1000
    assert actual["jax-matmul/nosharding_time"] == pytest.approx(expected)
    assert actual["cublaslt-gemm/fp32_0_16000_12288_12288_flops"] == 50.0


@pytest.mark.parametrize(
    ("kind", "metric"),
    [
        ("overlap", MetricValue("hidden_share", 50.0, "%")),
        ("peak_flops", MetricValue("peak", 1.5, "TFLOP/s")),  # unknown precision
    ],
)
def test_a_figure_without_a_name_there_is_named(kind: str, metric: MetricValue) -> None:
    file = written(measured(kind, [metric]))
    assert file.is_empty
    assert [said for said in file.left_out if metric.name in said]


@pytest.mark.parametrize(
    ("kind", "parameters", "metric"),
    [
        ("overlap", {"operation": "matmul", **OVERLAP, "message_bytes": 4},
         MetricValue("both_time", 2.5, "ms", "lower")),
        ("sharded_matmul", {"sharded": "inner"},
         MetricValue("both_time", 2.5, "ms", "lower", SHAPE)),
    ],
)  # fmt: skip
def test_a_name_that_tells_no_size_is_of_the_default_size_alone(
    kind: str, parameters: dict[str, Any], metric: MetricValue
) -> None:
    assert written(measured(kind, [metric], **parameters)).is_empty


def test_repeats_and_points_keep_apart() -> None:
    metrics = [
        MetricValue("time", float(size), "us", "lower", (("bytes", size),)) for size in (64, 128)
    ]
    runs = [replace(measured("collective", metrics, operation="broadcast"), repeat=repeat)
            for repeat in (1, 2)]  # fmt: skip
    actual = summary(*runs)
    assert {key: value for key, value in actual.items() if key.endswith("_time")} == {
        f"nccl-bw/{index}/broadcast_{size}_time": size for index in (0, 1) for size in (64, 128)
    }


def test_imported_figures_are_exported_unchanged(tmp_path: Path) -> None:
    nodes = [
        {
            "node": "node-a",
            "hipblaslt-gemm/return_code": 0,
            "hipblaslt-gemm/fp16_1_4096_4096_4096_flops:0": 512.5,
            "hipblaslt-gemm/fp16_1_4096_4096_4096_flops:1": 511.5,
            "gemm-flops/int8_tc_iops:0": 570000.0,
            "nccl-bw:nvlink/allreduce_8_time:0": 31.5,
            "model-benchmarks:stress/pytorch-bert-base/0/fp8_hybrid_train_step_time": 12.5,
            "model-benchmarks:stress/pytorch-bert-base/1/fp8_hybrid_train_step_time": 12.75,
            "bert_models/pytorch-bert-large/float16_train_step_time": 90.5,
            "ib-loopback/return_code": 36,
        },
        {"node": "node-b", "cpu-memory-bw-latency/mem_bandwidth_matrix_numa_0_0_bw": 198765.5},
    ]
    text = "".join(json.dumps(node) + "\n" for node in nodes)
    (tmp_path / "in.jsonl").write_text(text)
    file_formats.import_files("superbench", tmp_path / "in.jsonl", tmp_path / "set")
    out = written(*record_sets.load(tmp_path / "set" / "runs").runs)
    assert not out.left_out
    assert [json.loads(line) for line in str(out.content).splitlines()] == nodes
