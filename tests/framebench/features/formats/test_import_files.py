"""Import of folders, and of files of other versions of the tools."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from core import bounded
from framebench.features.formats import source, transfer
from framebench.records import record_sets
from framebench.records.record_sets import RecordsError

from . import samples
from .importing import brought, imported, values_by_case

# ---- folders -------------------------------------------------------------------------------------


def test_what_is_wrong_in_a_folder_is_left_out_by_name_and_the_rest_is_taken(
    tmp_path: Path,
) -> None:
    text = samples.pyperf()
    files = {"a.json": text, "copy.json": text, "b.json": text[:-9], "c.json": "[]", "d.txt": ""}
    runs, said = imported("pyperf", files, tmp_path)
    assert [run.figure for run in runs] == [0.011, 0.02]
    left = [line for line in said if line.startswith("left out")]
    assert len(left) == 3
    assert "left out: copy.json (of a.json): are copies" in left
    assert any("b.json, line" in line and "no complete JSON" in line for line in left)


def test_a_folder_of_which_nothing_can_be_read_is_refused_with_every_reason(
    tmp_path: Path,
) -> None:
    with pytest.raises(RecordsError) as error:
        imported("pyperf", {"a.json": "[]", "b.json": "{"}, tmp_path)
    assert "a.json" in str(error.value)
    assert "b.json" in str(error.value)
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize("name", ["pyperf", "google-benchmark", "mllog", "milabench"])
def test_a_compressed_file_is_read_as_the_file(name: str, tmp_path: Path) -> None:
    text = samples.ALL[name]()
    suffix = {"mllog": ".log", "milabench": ".data"}.get(name, ".json")
    packed = gzip.compress(text.encode())
    runs, _ = imported(name, {f"given{suffix}.gz": packed}, tmp_path)
    plain = brought(name, text, tmp_path, at="plain").runs
    assert [run.metrics for run in runs] == [run.metrics for run in plain]


def test_a_file_that_unpacks_beyond_bounds_or_is_damaged_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "given.json.gz"
    file.write_bytes(gzip.compress(b" " * 10_000))
    monkeypatch.setattr(bounded, "LARGEST_FILE", 5_000)
    with pytest.raises(source.FormatError, match="unpacks to more than 5000 bytes"):
        source.ImportedFile(file).json()
    file.write_bytes(gzip.compress(samples.pyperf().encode())[:-9])
    with pytest.raises(source.FormatError, match="is no complete gzip file"):
        source.ImportedFile(file).json()


@pytest.mark.parametrize("held", ["tables/fastest.csv", "report.html", "runs/r1.json"])
def test_results_that_hold_anything_are_refused(held: str, tmp_path: Path) -> None:
    there = tmp_path / "results" / held
    there.parent.mkdir(parents=True)
    there.write_text("here before")
    with pytest.raises(RecordsError, match=r"holds \S+ already; allowed: a folder"):
        brought("pyperf", samples.pyperf(), tmp_path)
    assert not (tmp_path / "results" / "runs" / "runs.csv").exists()
    assert there.read_text() == "here before"


# ---- google-benchmark ----------------------------------------------------------------------------


def rows(*named: tuple[str, float], **more: Any) -> str:
    """Return a file of version 1.4, whose rows do not state their type."""
    benchmarks = [
        {"name": name, "iterations": 10, "real_time": time, "cpu_time": time, "time_unit": "us",
         **more}
        for name, time in named
    ]  # fmt: skip
    return json.dumps({"context": {"num_cpus": 8}, "benchmarks": benchmarks})


@pytest.mark.parametrize("own", ["_mean", "_median", "_stddev", "_cv", "_p99"])
def test_aggregates_of_old_versions_are_no_benchmarks(own: str, tmp_path: Path) -> None:
    text = rows(("Conv/64", 102.0), ("Conv/64", 100.0), (f"Conv/64{own}", 2.0), ("X_mean", 5.0))
    file = tmp_path / "given.json"
    file.write_text(text)
    said = transfer.import_files("google-benchmark", file, {}, tmp_path / "results")
    actual = record_sets.load(tmp_path / "results" / "runs")
    taken = sorted((run.case.model, run.figure) for run in actual.runs)
    assert taken == [("Conv/64", 100.0), ("Conv/64", 102.0), ("X_mean", 5.0)]
    assert f"not taken: Conv/64{own}: is an aggregate of repeats" in said
    assert "not taken: cpu_time (3): of a row only real_time is taken" in said


def test_of_aggregates_alone_the_median_is_taken_as_that(tmp_path: Path) -> None:
    named = [("F_mean", 102.0), ("F_median", 101.0), ("F_stddev", 2.0)]
    actual = brought("google-benchmark", rows(*named), tmp_path)
    assert [(run.case.model, run.figure, run.case.parameters) for run in actual.runs] == [
        ("F", 101.0, (("aggregate", "median"),))
    ]
    with pytest.raises(RecordsError, match=r"G_mean, G_stddev: is an aggregate"):
        brought("google-benchmark", rows(("G_mean", 1.0), ("G_stddev", 1.0)), tmp_path, at="other")


def test_complexities_are_no_benchmarks_and_counters_may_be_no_number(tmp_path: Path) -> None:
    text = rows(("F/8", 1.5), ("F/64", 2.5), hits=1.0).replace("]", ', {"name": "F_BigO", '
        '"cpu_coefficient": 0.1, "big_o": "N"}, {"name": "F_RMS", "rms": 0.01}]')  # fmt: skip
    actual = brought("google-benchmark", text.replace('"hits": 1.0', '"hits": NaN'), tmp_path)
    assert sorted(run.figure or 0 for run in actual.runs) == [1.5, 2.5]


def test_files_of_two_hosts_are_two_cases(tmp_path: Path) -> None:
    files = {
        f"{host}.json": rows(("F", time)).replace(
            '"num_cpus"', f'"host_name": "{host}", "num_cpus"'
        )
        for host, time in (("a", 1.0), ("b", 2.0))
    }
    runs, _ = imported("google-benchmark", files, tmp_path)
    assert values_by_case(runs, "real_time") == [[1.0], [2.0]]


# ---- pyperf --------------------------------------------------------------------------------------


def test_pyperf_files_of_two_versions_of_python_are_two_cases(tmp_path: Path) -> None:
    def text(version: str, value: float, date: str) -> str:
        metadata = {"name": "loads", "python_version": version, "date": date, "loops": 8}
        run = {"metadata": {"load_avg_1min": value}, "values": [value, value]}
        document = {"version": "1.0", "metadata": metadata, "benchmarks": [{"runs": [run]}]}
        return json.dumps(document)

    files = {
        "a.json": text("3.11", 1.0, "2024-01-01"),
        "b.json": text("3.11", 2.0, "2024-01-02"),
        "c.json.gz": gzip.compress(text("3.12", 3.0, "2024-01-03").encode()),
    }
    runs, _ = imported("pyperf", files, tmp_path)
    assert values_by_case(runs, "value") == [[1.0, 2.0], [3.0]]


@pytest.mark.parametrize(("version", "key"), [(5, "samples"), (6, "values")])
def test_pyperf_before_version_1_is_read(version: int, key: str, tmp_path: Path) -> None:
    benchmark = {"common_metadata": {"name": "loads"}, "runs": [{key: [0.5, 0.25, 0.125]}]}
    document = {"version": version, "benchmarks": [benchmark]}
    (run,) = brought("pyperf", json.dumps(document), tmp_path).runs
    assert (run.case.model, run.figure, run.unit) == ("loads", 0.25, "s")


# ---- optimum-benchmark ---------------------------------------------------------------------------


def optimum(value: float, backend: Mapping[str, Any] = {}, **shapes: int) -> dict[str, Any]:
    named = {"name": "pytorch", "model": "org/lm", "device": "cuda", "torch_compile": False}
    scenario = {"name": "inference", "input_shapes": {"batch_size": 1, **shapes}}
    latency = {"unit": "s", "values": [value], "mean": value}
    return {
        "config": {"name": f"run-{value}", "backend": {**named, **backend}, "scenario": scenario},
        "report": {"prefill": {"latency": latency, "throughput": None}},
    }


def test_optimum_benchmark_keeps_configurations_apart(tmp_path: Path) -> None:
    options = {
        "plain": optimum(0.1),
        "again": optimum(0.15),
        "int4": optimum(0.2, {"quantization_config": {"bits": 4}}),
        "compiled": optimum(0.3, {"torch_compile": True}),
        "threads": optimum(0.4, {"inter_op_num_threads": 4}),
        "long": optimum(0.5, sequence_length=1024),
    }
    files = {f"{name}/benchmark.json": json.dumps(entry) for name, entry in options.items()}
    report = json.dumps(options["plain"]["report"])
    runs, said = imported("optimum-benchmark", {**files, "plain/benchmark_report.json": report},
                          tmp_path)  # fmt: skip
    assert values_by_case(runs, "latency") == [[0.15, 0.1], [0.2], [0.3], [0.4], [0.5]]
    assert any("benchmark_report.json: holds the same figures" in line for line in said)


def test_an_optimum_report_has_the_configuration_beside_it(tmp_path: Path) -> None:
    files: dict[str, str] = {}
    for name, value, shapes in (
        ("a", 0.1, {}),
        ("b", 0.2, {"sequence_length": 64}),
        ("c", 0.3, {}),
    ):
        whole = optimum(value, **shapes)
        files[f"{name}/benchmark_report.json"] = json.dumps(whole["report"])
        if name != "c":
            files[f"{name}/benchmark_config.json"] = json.dumps(whole["config"])
    runs, _ = imported("optimum-benchmark", files, tmp_path)
    assert values_by_case(runs, "latency") == [[0.1], [0.2], [0.3]]
    assert {run.case.model for run in runs} == {"org/lm", ""}


def test_optimum_benchmark_gives_energy_and_efficiency_in_their_units(tmp_path: Path) -> None:
    energy = {"unit": "kWh", "cpu": 0.005, "ram": 0.002, "gpu": 0.075, "total": 0.082}
    efficiency = {"unit": "samples/kWh", "value": 12195.1}
    latency = {"unit": "s", "p50": 0.5, "mean": 0.6, "odd": 7.0}
    report = {
        "prefill": {"energy": energy, "efficiency": efficiency, "latency": None},
        "decode": {"latency": latency},
    }
    file = tmp_path / "benchmark_report.json"
    file.write_text(json.dumps(report))
    said = transfer.import_files("optimum-benchmark", file, {}, tmp_path / "results")
    actual = record_sets.load(tmp_path / "results" / "runs")
    assert {run.metrics[0][:4] for run in actual.runs} == {
        ("energy", 0.082, "kWh", "lower"),
        ("energy_cpu", 0.005, "kWh", "lower"),
        ("energy_gpu", 0.075, "kWh", "lower"),
        ("energy_ram", 0.002, "kWh", "lower"),
        ("efficiency", 12195.1, "samples/kWh", "higher"),
        ("latency", 0.5, "s", "lower"),
    }
    assert "not taken: decode.latency.odd: is not known" in said


# ---- milabench and NVIDIA ------------------------------------------------------------------------


def test_milabench_files_differ_by_arguments_and_devices(tmp_path: Path) -> None:
    text = samples.milabench()
    gpu = '{"event": "meta", "data": {"accelerators": {"gpus": {"0": {"product": "GPU"}}}}}\n'
    files = {
        "1/bert.D0.data": text,
        "2/bert.D0.data": text.replace("9.25", "9.5"),
        "3/bert.D0.data": text.replace('"--precision"', '"--compile": true, "--precision"'),
        "4/bert.D0.data": text.replace('{"event": "start"', gpu + '{"event": "start"'),
    }
    runs, said = imported("milabench", files, tmp_path)
    assert sorted(map(len, values_by_case(runs, "rate"))) == [1, 1, 2]
    assert "not taken: loss (train) (4): only the rate of the task train is taken" in said


def test_a_process_that_milabench_stopped_early_is_ok(tmp_path: Path) -> None:
    text = samples.milabench().replace('"return_code": 0', '"return_code": -15')
    (run,) = brought("milabench", text, tmp_path).runs
    assert (run.status, run.reason) == ("failed", "return code -15")
    end = text.index('{"event": "end"')
    stopped = text[:end] + '{"event": "stop", "data": {}, "pipe": null}\n' + text[end:]
    (run,) = brought("milabench", stopped, tmp_path, at="stopped").runs
    assert (run.status, run.figure) == ("ok", 155.0)


def test_nvidias_reports_of_a_folder_are_two_cases_of_unknown_precision(tmp_path: Path) -> None:
    text = samples.nvidia_report()
    files = {"amp.json": text, "tf32.json": text.replace("410.5", "205.25")}
    facts = {"model": "resnet50_v1.5", "nodes": 1}
    runs, _ = imported("nvidia-report", files, tmp_path, facts)
    trained = [run for run in runs if run.case.mode == "train" and run.status == "ok"]
    assert sorted((run.throughput, run.repeat) for run in trained) == [(205.25, 1), (410.5, 1)]
    assert {run.conditions.source_variant for run in trained} == {
        "file=given/amp.json", "file=given/tf32.json",
    }  # fmt: skip
    assert {run.case.batch_per_device for run in trained} == {192}
