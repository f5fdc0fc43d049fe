"""Every way a run can end, through the real command line."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ..bench import ROOT, Bench
from .validity import assert_outcome, assert_valid

RANK_KEYS_OF_A_MEASURED_RANK = {
    *("rank", "host", "status", "reason", "device", "cores", "framework_version", "settings"),
    *("trainable_parameters", "matmul_dtypes", "compiled", "phases", "warmup_step_seconds"),
    *("settled_after", "step_seconds", "run_ahead", "waited_step_seconds", "window_seconds"),
    *("first_value", "last_value", "peak_device_memory_bytes", "peak_host_memory_bytes"),
    "weights_checksum",
}


@pytest.mark.parametrize(("kind", "devices"), [("train", 1), ("inference", 2)])
def test_a_good_run_leaves_a_complete_record(toy: Bench, kind: str, devices: int) -> None:
    done = toy.run("sleep=0.01", kind=kind, devices_per_node=devices, repeat=3, seed=7)
    record = done.record
    assert done.status == 0, done.stderr
    assert_valid(record)
    assert (record["status"], record["reason"]) == ("ok", ""), "a good run is ok, without a reason"
    assert record["repeat"] == 3, "the repeat asked for is the one recorded"
    assert record["settings"]["seed"] == 7, "the seed asked for is the one recorded"
    assert record["kind"] == kind
    assert record["samples"] == 4 * devices * 5, "samples are global and of the window only"
    assert record["metrics"] == {
        "throughput": {
            "value": record["samples"] / record["window_seconds"],
            "unit": "samples/s",  # the unit in the model config
            "better": "higher",
        }
    }
    options = {"kind": kind, "devices_per_node": devices, "repeat": 3, "seed": 7}
    assert record["command"] == toy.command(**options, output=None, log=None)
    assert len(record["environment"]["code"]["computation"]) == 64, "no code is identified"
    assert len(record["ranks"]) == devices
    for rank in record["ranks"]:
        assert set(rank) >= RANK_KEYS_OF_A_MEASURED_RANK, "something was measured, not recorded"
        assert len(rank["warmup_step_seconds"]) == 2, "every warm-up step is kept raw"
        assert rank["settled_after"] is None, "too few steps to tell"
        assert len(rank["step_seconds"]) == 5, "every timed step is kept raw"
        assert rank["window_seconds"] >= 5 * 0.01, "the window lasts until the device is done"
        assert sum(rank["step_seconds"]) <= rank["window_seconds"], "steps lie in the window"
        assert rank["run_ahead"] == 1, "the toy's clock is a device"
        assert 1 <= len(rank["waited_step_seconds"]) <= 5
        assert min(rank["waited_step_seconds"]) >= 0.01, "a step was not waited for"
        phases = {"import", "framework", "build", "matmul_dtypes", "warmup", "window"}
        phases |= {"waited_window", *(["preflight"] if devices > 1 else [])}
        assert set(rank["phases"]) == {f"{name}_seconds" for name in phases}
    assert "ok: " in done.stdout, "the launcher says one line at the end"
    assert done.stdout.count("\n") == 1, "the launcher says one line at the end"


#: Case on two devices, each of which has its own points.
DRAWN: dict[str, Any] = {"devices_per_node": 2, "model": ROOT / "tests/models/toy_points.json"}


def test_ranks_train_together_on_cores_and_batches_of_their_own(toy: Bench) -> None:
    record = toy.run("", **DRAWN, cores_per_device=1).record
    assert_outcome(record, "ok")
    first, second = ranks = record["ranks"]
    assert first["batch_checksum"] != second["batch_checksum"], "both ranks got the same batch"
    assert first["first_value"] != second["first_value"], "both ranks got the same batch"
    assert first["weights_checksum"] == second["weights_checksum"], "the weights drifted apart"
    assert len(first["cores"]) == len(second["cores"]) == 1
    assert first["cores"] != second["cores"], "two devices share a core"
    for rank in ranks:
        assert rank["settings"]["omp_num_threads"] == "1", "threads are not the device's cores"
        assert rank["settings"]["threads"] == 1, "threads are not the device's cores"
        assert rank["settings"]["cuda_visible_devices"] == "", "a CPU run sees GPUs"


def test_ranks_with_one_batch_are_no_measurement(toy: Bench) -> None:
    record = toy.run("one_batch", **DRAWN, kind="inference").record
    assert record["reason"] == "Mismatch: replicas 0 and 1 had the same batch"
    assert record["status"] == "failed"


def test_the_slowest_rank_counts(toy: Bench) -> None:
    done = toy.run("exact,sleep=0.3,slow_rank=1", kind="inference", devices_per_node=2)
    fast, slow = (rank["window_seconds"] for rank in done.record["ranks"])
    assert slow > 2 * fast, "the toy was not slow in rank 1"
    assert done.record["window_seconds"] == slow, "throughput must come from the slowest rank"


@pytest.mark.parametrize(
    ("behaviour", "options", "status", "reason"),
    [
        ("oom", {}, "oom", "MemoryError: the toy box is full"),
        ("unsupported", {}, "unsupported", "the toy has no wheels"),
        ("system_exit_rank=0", {}, "failed", "SystemExit: 0"),
        ("wrong_parameters", {}, "failed", "3 trainable parameters, not 2"),
        ("nan_at=1", {}, "failed", "loss is nan at step 1"),
        ("nan_at=4", {"kind": "inference"}, "failed", "output is nan at step 7"),
        (
            "fp32_amp",
            {"precision": "amp"},
            "failed",
            "amp, but 161 of 161 matmuls ran in float32",
        ),
        ("", {"compiler": "fallback"}, "failed", "the compiler fell back"),
        ("exact,unsynchronised,sleep=0.06", {}, "failed", "before the work was complete"),
        ("repin", {"cores_per_device": 1}, "failed", "the framework moved to"),
        ("no_all_reduce", {"devices_per_node": 2}, "failed", "different weights"),
        ("lonely", {"devices_per_node": 2}, "failed", "an all-reduce of 1 gives 1 over 2 ranks"),
        ("crash_rank=1", {"devices_per_node": 2}, "failed", "rank 1 was killed by signal 11 (SIG"),
        ("exit_rank=1", {"devices_per_node": 2}, "failed", "rank 1 exited with status 3"),
        ("raise_rank=1", {"devices_per_node": 2}, "failed", "rank 1: RuntimeError: the toy is"),
    ],
)
def test_what_goes_wrong_is_said(
    toy: Bench, behaviour: str, options: dict[str, object], status: str, reason: str
) -> None:
    done = toy.run(behaviour, **options)
    assert done.status == 0, f"a status is data, not an error of the launcher: {done.stderr}"
    record = done.record
    assert_valid(record)
    assert_outcome(record, status, reason)
    assert len(record["reason"]) <= 320, "a reason is one sentence"
    assert record["metrics"]["throughput"]["value"] is None
    assert record["metrics"]["throughput"]["unit"] == "samples/s"
    assert record["samples"] is record["window_seconds"] is None
    assert reason in done.stdout, "the reason is on the terminal too"
    assert "NaN" not in toy.output.read_text(), "NaN is no JSON"


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"compiler": "xla"}, "toy has no compiler xla (it has: none, fallback)"),
        ({"precision": "bf16"}, "toy has no precision bf16 (it has: fp32, amp)"),
        ({"model": ROOT / "scripts/models/resnet50_v1.5.json"}, "no definition of the model res"),
    ],
)
def test_what_cannot_be_is_unsupported_without_starting_it(
    toy: Bench, options: dict[str, object], reason: str
) -> None:
    done = toy.run("crash_rank=0", **options)
    assert done.status == 0, done.stderr
    assert_valid(done.record)
    assert_outcome(done.record, "unsupported", reason)
    assert done.record["ranks"] == [], "ranks were started in vain"


def test_amp_that_takes_effect_is_ok(toy: Bench) -> None:
    record = toy.run("", precision="amp").record
    assert record["status"] == "ok", record["reason"]
    assert record["ranks"][0]["matmul_dtypes"] == {"float32": 1, "bfloat16": 20}


def test_an_error_keeps_its_traceback_and_its_log(toy: Bench) -> None:
    record = toy.run("raise_rank=0").record
    assert "the toy is broken\nand has more to say" in record["ranks"][0]["traceback"]
    assert "the toy is broken" in toy.log.read_text(), "the log does not show the error"
    assert record["framework_version"] == "1.0", "what was known before the error is kept"
    assert "watch" not in record, "nothing was timed"


def test_a_rank_that_hangs_after_its_result_does_not_spoil_it(toy: Bench) -> None:
    record = toy.run("hang_stop").record
    assert record["status"] == "ok", record["reason"]


def test_the_recorded_command_pasted_elsewhere_leaves_another_record(
    toy: Bench, tmp_path: Path
) -> None:
    arguments = {"framework": "tests/frameworks/toy", "model": "tests/models/toy.json"}
    relative = {**arguments, "output": os.path.relpath(toy.output, ROOT)}
    prefix = os.path.relpath(sys.prefix, ROOT)
    done = toy.run(
        "", f"--prefix={prefix}", cwd=ROOT, log=os.path.relpath(toy.log, ROOT), **relative
    )
    assert done.record["status"] == "ok", done.record["reason"]
    first, log = toy.output.read_bytes(), toy.log.read_bytes()
    elsewhere = tmp_path / "else where"
    elsewhere.mkdir()
    for name in ("random", "struct", "toy", "schema", "json"):  # the framework must not find these
        (elsewhere / f"{name}.py").write_text("raise SystemExit('the trap was imported')\n")
    for name in ("toy-toy-train-r1", "toy-toy-train-r1-2"):
        pasted = subprocess.run(
            shlex.join(done.record["command"]),
            shell=True,
            cwd=elsewhere,
            env=toy.environment(""),
            capture_output=True,
            text=True,
        )
        assert pasted.returncode == 0, pasted.stderr
        assert f"{elsewhere / name}.json" in pasted.stdout, "it must say where the record is"
        second = json.loads((elsewhere / f"{name}.json").read_text())
        assert_outcome(second, "ok")
        for key in ("case", "settings", "repeat", "command"):
            assert second[key] == done.record[key], f"{key} is another"
        assert second["started"] != done.record["started"], "the same record"
        assert (elsewhere / f"{name}.log").is_file()
    assert (toy.output.read_bytes(), toy.log.read_bytes()) == (first, log), "the first was touched"


def test_a_frameworks_folder_takes_the_same_options(toy: Bench) -> None:
    folder = ROOT / "scripts/frameworks/pytorch"
    words = ["--kind", "train", "--model", "resnet18", "--accelerator", "cpu", "--compiler", "xla"]
    words += ["--batch-per-device", "2", "--output", str(toy.output), "--log", str(toy.log)]
    ran = [
        subprocess.run(
            [toy.python, folder, *options], cwd=toy.folder, capture_output=True, text=True
        )
        for options in (words, ["--kind", "verification", "--help"])
    ]
    assert [each.returncode for each in ran] == [0, 0], ran[0].stderr
    record = json.loads(toy.output.read_text())
    assert_valid(record)
    assert (record["case"]["framework"], record["case"]["model"]) == ("pytorch", "resnet18")
    assert record["reason"].startswith("pytorch has no compiler xla")
    assert "reference" in ran[1].stdout, "the help lacks the benchmark's own parameters"
