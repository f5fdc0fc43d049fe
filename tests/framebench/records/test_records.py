"""Reading of records and CSV files: validation, refusals, and independence of order."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from core import axes
from framebench.cases.conditions import Conditions
from framebench.cases.names import topology_of
from framebench.records import record_files, record_sets, tidy_csv
from framebench.records.fields import GradientAllReduce
from framebench.records.record_sets import RecordSet
from framebench.records.run import RecordsError, Run
from framebench.tables import columns

from ..saved_records import ROW, Record, failed, messages, metrics, record, save, save_csv

# ---- records -------------------------------------------------------------------------------------


def test_a_record_becomes_a_run(tmp_path: Path) -> None:
    path = save(tmp_path, "pytorch/case/r3.json", record(repeat=3, seconds=(0.25, 0.75)))
    (run,) = record_sets.load(tmp_path).runs
    case = run.case
    assert (case.framework, case.framework_version, case.source) == (
        "pytorch",
        "2.8.0",
        "framebench",
    )
    assert (topology_of(case), case.batch_per_device) == ("1n2g", 4)
    assert (run.repeat, run.attempt, run.status, run.reason) == (3, 0, "ok", "")
    assert (run.throughput, run.unit, run.wall_seconds) == (16.0, "sentences/s", 9.5)
    assert run.started == 1735689600.0
    assert run.step_seconds == (0.25, 0.75), "the slowest rank's steps count"
    assert run.conditions == Conditions(
        accelerator="cpu", cores_per_device=1, warmup_steps=1, timed_steps=2
    )
    assert run.case.sequence_length == 128
    assert (run.origin, run.record) == ("pytorch/case/r3.json", path)
    assert run.hardware == "Xeon"
    assert record_files.read(path)["command"] == ["python"]


@pytest.mark.parametrize(
    ("fields", "seconds", "where"),
    [
        ({}, (0.25, 0.75), ""),  # an older record lacks the field
        ({"run_ahead": 0}, (0.25, 0.75), "window of the throughput"),
        ({"run_ahead": 1, "waited_step_seconds": [0.5]}, (0.5,), "window of their own"),
        ({"run_ahead": 1}, (), "nowhere"),  # the run ended before steps were timed
    ],
)
def test_steps_that_were_waited_for_are_distinguished_from_those_that_overlapped(
    tmp_path: Path, fields: Record, seconds: tuple[float, ...], where: str
) -> None:
    content = record(repeat=3, seconds=(0.25, 0.75))
    content["ranks"][1].update(fields)
    save(tmp_path, "pytorch/case/r3.json", content)
    (run,) = record_sets.load(tmp_path).runs
    assert run.step_seconds == (0.25, 0.75)
    assert (run.waited_seconds, run.waited_in) == (seconds, where)


def test_gpus_stand_in_the_label_and_cores_are_no_condition_of_them(tmp_path: Path) -> None:
    environment = record()["environment"]
    gpu = {"name": "V100", "memory_bytes": 1, "driver": "1", "uuid": "u"}
    environment["hardware"]["gpus"] = [gpu, {**gpu, "uuid": "w"}]
    settings = {"accelerator": "cuda", "cores_per_device": None}
    changes = {"settings": settings, "case": {"sequence_length": None}}
    save(tmp_path, "c/r1.json", record(environment=environment, **changes))
    (run,) = record_sets.load(tmp_path).runs
    assert run.conditions == Conditions(accelerator="cuda", warmup_steps=1, timed_steps=2)
    assert run.hardware == "V100, Xeon"


def test_the_latest_attempt_of_a_repeat_counts(tmp_path: Path) -> None:
    save(tmp_path, "c/r1.json", failed("timeout", "too slow"))
    save(tmp_path, "c/r1-retry1.json", failed("failed", "broke"))
    save(tmp_path, "c/r1-retry10.json", record())
    save(tmp_path, "c/r1-retry2.json", failed("oom", "too big"))
    save(tmp_path, "c/r2.json", failed("oom", "too big", repeat=2))
    save(tmp_path, "c/r2-retry1.json", json.dumps(record(repeat=2))[:200])
    actual = record_sets.load(tmp_path)
    assert [(run.repeat, run.attempt, run.status) for run in actual.runs] == [
        (1, 10, "ok"),
        (2, 0, "oom"),
    ]


def test_a_failed_run_has_no_number_even_if_its_record_has(tmp_path: Path) -> None:
    save(tmp_path, "c/r1.json", record(status="failed", reason="the loss is NaN"))
    (run,) = record_sets.load(tmp_path).runs
    assert (run.status, run.throughput) == ("failed", None)


BROKEN = {
    "truncated": (json.dumps(record())[:-40], "is not complete JSON"),
    "foreign": ('{"benchmarks": []}', "not a Framebench record"),
    "no throughput of steps": (
        json.dumps(record(metrics={"rate": metrics(1.0)["throughput"]})),
        "throughput",
    ),
    "extra key": (json.dumps(record(speed=1)), "breaks the record schema"),
    "unknown status": (json.dumps(record(status="fine")), "status: found 'fine'; allowed: 'ok'"),
    "no throughput": (json.dumps(record(metrics=metrics(None))), "throughput is None"),
    "a mean of rates": (
        json.dumps(record(seconds=(0.4, 3.6), metrics=metrics((8 / 0.4 + 8 / 3.6) / 2))),
        "16 samples in 4.0 s are 4.0",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", BROKEN)
def test_what_is_no_record_is_a_problem_and_stops_nothing(kind: str, tmp_path: Path) -> None:
    content, expected = BROKEN[kind]
    save(tmp_path, "bad/r1.json", content)
    save(tmp_path, "good/r1.json", record())
    actual = record_sets.load(tmp_path)
    assert [run.origin for run in actual.runs] == ["good/r1.json"]
    assert [problem.origin for problem in actual.problems] == ["bad/r1.json"]
    assert expected in actual.problems[0].message


def test_text_that_no_page_can_hold_is_shown_as_its_escape(tmp_path: Path) -> None:
    variables = {"LD_LIBRARY_PATH": "/opt/caf\udce9", "X": "\x1b[31m\u202e"}
    environment = elsewhere(variables=variables)
    path = save(tmp_path, "c/r1.json", failed(reason="a\x1b[2J\nb", environment=environment))
    (run,) = record_sets.load(tmp_path).runs
    assert run.reason == "a\\x1b[2J\nb"
    actual = record_files.read(path)["environment"]["variables"]
    assert actual == {"LD_LIBRARY_PATH": "/opt/caf\\udce9", "X": "\\x1b[31m\\u202e"}


def test_a_copied_record_is_counted_once(tmp_path: Path) -> None:
    save(tmp_path, "c/r1.json", record())
    save(tmp_path, "c copy/r1.json", record())
    actual = record_sets.load(tmp_path)
    assert len(actual.runs) == 1
    assert "c copy/r1.json: is a copy of c/r1.json" in messages(actual)


def test_files_still_being_written_are_not_looked_at(tmp_path: Path) -> None:
    save(tmp_path, "c/.r1.json", "{")
    save(tmp_path, "c/r1.json.tmp", "{")
    save(tmp_path, ".cache/r1.json", "{")
    assert record_sets.load(tmp_path) == RecordSet((), (), tmp_path)


def test_a_run_that_died_before_the_import_stays_with_its_case(tmp_path: Path) -> None:
    save(tmp_path, "c/r1.json", record())
    save(tmp_path, "c/r2.json", failed(repeat=2, framework_version=""))

    def versions() -> set[str]:
        return {run.case.framework_version for run in record_sets.load(tmp_path).runs}

    assert versions() == {"2.8.0"}
    save(tmp_path, "c/r3.json", record(repeat=3, framework_version="2.7.0"))
    assert versions() == {"", "2.7.0", "2.8.0"}


def elsewhere(**changes: Any) -> Record:
    return {**record()["environment"], **changes}


def test_runs_of_other_hardware_share_neither_row_nor_ratio(tmp_path: Path) -> None:
    other = elsewhere(hardware={"cpu": "EPYC", "gpus": []})
    save(tmp_path, "one/r1.json", record(case={"devices_per_node": 1}))
    save(tmp_path, "two/r1.json", record(environment=other))
    save(tmp_path, "tf/r1.json", record(case={"framework": "tensorflow"}))
    labels = {run.origin: run.conditions.machine for run in record_sets.load(tmp_path).runs}
    assert "" != labels["one/r1.json"] != labels["two/r1.json"] != ""
    assert not labels["tf/r1.json"], "only runs that collide are labelled"


PROCESSOR = {
    "family": "25", "model": "17", "stepping": "1", "logical_cores": 8,
    "caches": {"L3 Unified": "36608K"}, "instruction_sets": ["avx512f", "avx2"],
}  # fmt: skip


def on_host(name: str, memory: float = 15.5, **changes: Any) -> Record:
    """Return a record of one of many machines with equal processors; ``memory``: in GiB."""
    hardware = {"cpu": "Xeon", "gpus": [], "memory_bytes": int(memory * 2**30), **changes}
    return elsewhere(hardware=hardware, system={"host": name})


def machines_of(tmp_path: Path, *environments: Record) -> list[str]:
    for number, environment in enumerate(environments, 1):
        # A different start: a copy would be counted once.
        started = f"2025-01-01T00:00:{number:02d}Z"
        changes = {"environment": environment, "started": started}
        save(tmp_path, f"c/r{number}.json", record(repeat=number, **changes))
    runs = sorted(record_sets.load(tmp_path).runs, key=lambda run: run.repeat)
    assert len(runs) == len(environments)
    return [run.conditions.machine for run in runs]


@pytest.mark.parametrize(
    "other",
    [
        on_host("b"),
        on_host("a", memory=31.0),
        on_host("a", processor={**PROCESSOR, "instruction_sets": ["avx2"]}),
    ],
    ids=["host", "memory", "instruction_sets"],
)
def test_machines_with_processors_of_the_same_name_are_distinguished(
    tmp_path: Path, other: Record
) -> None:
    first, second = machines_of(tmp_path, on_host("a", processor=PROCESSOR), other)
    assert "" != first != second != "", "two machines are one case"


def test_nodes_that_a_scheduler_chose_are_one_machine_where_their_hardware_is(
    tmp_path: Path,
) -> None:
    def job(name: str, **changes: Any) -> Record:
        made = on_host(name, processor={**PROCESSOR, **changes}, memory=15.5 + 0.01 * ord(name))
        return {**made, "scheduler": {"name": "slurm", "job": "1"}}

    assert machines_of(tmp_path, job("a"), job("b")) == ["", ""], "a run may go to any node"
    a, b, other = machines_of(tmp_path, job("a"), job("b"), job("c", stepping="2"))
    assert a == b != other


def test_a_later_attempt_on_another_machine_replaces_none_of_this_one(tmp_path: Path) -> None:
    save(tmp_path, "c/r1.json", record(environment=on_host("a")))
    save(tmp_path, "c/r1-retry1.json", record(environment=on_host("b"), seconds=(0.5, 0.5)))
    actual = record_sets.load(tmp_path)
    assert [run.attempt for run in actual.runs] == [0, 1], "a machine's record has vanished"
    save(tmp_path, "c/r1-retry2.json", record(environment=on_host("a"), seconds=(1.0, 1.0)))
    actual = record_sets.load(tmp_path)
    assert sorted(run.attempt for run in actual.runs) == [1, 2]


def test_runs_of_other_packages_are_distinguished(tmp_path: Path) -> None:
    other = elsewhere(packages={"torch": "2.8.0", "numpy": "2.0"})
    nothing = elsewhere(packages={})
    save(tmp_path, "a/r1.json", record())
    save(tmp_path, "b/r1.json", record(environment=other))
    save(tmp_path, "c/r1.json", failed(environment=nothing))
    save(tmp_path, "d/r1.json", record(environment=elsewhere(install_method="conda")))
    marks = {run.origin: run.conditions.environment for run in record_sets.load(tmp_path).runs}
    assert len(marks["a/r1.json"]) == len(marks["b/r1.json"]) == 6
    assert len({marks[f"{text}/r1.json"] for text in "abd"}) == 3
    assert marks["c/r1.json"] == "", "an environment that was not captured is no other one"


def test_variants_with_other_packages_are_compared(tmp_path: Path) -> None:
    def marks() -> set[str]:
        return {run.conditions.environment for run in record_sets.load(tmp_path).runs}

    def of(variant: str) -> dict[str, Any]:
        return {**record()["settings"], "variant": variant}

    other = elsewhere(packages={"torch": "2.8.0", "numpy": "2.0"})
    save(tmp_path, "a/r1.json", record(settings=of("base")))
    save(tmp_path, "b/r1.json", record(settings=of("new"), environment=other))
    assert marks() == {""}
    save(tmp_path, "b/r2.json", record(settings=of("new"), repeat=2))
    assert len(marks()) == 3, "a variant has two environments"


# ---- CSV -----------------------------------------------------------------------------------------


def test_a_folder_with_runs_csv_and_the_file_itself_give_the_same_runs(tmp_path: Path) -> None:
    rows = [{**ROW, "input_pipeline": "dali", "variant": "workers=8;x"}, {**ROW, "repeat": "2"}]
    path = save_csv(tmp_path / "runs.csv", rows)
    actual = record_sets.load(path)
    assert actual == record_sets.load(tmp_path)
    conditions = {(run.conditions.input, run.conditions.source_variant) for run in actual.runs}
    assert conditions == {("dali", "workers=8;x"), ("native", "")}
    assert [run.origin for run in actual.runs] == ["runs.csv:3", "runs.csv:2"]
    assert actual.runs[0].throughput == 3008.52
    assert (actual.runs[0].step_seconds, actual.runs[0].record) == ((), None)


BAD_CELLS = [
    ("throughput", "0.0"),  # DLPerf: an unfinished log counts as 0.0 and enters the median
    ("throughput", "NaN"),  # NVIDIA: a failed cell is a bare NaN
    ("mode", "training"),
]


@pytest.mark.parametrize(("column", "text"), BAD_CELLS)
def test_a_bad_cell_is_a_problem_with_line_column_and_what_is_allowed(
    column: str, text: str, tmp_path: Path
) -> None:
    rows = [ROW, {**ROW, "repeat": "2", column: text}, {**ROW, "repeat": "3"}]
    actual = record_sets.load(save_csv(tmp_path / "runs.csv", rows))
    assert [run.repeat for run in actual.runs] == [1, 3], "good rows stay"
    (problem,) = actual.problems
    assert problem.origin == "runs.csv:3"
    assert f"line 3, column {column}: found " in problem.message
    assert "allowed: " in problem.message


OF_METRIC = {
    **{name: "" for name in tidy_csv.COLUMNS if name != "throughput"},
    **{"source": "superbench", "mode": "copy", "repeat": "1"},
    **{"metric": "latency", "value": "0", "unit": "ms", "better": "lower"},
}


def test_a_figure_of_any_kind_may_leave_out_what_is_not_known(tmp_path: Path) -> None:
    more = {"parameters": '{"bytes": 64}', "cores_per_device": "2", "side_by_side": "True"}
    actual = record_sets.load(save_csv(tmp_path / "a.csv", [{**OF_METRIC, **more}]))
    (run,) = actual.runs
    assert [metric[:4] for metric in run.metrics] == [("latency", 0.0, "ms", "lower")]
    assert (run.case.framework, run.case.nodes, run.case.parameters) == ("", 0, (("bytes", 64),))
    assert (run.conditions.cores_per_device, run.conditions.side_by_side) == (2, True)
    (row,) = tidy_csv.rows_of(run)
    assert tidy_csv.run_of(row, run.origin) == run


def test_an_axis_with_numbers_keeps_its_fractions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    axis = replace(axes.BY_NAME["accumulation"], form=axes.NUMBER, type=float)
    monkeypatch.setattr(
        axes, "CONDITIONS", (*(a for a in axes.CONDITIONS if a.name != axis.name), axis)
    )
    rows = [{**ROW, axis.name: "0.25"}, {**ROW, "repeat": "2", axis.name: "many"}]
    actual = record_sets.load(save_csv(tmp_path / "runs.csv", rows))
    assert [run.case.accumulation for run in actual.runs] == [0.25]
    assert "line 3, column accumulation: " in messages(actual)
    assert columns._load()[axis.name].type == columns.NUMBER


STEPS = {"framework": "jax", "model": "m", "nodes": "1", "devices_per_node": "1",
         "batch_per_device": "1"}  # fmt: skip


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({**OF_METRIC, "mode": "Copy it"}, "column mode: found 'Copy it'"),
        (
            {**OF_METRIC, "mode": "train", **STEPS},
            "column metric: found 'latency'; allowed: for steps throughput",
        ),
        ({**ROW, "status": "failed", "throughput": "0.0"}, "allowed: nothing beside status failed"),
    ],
)
def test_a_row_that_is_no_figure_is_a_problem(
    row: dict[str, str], expected: str, tmp_path: Path
) -> None:
    actual = record_sets.load(save_csv(tmp_path / "a.csv", [row]))
    assert not actual.runs
    assert expected in messages(actual)


def test_a_repeat_that_stands_twice_is_refused(tmp_path: Path) -> None:
    # DLPerf keys results by model alone, so that some overwrite others; here nothing is
    # overwritten.
    rows = [ROW, {**ROW, "throughput": "1.0"}, {**ROW, "compiler": "xla"}]
    actual = record_sets.load(save_csv(tmp_path / "runs.csv", rows))
    assert sorted((run.case.compiler, run.throughput) for run in actual.runs) == [
        ("none", 3008.52),
        ("xla", 3008.52),
    ]
    assert "which runs.csv:2 already has" in messages(actual)


def test_short_and_long_rows_are_problems(tmp_path: Path) -> None:
    path = save_csv(tmp_path / "runs.csv", [ROW])
    with path.open("ab") as file:
        file.write(b"a,b\r\n\r\n" + b",".join([b"x"] * 16) + b"\r\n")
    actual = record_sets.load(path)
    assert len(actual.runs) == 1
    assert [problem.origin for problem in actual.problems] == ["runs.csv:3", "runs.csv:5"]
    assert "found 2 cells; allowed: 15" in messages(actual)


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (tidy_csv.COLUMNS[:-1], "missing: unit"),
        ([*tidy_csv.COLUMNS, "colour"], "not known: colour"),
    ],
)
def test_wrong_columns_are_named(columns: Sequence[str], expected: str, tmp_path: Path) -> None:
    path = save(tmp_path, "runs.csv", ",".join(columns))
    with pytest.raises(RecordsError, match=expected):
        record_sets.load(path)


def test_a_path_that_is_no_set_of_records_gives_one_clear_message(tmp_path: Path) -> None:
    with pytest.raises(RecordsError, match="does not exist; allowed: a folder or a CSV file"):
        record_sets.load(tmp_path / "nowhere")
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(RecordsError, match="neither a folder of records nor a CSV"):
        record_sets.load(tmp_path / "notes.txt")


# ---- the set -------------------------------------------------------------------------------------


def run_of(tmp_path: Path, *fields: dict[str, Any]) -> Run:
    made = record()
    for rank, more in zip(made["ranks"], fields, strict=True):
        rank |= more
    save(tmp_path, "c/r1.json", made)
    (run,) = record_sets.load(tmp_path).runs
    return run


def exchanged(*seconds: float, reason: str = "") -> dict[str, Any]:
    sizes = [] if reason else [4000, 16]
    return {"gradient_all_reduce": {"reason": reason, "bytes": sizes, "seconds": [*seconds]}}


def test_a_round_of_the_gradients_takes_as_long_as_the_slowest_rank(tmp_path: Path) -> None:
    run = run_of(tmp_path, exchanged(0.1, 0.5, 0.1), exchanged(0.2, 0.2, 0.3))
    assert run.gradient_all_reduce == GradientAllReduce((0.2, 0.5, 0.3), 2, (4000, 16))


@pytest.mark.parametrize(
    "ranks", [({}, {}), (exchanged(0.1), {}), (exchanged(reason="it does not tell"),) * 2]
)
def test_without_rounds_of_all_ranks_nothing_is_known_of_the_gradients(
    tmp_path: Path, ranks: tuple[Any, Any]
) -> None:
    assert run_of(tmp_path, *ranks).gradient_all_reduce is None
