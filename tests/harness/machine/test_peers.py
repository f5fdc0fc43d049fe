"""Measuring defects of other benchmarks: the peer's figure from data that show the defect, and
ours. Defects of records and tables are in tests/framebench/records/test_peers.py."""

from __future__ import annotations

import importlib.util
import json
import os
import resource
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from framebench.records import record_sets
from framebench.records.fields.disturbance import disturbed
from framebench.records.run import Run
from framebench.tables import grouping
from harness import kinds, launcher, rank
from harness.adapter import ExecutedMatmul, MatmulTrace, Mismatch, RankContext
from harness.kind import Context, Workload
from harness.measuring import checks, synthetic
from harness.measuring.loading import load_adapter
from harness.messages import report
from harness.record import record
from harness.record.schema import record_schema
from harness.request import command_line, declaration
from harness.telemetry import nvml

from ...bench import ROOT, Bench
from ...framebench.made_up_runs import build
from ...framebench.saved_records import messages, save
from ...framebench.saved_records import record as valid_record
from ...framebench.table_rows import only
from ...frameworks.models import BERT, RESNET, model_config_of, trained_parameters
from ..fake_sensors import GPU, VARIABLES
from ..recorder import Recorder
from .fake_machine import FakeNvml
from .watch_samples import summarized, watch_sample


class Clocked(MatmulTrace, Recorder):
    """Adapter whose steps take the given seconds, on a fake clock.
    The wall clock is set back by an hour after 60 steps."""

    def __init__(self, seconds: Sequence[float], batch: int) -> None:
        super().__init__()
        self.case = self.case._replace(batch_per_device=batch)
        self.model_config = {"inputs": [], "trainable_parameters": 0}
        self.seconds = iter(seconds)
        self.now = 1000.0
        self.wall = [self.now]

    def step(self) -> Any:
        self.now += next(self.seconds)
        self.wall.append(self.now - 3600 * (len(self.wall) > 60))

    def blocking(self) -> bool:
        return True  # its time passes in the step

    def version(self) -> str:
        return "1"

    def matmuls(self, forward_only: bool) -> list[ExecutedMatmul]:
        return [ExecutedMatmul("float32")]


@dataclass
class Lab:
    """Runs of a :class:`Clocked`, measured, recorded, read and tabled."""

    folder: Path

    def run(
        self,
        seconds: Sequence[float],
        warmup: int,
        timed: int,
        batch: int = 1,
        limit: int | None = None,
    ) -> Run:
        """Return the run as the tables get it. Unneeded ``seconds`` are not used."""
        adapter = Clocked(seconds, batch)
        arguments = ["--framework", "f", "--model", "m", "--kind", "train", "--accelerator", "cpu"]
        arguments += ["--batch-per-device", str(batch), "--output", "o", "--log", "l"]
        arguments += ["--warmup-steps", str(warmup), "--timed-steps", str(timed)]
        request = command_line.parse(arguments + (["--warmup-limit", str(limit)] if limit else []))
        model_config = {"unit": "images/s", "hyperparameters": {}, **adapter.model_config}
        workload = Workload(
            adapter.case, model_config, {"breakdown_steps": 0}, warmup, limit, timed
        )
        left = report.Report(str(self.folder), 0, "host")
        kind = kinds.load("train")
        context = Context(workload, adapter.rank_context, adapter, [], left)
        with (
            patch.object(time, "perf_counter", lambda: adapter.now),
            patch.object(time, "time", lambda: adapter.wall[-1]),
        ):
            rank.start_framework(context)
            kind.measure(context)
        left.succeed()
        task = declaration.Task(request, kind, None, workload)
        ranks = [report.read(str(self.folder), 0)[2]]
        created = record.assemble(
            task,
            record.Measured("ok", "", ranks, metrics=launcher.metrics_of(kind, workload, ranks)),
            valid_record()["environment"],
            ["python"],
            record.Started.at(time.monotonic()),
            "1",
        )
        content = record.encode(record.checked(created, record_schema()))
        save(self.folder / "runs", "r1.json", content)
        loaded = record_sets.load(self.folder / "runs")
        assert not loaded.problems, messages(loaded)
        return loaded.runs[0]


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)


def tabled(*benches: Bench) -> list[dict[str, Any]]:
    """Return the rows of the summary with the records of these benches, in order."""
    loaded = [record_sets.load(bench.output.parent).runs for bench in benches]
    return [only(build(runs)["summary"]) for runs in loaded]


def benches(toy: Bench, count: int) -> list[Bench]:
    """Return benches whose processes count as those of ``toy``."""
    created = [Bench(toy.folder / str(number), toy.python, toy.marker) for number in range(count)]
    for bench in created:
        bench.folder.mkdir()
    return created


# ---- DLPerf -------------------------------------------------------------------------------------


def test_a_window_of_a_hundred_steps_has_a_hundred_intervals(lab: Lab) -> None:
    """DLPerf: 100 steps are counted for the 99 intervals between their timestamps: +1.01 %."""
    stamps = np.cumsum(np.full(120, 0.25))[20:]
    peers = 32 * 100 / (stamps[-1] - stamps[0])
    ours = lab.run([0.25] * 120, warmup=20, timed=100, batch=32).throughput
    assert ours == pytest.approx(32 / 0.25)
    assert peers / ours - 1 == pytest.approx(0.0101, abs=5e-5)


def test_all_frameworks_have_the_same_window(lab: Lab) -> None:
    """DLPerf: the mean of per-step rates for some frameworks, timestamps for others.
    For steps of 0.9 s and 1.1 s in turn, the former reads +1 %."""
    steps = [0.9, 1.1] * 50
    peers = sum(1 / step for step in steps) / len(steps)
    assert peers == pytest.approx(1.0101, abs=5e-5)
    assert lab.run([1.0] * 20 + steps, 20, 100).throughput == pytest.approx(1.0)


def test_running_out_of_memory_is_recorded_by_the_program(toy: Bench) -> None:
    """DLPerf: no log line, no result; a person writes a dash, a footnote or nothing."""
    toy.run("oom")
    log = toy.log.read_text()
    peers = [line for line in log.splitlines() if "images/sec" in line]
    assert peers == []
    (actual,) = tabled(toy)
    assert (actual["status"], actual["reason"]) == ("oom", "MemoryError: the toy box is full")


# ---- SuperBench ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("steps", "batch", "peers", "truth"),
    [
        ([0.3952] * 9 + [6.53], 8, 18.34, 7.93),
        (([0.0007487] * 3 + [0.1919]) * 25, 1, 1003, 20.6),
    ],
    ids=["one stalled step", "a small model on a busy machine"],
)
def test_a_stalled_step_is_not_averaged_away(
    lab: Lab, steps: list[float], batch: int, peers: float, truth: float
) -> None:
    """SuperBench: throughput is the mean of per-step rates.
    One stalled step gave 18.34 for a true 7.93 samples/s; a small model on a busy machine 1003 for
    a true 20.6."""
    assert sum(batch / step for step in steps) / len(steps) == pytest.approx(peers, rel=1e-3)
    actual = lab.run([0.4] * 2 + steps, 2, len(steps), batch).throughput
    assert actual == pytest.approx(truth, rel=2e-3)


def test_a_wall_clock_that_is_put_back_changes_nothing(lab: Lab) -> None:
    """SuperBench: steps are timed with the wall clock, which may be set meanwhile."""
    adapter = Clocked([0.5] * 120, 1)
    for _ in range(120):
        adapter.step()
    peers = 100 / (adapter.wall[120] - adapter.wall[20])
    assert peers < 0
    actual = lab.run([0.5] * 120, 20, 100)
    assert actual.throughput == pytest.approx(2.0)
    assert actual.step_seconds == pytest.approx([0.5] * 100)


def test_running_out_of_memory_is_distinguished_from_an_exception(toy: Bench) -> None:
    """SuperBench: return code 4 for both running out of memory and an exception."""
    some = benches(toy, 2)
    for bench, behaviour in zip(some, ("oom", "raise_rank=0"), strict=True):
        bench.run(behaviour)
    ends = [json.loads(bench.output.read_text())["ranks"][0]["traceback"] for bench in some]
    peers = [4 if "Error" in end else 0 for end in ends]
    assert peers == [4, 4]
    assert [actual["status"] for actual in tabled(*some)] == ["oom", "failed"]


def test_a_failure_does_not_make_later_runs_fail(toy: Bench) -> None:
    """SuperBench: all models run in one process, which the first failure breaks for the rest."""
    some, ends = benches(toy, 3), ("", "crash_rank=0", "")
    peers = ["failed" if any(ends[: rank + 1]) else "ok" for rank in range(3)]
    assert peers == ["ok", "failed", "failed"]
    for bench, behaviour in zip(some, ends, strict=True):
        bench.run(behaviour)
    assert [actual["status"] for actual in tabled(*some)] == ["ok", "failed", "ok"]


@pytest.mark.parametrize(
    ("precision", "reason"),
    [
        ("int8", "precision 'int8' cannot be measured yet"),
        ("fp16", "toy has no precision fp16 (it has: fp32, amp)"),
    ],
)
def test_an_unsupported_precision_stays_in_the_table(
    toy: Bench, precision: str, reason: str
) -> None:
    """SuperBench: an unsupported precision is dropped with exit 0, as after a success."""
    done = toy.run("", precision=precision)
    peers = [name for name in [precision] if name in ("fp32", "amp")]
    assert (done.status, peers) == (0, [])
    (actual,) = tabled(toy)
    assert (actual["status"], actual["precision"]) == ("unsupported", precision)
    assert reason in actual["reason"]
    assert np.isnan(actual["throughput_median"])


def test_tokens_are_drawn_from_the_whole_vocabulary() -> None:
    """SuperBench: tokens are drawn from 0..127, so that 128 embedding rows stay in the caches."""
    peers = np.random.RandomState(0).randint(0, 128, (32, 128))
    assert len(np.unique(peers)) == 128
    model_config = model_config_of(BERT)
    tokens = synthetic.make_batch(model_config["inputs"], 32, 128, seed=0, rank=0)["token_ids"]
    assert tokens.shape == peers.shape
    assert tokens.max() > 0.99 * model_config["hyperparameters"]["vocabulary"]
    assert len(np.unique(tokens)) > 3000, "of 30522, by 4096 draws"


def test_the_number_of_classes_reaches_the_model() -> None:
    """SuperBench: ``num_classes`` has no effect, the model always has 1000."""
    model_config = model_config_of(RESNET)
    peers = model_config["trainable_parameters"]
    model_config["hyperparameters"]["classes"] = 10
    asked = trained_parameters(model_config)
    assert (peers, asked) == (25557032, 25557032 - 990 * (2048 + 1))
    with pytest.raises(Mismatch, match="25557032 trainable parameters, not 23528522"):
        checks.check_parameters(peers, asked)


def test_fp32_on_pytorch_runs_without_tf32(monkeypatch: pytest.MonkeyPatch) -> None:
    """SuperBench: TF32 stays on for fp32 results. Without a GPU, this checks the settings."""
    chosen = []
    flags = SimpleNamespace(
        cuda=SimpleNamespace(matmul=SimpleNamespace(allow_tf32=True)),
        cudnn=SimpleNamespace(allow_tf32=True),
    )
    torch = SimpleNamespace(
        backends=flags,
        float32="float32",
        bfloat16="bfloat16",
        float16="float16",
        device=None,
        dtype=None,
        nn=None,
        set_float32_matmul_precision=chosen.append,
    )
    monkeypatch.setitem(sys.modules, "torch", torch)
    path = ROOT / "scripts/frameworks/pytorch/devices.py"
    spec = importlib.util.spec_from_file_location("pytorch_devices", path)
    assert spec is not None
    assert spec.loader is not None
    devices = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(devices)
    assert devices.set_precision("fp32", SimpleNamespace(type="cuda")) == "float32"
    assert chosen == ["highest"]
    assert flags.cuda.matmul.allow_tf32 is flags.cudnn.allow_tf32 is False


@pytest.mark.parametrize("framework", ["paddle", "mxnet", "oneflow", "tensorflow1"])
def test_a_variable_of_the_user_does_not_turn_tf32_on(framework: str) -> None:
    """SuperBench: a user's variable may turn TF32 on, where a framework has no flag."""
    variables = ("NVIDIA_TF32_OVERRIDE", "ONEFLOW_EP_CUDA_ENABLE_TF32_EXECUTION")
    case = Recorder().case._replace(framework=framework)
    rank_context = RankContext(0, 0, ["h:1"], "cuda", 1, 0)
    # Only code before the import, after which it is too late.
    module = framework.rstrip("1")
    with patch.dict(sys.modules, {module: None}), patch.dict(os.environ):
        os.environ.update(dict.fromkeys(variables, "1"))
        adapter = load_adapter(str(ROOT / "scripts/frameworks" / framework))(case, {}, rank_context)
        with pytest.raises(ImportError, match=module):
            adapter.start()
        assert "0" in [os.environ[name] for name in variables]


def test_results_carry_versions_device_and_parameters(toy: Bench) -> None:
    """SuperBench: results have only a node's name, metrics and return codes."""
    created = toy.run("").record
    peers = {
        "node": "a",
        "model/fp32_throughput": created["metrics"]["throughput"]["value"],
        "model/return_code": 0,
    }
    assert not {"framework_version", "environment", "settings", "ranks"} & set(peers)
    (first,) = created["ranks"]
    assert (created["framework_version"], first["device"]) == ("1.0", "toy:0")
    assert first["trainable_parameters"] == 2
    assert created["settings"]["timed_steps"] == 5
    assert created["environment"]["packages"]["pytest"] == pytest.__version__
    assert created["environment"]["hardware"]["cpu"]
    for part in ("framework_version", "settings", "case", "command", "environment", "ranks"):
        lacking = {key: value for key, value in created.items() if key != part}
        save(toy.folder / "lacking", f"{part}.json", lacking)
    assert not record_sets.load(toy.folder / "lacking").runs, "a figure without them is taken"


def processor_seconds() -> float:
    """Return the processor time of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_to_start_a_run_does_not_take_many_times_the_run(toy: Bench) -> None:
    """SuperBench: its launcher spent 27 s on 0.6 s of timed steps.
    The toy imports nothing: the rest is our overhead, in processor time, which other load of the
    machine does not change."""
    before = processor_seconds()
    created = toy.run("sleep=0.1", timed_steps=6).record
    spent = processor_seconds() - before
    peers = 27 / 0.6
    assert created["window_seconds"] >= 0.6
    assert spent / 0.6 < peers / 2


def test_the_first_iteration_is_not_timed(lab: Lab) -> None:
    """SuperBench: its Megatron-GPT keeps the first iteration, 76.0 s per step for a median of 75.25
    s."""
    steps = [82.75] + [75.25] * 9
    assert sum(steps) / len(steps) == 76.0
    actual = lab.run(steps, 1, 9, batch=2048)
    assert 2048 / (actual.throughput or 0) == pytest.approx(75.25)


# ---- optimum-benchmark --------------------------------------------------------------------------


def test_samples_are_divided_by_the_time_of_all_steps(lab: Lab) -> None:
    """optimum-benchmark: samples of all steps over the mean time of one, 50 times too much for 50
    steps."""
    steps = [0.1] * 50
    peers = 8 * len(steps) / (sum(steps) / len(steps))
    ours = lab.run([0.1] * 20 + steps, 20, 50, batch=8).throughput
    assert ours == pytest.approx(80)
    assert peers / ours == pytest.approx(50)


# ---- milabench ----------------------------------------------------------------------------------


def test_a_run_with_a_nan_loss_is_no_success(toy: Bench) -> None:
    """milabench: every exit with 0 is a success."""
    done = toy.run("nan_at=4")
    peers = "success" if done.status == 0 else "failure"
    assert peers == "success"
    (actual,) = tabled(toy)
    assert (actual["status"], actual["reason"]) == (
        "failed",
        "ArithmeticError: loss is nan at step 7",
    )
    assert np.isnan(actual["throughput_median"])


# ---- NVIDIA benchmark.py ------------------------------------------------------------------------


def test_no_iteration_of_the_warm_up_is_in_the_window(lab: Lab) -> None:
    """NVIDIA: the warm-up epoch is not removed completely.
    Here an epoch has 20 iterations, and the first epoch's last slow one stays."""
    steps = [0.3] * 20 + [0.1] * 40
    peers = 192 * 41 / sum(steps[19:])
    assert peers == pytest.approx(1831, abs=1)
    actual = lab.run(steps, 20, 40, batch=192)
    assert actual.throughput == pytest.approx(1920)
    assert record_sets.load_record(actual.record)["ranks"][0][
        "warmup_step_seconds"
    ] == pytest.approx([0.3] * 20)


def test_a_warm_up_longer_than_the_measurement_leaves_a_throughput(lab: Lab) -> None:
    """NVIDIA: throughput is 0 if there are as many warm-up iterations as iterations."""
    steps = [0.1] * 20
    timed = steps[20:]
    peers = 192 * len(timed) / sum(timed) if timed else 0.0
    assert peers == 0.0
    assert lab.run([0.1] * 40, 20, 20, batch=192).throughput == pytest.approx(1920)


# ---- NVIDIA ELECTRA -----------------------------------------------------------------------------


def test_a_rate_is_that_of_the_window_and_not_a_mean_of_rates(lab: Lab) -> None:
    """NVIDIA: mean of the rates of all micro-steps, including the first, in which graphs
    are built."""
    steps = [20.0, *[0.05, 0.15] * 5]
    peers = 88 * sum(1 / step for step in steps) / len(steps)
    assert peers == pytest.approx(1067, abs=1)
    assert lab.run(steps, 1, 10, batch=88).throughput == pytest.approx(880)


def test_every_update_has_all_its_micro_steps(toy: Bench) -> None:
    """NVIDIA: weights are also updated after micro-step 1, to create the optimizer's moments.
    tests/frameworks/test_accumulation.py checks that frameworks average over all micro-steps."""
    micro_steps = range(4 * 10)
    updates = [number for number in micro_steps if number % 4 == 0 or number == 1]
    peers = np.diff([-1, *updates])
    assert peers.tolist()[:4] == [1, 1, 3, 4]
    created = toy.run("", accumulation=4, timed_steps=10).record
    assert created["samples"] == created["case"]["batch_per_device"] * len(micro_steps)
    assert [rank["micro_steps"] for rank in created["ranks"]] == [4]
    short = toy.folder / "short.json"
    toy.run("one_micro_step", accumulation=4, output=short)
    assert "4 micro-steps, but a step has" in json.loads(short.read_text())["reason"]


# ---- TorchBench ---------------------------------------------------------------------------------


def test_all_throttle_reasons_are_reported() -> None:
    """TorchBench: only the first throttle reason is parsed.
    For a GPU at its power cap, which is normal, overheating stays hidden."""
    bits = 0x4 | 0x40 | 0x80
    peers = nvml.THROTTLE_REASONS[bits & -bits]
    assert peers == "sw_power_cap"
    seen = nvml.Gpus(FakeNvml({**GPU, "reasons": bits}), VARIABLES, 1).read(set())
    watch = summarized(
        [watch_sample(float(second), **seen) for second in range(4)], 0.5, 2.5, gpus=1
    )
    assert set(watch["gpus"][0]["throttle_reasons"]) == {
        "sw_power_cap", "hw_thermal_slowdown", "hw_power_brake_slowdown"
    }  # fmt: skip
    assert "hw_thermal_slowdown in 100%" in disturbed({"watch": watch})


# ---- every peer ---------------------------------------------------------------------------------


def test_a_warm_up_that_was_too_short_is_marked_and_can_be_longer(lab: Lab) -> None:
    """All peers: a fixed number of warm-up steps, without a check that the step time has settled.
    Here it falls from 0.2 s to 0.1 s over 60 steps, of which 20 are dropped."""
    steps = [0.1 * (1 + max(0.0, 1 - step / 60)) for step in range(400)]
    peers = 100 / sum(steps[20:120])
    assert peers == pytest.approx(8.80, abs=0.01)
    actual = only(build([lab.run(steps, 20, 100)])["summary"])
    assert "unsteady" in actual["flags"].split()
    assert "steps took -" in actual["remarks"], "how they changed is not said"
    settled = lab.run(steps, 20, 100, limit=200)
    assert settled.throughput == pytest.approx(10.0, rel=0.01)
    assert not settled.flags
    assert not grouping.flags_of_run(settled)
