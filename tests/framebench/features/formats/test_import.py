"""Import of other tools' files: figures that are read, missing or refused."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from framebench.cli import make_report
from framebench.records.run import RecordsError, Run

from . import samples
from .samples import READ, brought, imported, values_by_case


def test_of_dllogger_the_summary_is_taken_with_its_units(tmp_path: Path) -> None:
    runs, said = imported("dllogger", {"log.json": samples.dllogger()}, tmp_path)
    assert {run.metrics[0][:4] for run in runs} == {
        ("training_sequences_per_second", 317.5, "sequences/s", "higher"),
        ("final_loss", 8.7, "", "lower"),
        ("e2e_train_time", 512.25, "s", "lower"),
    }, "the seed is no figure, and 300.0 is of an epoch"
    assert any("seed: it is unknown whether higher or lower is better" in line for line in said)


def test_of_a_foreign_mllog_the_time_to_train_is_taken(tmp_path: Path) -> None:
    (run,) = brought("mllog", samples.mllog(), tmp_path).runs
    assert run.metrics[0][:4] == ("time_to_train", 60.5, "s", "lower")
    (aborted,) = brought("mllog", samples.mllog("aborted"), tmp_path, at="other").runs
    assert (aborted.status, aborted.reason) == ("failed", "run_stop with status 'aborted'")


# ---- like ours ----------------------------------------------------------------------------------


def test_a_report_takes_what_was_imported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
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


def test_what_is_wrong_in_a_folder_is_left_out_by_name_and_the_rest_is_taken(
    tmp_path: Path,
) -> None:
    text = samples.mllog()
    slower = text.replace('"time_ms": 1000', '"time_ms": 900')
    files = {"a.log": text, "b.log": slower, "c.log": "no\n", "d.csv": ""}
    runs, said = imported("mllog", files, tmp_path)
    assert sorted(run.repeat for run in runs) == [1, 2], "files of a folder are repeats"
    assert any("left out: c.log: is of another format" in line for line in said)


# ---- MLPerf --------------------------------------------------------------------------------------


def mllog(seconds: float = 10.0, *, prefix: str = "", stop: bool = True, **told: Any) -> str:
    """Return a log without event types, as launchers and ranks write it."""

    def event(time: int, key: str, value: Any = None, **metadata: Any) -> str:
        line = {"time_ms": time, "key": key, "value": value, "metadata": metadata}
        return f"{prefix}:::MLLOG {json.dumps(line)}\n"

    lines = [
        "+ srun bash run.sh\n",
        event(500, "seed", 17 + int(seconds)),
        event(500, "init_start"),
    ]
    lines += [event(900, key, value) for key, value in told.items()]
    lines += [event(1000, "run_start"), event(1500, "eval_accuracy", 0.5), "slurmstepd: a line\n"]
    if stop:
        lines.append(event(1000 + int(1000 * seconds), "run_stop", status="success"))
    return "".join([*lines, "RESULT,BERT,,10"])


def test_mllog_keeps_apart_whatever_was_logged_before_the_run(tmp_path: Path) -> None:
    values = {"submission_benchmark": "bert", "submission_platform": "1xA"}
    files = {
        "a/result_0.txt": mllog(10, **values),
        "a/result_1.txt": mllog(11, **values),
        "b/result_0.log": mllog(20, **{**values, "submission_platform": "1xB"}),
        "c/result_0.out": mllog(30, **values, submission_division="open"),
        "d/result_0.txt": mllog(40, **values, opt_name="lamb"),
    }
    runs, said = imported("mllog", files, tmp_path)
    assert values_by_case(runs, "time_to_train") == [[10, 11], [20], [30], [40]]
    assert {run.case.model for run in runs} == {"bert"}
    assert any("eval_accuracy (5)" in line for line in said)


def test_an_mllog_that_ends_early_is_a_failed_repeat(tmp_path: Path) -> None:
    files = {
        "0.log": mllog(10, submission_benchmark="bert"),
        "1.log": mllog(11, submission_benchmark="bert", stop=False),
        "2.log": mllog(11, submission_benchmark="bert").partition(":::MLLOG {" + '"time_ms": 1000')[
            0
        ],
    }
    runs, _ = imported("mllog", files, tmp_path)
    assert [(run.repeat, run.status) for run in runs] == [(1, "ok"), (2, "failed"), (3, "failed")]
    assert "without a run_stop" in runs[1].reason
    assert "without a run_start" in runs[2].reason


def test_an_mllog_of_several_ranks_lasts_from_the_first_start_to_the_last_stop(
    tmp_path: Path,
) -> None:
    first = mllog(10, prefix="0: ", submission_benchmark="bert").splitlines()
    second = mllog(12, prefix="1: ", submission_benchmark="bert").splitlines()
    both = [line for pair in zip(first, second, strict=True) for line in pair]
    (run,) = brought("mllog", "\n".join(both), tmp_path).runs
    assert run.figure == 12


# ---- DLLogger ------------------------------------------------------------------------------------


def logged(step: Any, **data: Any) -> str:
    return f"0: DLLL {json.dumps({'type': 'LOG', 'step': step, 'data': data})}\n"


def test_a_dllogger_log_without_any_figure_says_what_it_has(tmp_path: Path) -> None:
    with pytest.raises(
        RecordsError, match=r"no summary with a figure of known direction; it has lr"
    ) as error:
        brought("dllogger", logged(1, lr=0.1), tmp_path)
    assert "did not end" not in str(error.value)


def test_dllogger_logs_of_two_configurations_are_two_cases(tmp_path: Path) -> None:
    def text(batch: int, rate: float) -> str:
        return logged("PARAMETER", batch_size=batch, seed=int(rate)) + logged([], throughput=rate)

    files = {"a/log.json": text(8, 1.0), "b/log.json": text(8, 2.0), "c/log.json": text(16, 3.0)}
    runs, _ = imported("dllogger", files, tmp_path)
    assert values_by_case(runs, "throughput") == [[1.0, 2.0], [3.0]]


def test_a_log_of_several_runs_is_refused(tmp_path: Path) -> None:
    text = "".join(
        logged("PARAMETER", batch_size=8) + logged([], throughput=rate) for rate in (1.0, 2.0)
    )
    for name, given in (("dllogger", text), ("mllog", mllog(10.0) + "\n" + mllog(11.0))):
        with pytest.raises(RecordsError, match="allowed: the log of one run"):
            brought(name, given, tmp_path)


# ---- all ----------------------------------------------------------------------------------------
