"""Import of other tools' files: what is read, what is missing, and what is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from framebench.commands.reporting import make_report
from framebench.features.formats import transfer
from framebench.records.run import Run

from . import samples
from .importing import READ, brought

# ---- content ------------------------------------------------------------------------------------


def test_superbench_is_per_device_and_no_throughput_of_ours(tmp_path: Path) -> None:
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
    said = transfer.import_files(name, file, tmp_path / "results")
    reason = "it is not known whether higher or lower is better"
    assert f"not taken: {figure}: {reason}" in said


def test_of_dllogger_the_summary_is_taken_with_its_units(tmp_path: Path) -> None:
    actual = brought("dllogger", samples.dllogger(), tmp_path)
    taken = {run.metrics[0][:4] for run in actual.runs}
    assert taken == {
        ("training_sequences_per_second", 317.5, "sequences/s", "higher"),
        ("final_loss", 8.7, "", "lower"),
        ("e2e_train_time", 512.25, "s", "lower"),
    }, "the seed is no figure, and 300.0 is of an epoch"


def test_of_a_foreign_mllog_the_time_to_train_is_taken(tmp_path: Path) -> None:
    (run,) = brought("mllog", samples.mllog(), tmp_path).runs
    assert run.metrics[0][:4] == ("time_to_train", 60.5, "s", "lower")
    (aborted,) = brought("mllog", samples.mllog("aborted"), tmp_path, at="other").runs
    assert (aborted.status, aborted.reason) == ("failed", "run_stop with status 'aborted'")


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
