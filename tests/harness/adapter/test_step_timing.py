"""Parts of the harness alone, for cases that the command line cannot reach."""

from __future__ import annotations

import contextlib
import gc
import os
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from harness import record, report
from harness.adapter import Mismatch
from harness.measuring import checks, steps, window
from harness.measuring.model import make_batch
from harness.processes import launch, outcome

from ...frameworks.models import MODELS, model_config_of
from ...frameworks.toy.plain import wait_until
from ..recorder import Recorder

MODEL_CONFIGS = {name: model_config_of(name) for name in [*MODELS, "inception_v3"]}


BEFORE = ["all_reduce", "synchronize", "reset"]


@pytest.mark.parametrize(
    ("ahead", "expected"),
    [
        (0, ["step", "synchronize", "step", "synchronize", "step", "synchronize"]),
        (1, ["step", "step", "wait 1", "step", "wait 2", "wait 3"]),
        (4, ["step", "step", "step", "wait 1", "wait 2", "wait 3"]),
    ],
)
def test_so_many_steps_run_ahead_and_nothing_else_happens(ahead: int, expected: list[str]) -> None:
    adapter = Recorder(world_size=2)
    measured = window.measure(adapter, 3, ahead)
    assert adapter.calls == [*BEFORE, *expected, "synchronize", "read"]
    assert len(measured.step_seconds) == 3
    assert sum(measured.step_seconds) <= measured.seconds
    assert gc.isenabled(), "garbage collection must come back"


@pytest.mark.parametrize(
    ("count", "seconds", "elapsed", "expected"),
    [
        (20, 2.0, 100.0, 20),  # no more than the first timed region
        (1000, 100.0, 85.0, 150),  # 15 of 100 s
        (5, 500.0, 60.0, 1),  # at least one step
        (5, 0.0, 0.0, 5),  # below the resolution of the clock
    ],
)
def test_steps_that_are_waited_for_take_a_part_of_the_run(
    count: int, seconds: float, elapsed: float, expected: int
) -> None:
    assert steps.synchronous_steps(Recorder(), count, seconds, elapsed) == expected


def test_all_ranks_wait_for_the_same_number_of_steps() -> None:
    """All ranks use the mean of the numbers of steps that each can afford."""
    adapter = Recorder(world_size=2)
    adapter.all_reduce = lambda value: value + 7.0  # type: ignore[method-assign]
    assert steps.synchronous_steps(adapter, 10, 10.0, 20.0) == 5  # the median of 3 and 7


class Asynchronous(Recorder):
    """Adapter whose device takes 0.04 s per step."""

    def __init__(self, honest: bool, reading: float = 0.0, waits: bool = True) -> None:
        super().__init__()
        self.done_at = 0.0
        self.honest, self.reading, self.waits = honest, reading, waits

    def step(self) -> float:
        self.done_at = max(self.done_at, time.perf_counter()) + 0.04
        return self.done_at

    def wait(self, mark: float) -> None:
        if self.waits:
            wait_until(mark)

    def synchronize(self) -> None:
        if self.honest:
            wait_until(self.done_at)

    def read(self, handle: float) -> float:
        wait_until(handle)
        wait_until(time.perf_counter() + self.reading)
        return 1.0


@pytest.mark.usefixtures("exact_clock")
def test_work_still_under_way_at_the_end_of_a_short_window_is_found() -> None:
    for ahead in (0, 1):
        with pytest.raises(Mismatch, match=r"synchronize\(\) returned before the work was compl"):
            window.measure(Asynchronous(honest=False, waits=False), 5, ahead)
    with pytest.raises(Mismatch, match="synchronize"):
        window.measure(Asynchronous(honest=False), 5, 0, read_seconds=0.04)


@pytest.mark.usefixtures("exact_clock")
def test_steps_that_were_not_waited_for_are_found() -> None:
    with pytest.raises(Mismatch, match=r"wait\(\) returned before the work was complete"):
        window.measure(Asynchronous(honest=True, waits=False), 5, 1)


@pytest.mark.usefixtures("exact_clock")
def test_step_times_are_those_between_completions() -> None:
    alone = window.measure(Asynchronous(honest=True), 5, 0).step_seconds
    assert min(alone) >= 0.04, "a step was not waited for"
    several = window.measure(Asynchronous(honest=True), 5, 1).step_seconds
    assert sum(several) == pytest.approx(0.2, rel=0.01)


@pytest.mark.usefixtures("exact_clock")
def test_a_value_that_takes_long_to_read_is_no_work_under_way() -> None:
    seconds = window.measure(Asynchronous(honest=True), 5, 1).seconds
    assert seconds == pytest.approx(0.2, rel=0.01)
    # all outputs are copied and summed, which takes longer than the timed region
    assert window.measure(Asynchronous(honest=True, reading=2.0), 2, 1).seconds < 2.0


@pytest.mark.parametrize(
    ("late", "seconds", "read_seconds", "fails"),
    [
        (0.19, 0.01, 0.0, True),
        (0.19, 0.01, 0.15, False),  # the first value took as long: the copy is cached
        (0.6, 10.0, 0.1, False),
        (0.7, 10.0, 0.1, True),
    ],
)
def test_lateness_counts_beyond_a_part_of_the_window_and_noise(
    late: float, seconds: float, read_seconds: float, fails: bool
) -> None:
    with pytest.raises(Mismatch) if fails else contextlib.nullcontext():
        window.check_complete(late, seconds, lambda: None, read_seconds)


@pytest.mark.parametrize("model", sorted(MODEL_CONFIGS))
def test_batches_follow_the_model_config(model: str) -> None:
    inputs = MODEL_CONFIGS[model]["inputs"]
    length = 128 if MODEL_CONFIGS[model]["sequence_lengths"] else None
    batch = make_batch(inputs, 4, length, seed=0, rank=0)
    assert list(batch) == [declared["name"] for declared in inputs]
    for declared in inputs:
        array = batch[declared["name"]]
        floating = declared["distribution"] == "normal"
        assert array.dtype == (np.float32 if floating else np.int64), declared["name"]
        assert array.shape[0] == 4, declared["name"]
        if "below" in declared:
            below = length if declared["below"] == "sequence" else declared["below"]
            assert 0 <= array.min() <= array.max() < below, declared["name"]
    again = make_batch(inputs, 4, length, seed=0, rank=0)
    other = make_batch(inputs, 4, length, seed=0, rank=1)
    assert all((batch[name] == again[name]).all() for name in batch), "not repeatable"
    assert any((batch[name] != other[name]).any() for name in batch), "all ranks get one batch"


@pytest.mark.parametrize(("length", "count"), [(5, 1), (128, 20)])
def test_masked_positions_are_sorted_and_distinct(length: int, count: int) -> None:
    declared = {"name": "p", "shape": ["batch", "predictions"], "distribution": "positions"}
    rows = make_batch([declared], 50, length, seed=1, rank=0)["p"]
    assert rows.shape == (50, count)
    assert (np.diff(rows, axis=1) > 0).all()
    assert rows.min() >= 0
    assert rows.max() < length


@pytest.mark.parametrize(
    ("precision", "products", "accepted"),
    [
        ("fp32", {"float32": 5}, True),
        ("fp32", {"float32": 5, "bfloat16": 1}, False),
        ("fp32", {}, False),
        ("amp", {"float32": 24, "bfloat16": 76}, True),
        ("amp", {"float32": 3, "bfloat16": 8}, False),
    ],
)
def test_the_precision_must_be_the_observed_one(
    precision: str, products: dict[str, int], accepted: bool
) -> None:
    with contextlib.nullcontext() if accepted else pytest.raises(Mismatch):
        assert checks.check_matmuls(precision, products) == products


def ended_process() -> subprocess.Popen[bytes]:
    process = subprocess.Popen(["true"])
    process.wait()
    return process


def final_report(folder: Path, number: int, status: str, reason: str) -> launch.RankProcess:
    created = report.Report(str(folder), number, "host")
    created.fail(status, reason, RuntimeError(reason))
    return launch.RankProcess(number, ended_process(), "/nowhere", ended=float(number))


@pytest.mark.parametrize(
    ("first", "second", "telling"),
    [
        (("failed", "ConnectionResetError: connection closed by peer"), ("oom", "full"), 1),
        (("failed", "RuntimeError: Connection reset"), ("failed", "ValueError: cause"), 1),
        (("failed", "ValueError: cause"), ("failed", "ValueError: later"), 0),
        (("failed", "ValueError: cause"), ("unsupported", "no wheels"), 1),
    ],
)
def test_the_cause_is_reported_not_its_consequence(
    tmp_path: Path, first: tuple[str, str], second: tuple[str, str], telling: int
) -> None:
    ranks = [final_report(tmp_path, 0, *first), final_report(tmp_path, 1, *second)]
    outcomes = [outcome.rank_outcome(rank, str(tmp_path), "host", False, 60.0) for rank in ranks]
    status, reason = outcome.most_telling(outcomes)
    expected = (first, second)[telling]
    assert (status, reason) == (expected[0], f"rank {telling}: {expected[1]}")


@pytest.mark.parametrize(
    ("failed_at", "status"), [(9.5, "failed"), (10.0, "timeout"), (10.5, "timeout")]
)
@pytest.mark.parametrize("limited", [0, 1])
def test_failures_after_the_time_limit_of_another_rank_are_its_consequence(
    tmp_path: Path, failed_at: float, status: str, limited: int
) -> None:
    peer = 1 - limited
    hanging = launch.RankProcess(
        limited,
        ended_process(),
        "/nowhere",
        stopped=outcome.TIME_LIMIT,
        stopped_at=10.0,
        ended=11.0,
    )
    reported = final_report(tmp_path, peer, "failed", "RuntimeError: Connection reset by peer")
    lonely = replace(reported, ended=failed_at)
    outcomes = [
        outcome.rank_outcome(rank, str(tmp_path), f"n{rank.rank}", False, 10.0)
        for rank in sorted((hanging, lonely), key=lambda rank: rank.rank)
    ]
    assert outcome.most_telling(outcomes)[0] == status
    assert outcomes[peer].fields["status"] == "failed"


def test_what_json_and_terminals_do_not_take_is_escaped() -> None:
    value = {"a": [float("nan"), float("inf")], 3: 1.5, "NCCL_\udce9": os.fsdecode(b"/caf\xe9")}
    assert report.encodable(value) == {"a": [None] * 2, "3": 1.5, r"NCCL_\xe9": r"/caf\xe9"}
    entry = {"status": "failed", "reason": "a\x1b[2J\rb", "wall_seconds": 1.0}
    assert record.summary(entry, "r1.json") == r"failed: a\x1b[2J\x0db; 1.0 s in all; r1.json"
