"""Import of other tools' files: what is read, what is missing, and what is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from framebench.commands.reporting import make_report
from framebench.features.formats import transfer
from framebench.records import record_sets
from framebench.records.record_sets import RecordsError
from framebench.records.run import Run

from . import samples
from .importing import READ, brought, figures, one


def test_there_is_a_sample_of_every_format_that_is_read() -> None:
    assert sorted(samples.ALL) == READ


# ---- content ------------------------------------------------------------------------------------


def test_superbench_of_both_namings_is_per_device_and_no_throughput_of_ours(tmp_path: Path) -> None:
    actual = brought("superbench", samples.superbench(), tmp_path)
    taken = [
        (run.case.mode, run.case.model, run.case.precision, run.metrics[0].name,
         run.case.node, run.repeat, run.figure)
        for run in actual.runs
        if run.case.mode == "superbench_train"
    ]  # fmt: skip
    assert sorted(taken) == [
        ("superbench_train", "bert-base", "fp16", "step_time", "sb-01", 1, 83.9),
        ("superbench_train", "bert-base", "fp16", "step_time", "sb-01", 2, 84.1),
        ("superbench_train", "bert-base", "fp16", "step_time", "sb-02", 1, 90.5),
        ("superbench_train", "bert-base", "fp16", "throughput_per_device", "sb-01", 1, 381.4),
        ("superbench_train", "bert-base", "fp16", "throughput_per_device", "sb-02", 1, 353.5),
    ]
    assert not any(run.case.is_step for run in actual.runs)
    assert {run.case.batch_per_device for run in actual.runs} == {0}, "it does not say"


def test_superbench_keeps_ranks_zeros_and_return_codes(tmp_path: Path) -> None:
    actual = brought("superbench", samples.superbench(), tmp_path)
    bandwidth = [run for run in actual.runs if run.metrics[0].name == "allreduce_8388608_busbw"]
    assert {(dict(run.case.parameters)["rank"], run.figure) for run in bandwidth} == {
        ("0", 210.5),
        ("1", 0.0),
    }
    assert {run.metrics[0].unit for run in bandwidth} == {"GB/s"}
    (failed,) = (run for run in actual.runs if run.status != "ok")
    assert (failed.status, failed.reason) == ("failed", "return code 4")
    assert dict(failed.case.parameters) == {"benchmark": "gpu-burn"}


@pytest.mark.parametrize(("name", "figure"), [("dllogger", "seed")])
def test_a_figure_without_a_direction_is_not_taken_and_that_is_said(
    name: str, figure: str, tmp_path: Path
) -> None:
    file = tmp_path / "given"
    file.write_text(samples.ALL[name]())
    said = transfer.import_files(name, file, {}, tmp_path / "results")
    reason = "it is not known whether higher or lower is better"
    assert f"not taken: {figure}: {reason}" in said


def test_a_bare_nan_of_nvidia_is_a_failed_run(tmp_path: Path) -> None:
    facts = {"model": "resnet50_v1.5", "nodes": 1, "precision": "amp"}
    actual = brought("nvidia-report", samples.nvidia_report(), tmp_path, facts)
    steps = {
        (run.case.mode, run.case.devices_per_node): (run.status, run.throughput)
        for run in actual.runs
        if run.case.is_step
    }
    assert steps == {
        ("train", 1): ("ok", 410.5),
        ("train", 4): ("failed", None),
        ("inference", 1): ("ok", 1200.5),
        ("inference", 4): ("failed", None),
    }
    assert one(actual, metric="latency_99", devices_per_node=1).figure == 0.17


def test_what_nvidias_report_does_not_say_is_missing_until_it_is_said(tmp_path: Path) -> None:
    actual = brought("nvidia-report", samples.nvidia_report(), tmp_path)
    assert not any(run.case.is_step for run in actual.runs), "no model, no nodes"
    assert {run.case.mode for run in actual.runs} == {
        "nvidia_report_train", "nvidia_report_inference", "nvidia_inference",
    }  # fmt: skip
    assert {run.case.nodes for run in actual.runs} == {0}


def test_facts_that_contradict_the_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordsError, match="framework: found 'pytorch', but the file says 'mxnet'"):
        brought("nvidia-report", samples.nvidia_report(), tmp_path, {"framework": "pytorch"})
    with pytest.raises(RecordsError, match="nodes: found 3, but the file has 1 devices"):
        brought("nvidia-report", samples.nvidia_report(), tmp_path, {"nodes": 3})


def test_of_dllogger_the_summary_is_taken_with_its_units(tmp_path: Path) -> None:
    actual = brought("dllogger", samples.dllogger(), tmp_path, {"model": "electra_base"})
    taken = {run.metrics[0][:4] for run in actual.runs}
    assert taken == {
        ("training_sequences_per_second", 317.5, "sequences/s", "higher"),
        ("final_loss", 8.7, "", "lower"),
        ("e2e_train_time", 512.25, "s", "lower"),
    }, "the seed is no figure, and 300.0 is of an epoch"
    assert {run.case.model for run in actual.runs} == {"electra_base"}


def test_megatrons_first_interval_is_left_out(tmp_path: Path) -> None:
    actual = brought("megatron", samples.megatron(), tmp_path)
    assert one(actual, metric="step_time").figure == pytest.approx(1.001)
    assert one(actual, metric="samples_per_second").figure == pytest.approx(16 / 1.001)
    run = one(actual, metric="tflops_per_device")
    assert (run.figure, run.case.precision) == (149.1, "bf16")
    assert dict(run.case.parameters)["world_size"] == 8


def test_a_megatron_log_that_ends_early_failed(tmp_path: Path) -> None:
    actual = brought("megatron", samples.megatron(last=20), tmp_path)
    assert {run.status for run in actual.runs} == {"failed"}
    assert actual.runs[0].reason == "the log ends at iteration 20 of 45"


def test_milabench_gives_the_median_rate_of_a_process(tmp_path: Path) -> None:
    (run,) = brought("milabench", samples.milabench(), tmp_path).runs
    assert (run.figure, run.unit, run.case.model) == (155.0, "items/s", "bert-fp16")
    assert dict(run.case.parameters) == {"process": "D0", "batch_size": "32"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (samples.milabench(loss="NaN"), "the loss is nan in line 6"),
        (samples.milabench(ended=False), "the file ends without an end event"),
    ],
)
def test_milabench_with_a_loss_that_is_none_or_without_an_end_failed(
    text: str, reason: str, tmp_path: Path
) -> None:
    (run,) = brought("milabench", text, tmp_path).runs
    assert (run.status, run.reason) == ("failed", reason)


def test_optimum_benchmarks_training_throughput_is_not_taken(tmp_path: Path) -> None:
    actual = brought("optimum-benchmark", samples.optimum_benchmark(), tmp_path)
    rates = [run for run in actual.runs if run.metrics[0].name == "rate"]
    assert [(dict(run.case.parameters)["target"], run.figure) for run in rates] == [
        ("forward", 40.0)
    ]
    latencies = {
        dict(run.case.parameters)["target"]: run.figure
        for run in actual.runs
        if run.metrics[0].name == "latency"
    }
    assert latencies == {"forward": 0.05, "train": 0.5}
    assert {run.case.model for run in actual.runs} == {"bert-base-uncased"}


def test_of_a_foreign_mllog_the_time_to_train_is_taken(tmp_path: Path) -> None:
    (run,) = brought("mllog", samples.mllog(), tmp_path).runs
    assert run.metrics[0][:4] == ("time_to_train", 60.5, "s", "lower")
    (aborted,) = brought("mllog", samples.mllog("aborted"), tmp_path, at="other").runs
    assert (aborted.status, aborted.reason) == ("failed", "run_stop with status 'aborted'")


def test_pyperf_and_google_benchmark_keep_their_repeats(tmp_path: Path) -> None:
    actual = brought("pyperf", samples.pyperf(), tmp_path)
    assert figures(actual) == {
        ("pyperf", "json_loads", "value", 1): 0.011,
        ("pyperf", "json_loads", "value", 2): 0.02,
    }
    actual = brought("google-benchmark", samples.google_benchmark(), tmp_path, at="other")
    assert figures(actual) == {
        ("google_benchmark", "BM_copy/8", "real_time", 1): 11.25,
        ("google_benchmark", "BM_copy/8", "real_time", 2): 11.75,
    }, "an aggregate is no repeat"
    assert {run.metrics[0].better for run in actual.runs} == {"lower"}


def test_files_of_a_folder_are_repeats_of_each_other(tmp_path: Path) -> None:
    runs = tmp_path / "given"
    for number in (1, 2):
        (runs / f"run{number}").mkdir(parents=True)
        (runs / f"run{number}" / "bert-fp16.D0.data").write_text(samples.milabench(f"{number}.5"))
        (runs / f"run{number}" / "notes.txt").write_text("not looked at")
    transfer.import_files("milabench", runs, {}, tmp_path / "results")
    actual = record_sets.load(tmp_path / "results" / "runs")
    assert sorted(run.repeat for run in actual.runs) == [1, 2]
    (runs / "copy.data").write_text(samples.milabench("1.5"))
    said = transfer.import_files("milabench", runs, {}, tmp_path / "other")
    (line,) = (line for line in said if line.startswith("left out"))
    assert line == "left out: run1/bert-fp16.D0.data (of copy.data): are copies"


def test_files_that_number_their_repeats_alike_are_repeats_of_each_other(tmp_path: Path) -> None:
    runs = tmp_path / "given"
    runs.mkdir()
    (runs / "1.json").write_text(samples.pyperf())
    (runs / "2.json").write_text(samples.pyperf().replace("0.021", "0.031"))
    transfer.import_files("pyperf", runs, {}, tmp_path / "results")
    actual = record_sets.load(tmp_path / "results" / "runs")
    assert sorted(run.repeat for run in actual.runs) == [1, 2, 3, 4]


# ---- like ours ----------------------------------------------------------------------------------


def test_a_report_takes_what_was_imported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Fail if a report rejects imported records; one set has all formats, to save time."""
    runs: list[Run] = []
    lines: list[str] = []
    for name in READ:
        runs += brought(name, samples.ALL[name](), tmp_path, at=name).runs
        lines += (tmp_path / name / "runs" / "runs.csv").read_text().splitlines()[bool(lines) :]
    results = tmp_path / "results"
    (results / "runs").mkdir(parents=True)
    (results / "runs" / "runs.csv").write_text("".join(f"{line}\n" for line in lines))
    make_report(results / "runs", results)
    assert "ignored" not in capsys.readouterr().err
    tables = "".join(path.read_text() for path in (results / "tables").glob("*.csv"))
    for run in runs:
        assert run.figure is None or f"{run.figure:g}"[:4] in tables, f"{run} is in no table"
    page = (results / "report.html").read_text()
    assert "0n0g" not in tables + page, "devices that none named"
    assert not re.search(r"\bb0\b|\bbatch 0\b|batch per device\">0<", page), (
        "a batch that none named"
    )
