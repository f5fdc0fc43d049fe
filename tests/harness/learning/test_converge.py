"""Training to a target: learning rates, order, end, and record."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import tasks
from framebench.records import record_sets
from harness.adapter import Case, Mismatch
from harness.kind import combined
from harness.kinds import converge
from harness.learning import evaluation, sources
from harness.learning.training import (
    FIRST,
    LAST,
    SCHEDULES,
    Recipe,
    is_done,
    rate_at,
    schedule_of,
    train,
)
from tasks import score_classes

from ...bench import ROOT, Bench
from ...conftest import build_environment
from ...processes import wait_for
from ..validity import assert_outcome, assert_valid

SCORE = "accuracy"
SCORING = tasks.Scoring((SCORE,), score_classes)


def epoch(number: int, score: float, loss: float | None = 0.5, seconds: float = 2.0) -> Any:
    held_out = {SCORE: score, "loss": 0.3}
    return {
        "epoch": number,
        "samples": 100,
        "train_seconds": seconds,
        "evaluation_seconds": 0.5,
        "loss": loss,
        "learning_rate": 0.1,
        "held_out": held_out,
    }


KNOWN = "constant, cosine, linear, one_cycle, polynomial:POWER:END (above 0, and from 0 to 1)"
CASE_OF_RATES = ("toy", "toy", "train", 1, 1, 2, "fp32", "none")
CURVE = [epoch(1, 0.7, seconds=6.0), epoch(2, 0.95), epoch(3, 0.99), epoch(4, 0.98)]


@pytest.mark.parametrize("schedule", [*SCHEDULES, "polynomial:0.5:0", "polynomial:2:0.1"])
@pytest.mark.parametrize("warmup", [0.0, 0.3])
def test_a_rate_rises_to_its_peak_and_falls_from_it(schedule: str, warmup: float) -> None:
    rates = [rate_at(schedule, 0.4, warmup, step, 100) for step in range(100)]
    top = round(100 * warmup)
    assert max(rates) == pytest.approx(0.4)
    assert rates[top] == pytest.approx(0.4), "behind the warm-up it is at its peak"
    assert rates[: top + 1] == sorted(rates[: top + 1])
    assert rates[top:] == sorted(rates[top:], reverse=True)
    assert min(rates) >= 0
    assert (rates[-1] == 0.4) == (schedule == "constant")


def test_the_schedules_are_those_that_they_are_named_after() -> None:
    """One cycle: PyTorch's 10 steps, of which 3 rise."""
    assert rate_at("one_cycle", 1.0, 0.3, 0, 10) == pytest.approx(
        1 + (FIRST - 1) * (1 + math.cos(math.pi / 3)) / 2
    )
    assert rate_at("one_cycle", 1.0, 0.3, 9, 10) == pytest.approx(
        LAST + (1 - LAST) * (1 + math.cos(math.pi * 6 / 7)) / 2
    )
    assert rate_at("linear", 1.0, 0.29, 1, 10) == pytest.approx(2 / 3)
    assert rate_at("linear", 1.0, 0.0, 5, 10) == pytest.approx(1 / 2)
    assert rate_at("cosine", 1.0, 0.5, 0, 8) == pytest.approx(1 / 4)
    assert rate_at("cosine", 1.0, 0.5, 6, 8) == pytest.approx(0.5)
    assert rate_at("polynomial:0.5:0", 1.0, 0.2, 0, 10) == pytest.approx(1 / 2)
    assert rate_at("polynomial:0.5:0", 1.0, 0.2, 8, 10) == pytest.approx(0.5)
    assert rate_at("polynomial:2:0.2", 1.0, 0.0, 5, 10) == pytest.approx(0.2 + 0.8 / 4)


def test_a_polynomial_schedule_says_its_power_and_its_end() -> None:
    assert (
        schedule_of("polynomial:0.50:0") == schedule_of("polynomial:.5:0.0") == "polynomial:0.5:0"
    )
    for text in ("polynomial", "polynomial:1", "polynomial:0:0", "polynomial:1:2", "linear:1:0"):
        with pytest.raises(ValueError, match="one_cycle, polynomial:POWER:END"):
            schedule_of(text)
    assert [schedule_of(name) for name in SCHEDULES] == [*SCHEDULES]


def test_each_step_has_the_rate_of_its_place_in_the_schedule() -> None:
    rates, used = list[float](), list[float]()
    adapter = SimpleNamespace(
        set_learning_rate=rates.append, feed=len, read=float, synchronize=list, all_reduce=float,
        step=lambda: used.append(rates[-1]) or 0.5,
    )  # fmt: skip
    context: Any = SimpleNamespace(
        adapter=adapter, rank_context=SimpleNamespace(rank=0), fields={},
        report=SimpleNamespace(enter=len), workload=SimpleNamespace(case=Case(*CASE_OF_RATES)),
    )  # fmt: skip
    source: Any = SimpleNamespace(steps=4, batches_in_epoch=lambda epoch: [[]] * 4)
    train(context, source, Recipe(2, SCORE, None, "linear", 1.0, 0.25), lambda: {SCORE: 0.0})
    assert used == [rate_at("linear", 1.0, 0.25, step, 8) for step in range(8)]


def test_every_sample_is_fed_once_an_epoch_and_ranks_share_them() -> None:
    arrays = {"x": np.arange(103), "y": np.arange(103) * 2}
    fed = [list(sources.epoch_batches(arrays, 10, rank, 2, seed=5)) for rank in range(2)]
    assert [len(entry) for entry in fed] == [5, 5]
    seen = np.concatenate([batch["x"] for entry in fed for batch in entry])
    assert len({*seen.tolist()}) == len(seen) == 100
    assert all((batch["y"] == 2 * batch["x"]).all() for entry in fed for batch in entry)
    again = next(sources.epoch_batches(arrays, 10, 0, 2, seed=5))
    assert (again["x"] == fed[0][0]["x"]).all()
    other = next(sources.epoch_batches(arrays, 10, 0, 2, seed=6))
    assert (other["x"] != fed[0][0]["x"]).any()


def test_held_out_samples_count_once() -> None:
    actual = list(sources.evaluation_batches({"x": np.arange(25)}, 10))
    assert [count for _, count in actual] == [10, 10, 5]
    assert [x for batch, count in actual for x in batch["x"][:count].tolist()] == [*range(25)]
    assert all(len(batch["x"]) == 10 for batch, _ in actual)


def test_metrics_follow_from_the_curve() -> None:
    actual = evaluation.metrics(SCORING, 0.95, "images/s")
    values = {name: combined(entry, [{"curve": CURVE}]) for name, entry in actual.items()}
    assert next(iter(values)) == "time_to_target", "the principal one"
    assert values == pytest.approx(
        {
            "time_to_target": 8.0,
            "samples_to_target": 200,
            SCORE: 0.98,
            "loss": 0.3,
            "time_to_train": 14.0,
            "throughput": 50.0,
        }
    )
    assert [*evaluation.metrics(SCORING, None, "images/s")][:2] == ["throughput", SCORE]


@pytest.mark.parametrize(
    ("epochs", "target", "reason"),
    [
        (CURVE, 0.95, ""),
        (CURVE, None, ""),
        (CURVE, 0.995, "accuracy 0.995 was not reached in 4 epochs: the best accuracy is 0.9900, "
         "after epoch 3"),
        ([CURVE[0], epoch(2, 0.1, loss=None)], None, "training diverged: the loss of epoch 2"),
        ([], 0.9, "no epoch has a score"),
    ],
)  # fmt: skip
def test_why_a_target_was_missed_is_reported(
    epochs: list[Any], target: float | None, reason: str
) -> None:
    actual = evaluation.missed(epochs, SCORE, target)
    assert reason in actual
    assert bool(actual) == bool(reason)


def test_it_ends_where_the_target_is_reached_or_nothing_is_left() -> None:
    recipe = Recipe(9, SCORE, 0.95, "constant", 0.1, 0.0)
    assert is_done(epoch(1, 0.95), recipe, rank=0)
    assert not is_done(epoch(1, 0.94), recipe, rank=0)
    assert not is_done(epoch(1, 0.95), recipe, rank=1), "the first rank's statistics decide"
    assert is_done(epoch(1, 0.1, loss=math.nan), recipe, rank=1)
    assert not is_done(epoch(1, 1.0), recipe._replace(target=None), rank=0)


def test_an_evaluation_that_does_not_see_what_was_trained_is_found() -> None:
    converge.check_evaluation({"loss": 2.3}, {"loss": 0.4})
    with pytest.raises(Mismatch, match="not what was trained"):
        converge.check_evaluation({"loss": 2.3}, {"loss": 2.3})


#: A run whose target a small network does not reach in so few epochs.
RUN: dict[str, Any] = {
    "framework": ROOT / "scripts/frameworks/pytorch",
    "model": ROOT / "scripts/models/digits_resnet.json",
    "kind": "converge",
    "batch_per_device": 32,
    "seed": 7,
    "repeat": 3,
}
PARAMETERS = {"target": 1, "epochs": 4, "learning_rate": 0.01}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """Return an undisturbed run in a real framework, through the command line."""
    bench = Bench(tmp_path_factory.mktemp("whole"), build_environment("pytorch"))
    done = bench.run(**RUN, parameters=PARAMETERS)
    assert done.status == 0, done.stderr
    return bench


def test_a_run_that_misses_its_target_leaves_its_curve(whole: Bench) -> None:
    """Fail if a missed target leaves no curve; each repeat has its own seed."""
    record = whole.read_record()
    assert_valid(record)
    assert record["status"] == "not_converged", record["reason"]
    assert record["reason"].startswith("accuracy 1 was not reached in 4 epochs: the best accuracy")
    assert record["settings"]["seed"] == 9
    assert all(metric["value"] is None for metric in record["metrics"].values())
    (rank,) = record["ranks"]
    assert [epoch["epoch"] for epoch in rank["curve"]] == [1, 2, 3, 4]
    assert rank["task"]["train"] == 1437
    loaded = record_sets.load(whole.output.parent)
    assert not loaded.problems
    (run,) = loaded.runs
    assert run.curve is not None
    assert run.curve.scores == tuple(epoch["held_out"][SCORE] for epoch in rank["curve"])
    assert (run.curve.seed, run.curve.target, run.status) == (9, 1.0, "not_converged")


def killed_and_taken_up(bench: Bench, run: dict[str, Any], parameters: dict[str, Any]) -> Any:
    """Return the record of a run that was killed after its first checkpoint and resumed."""
    folder = bench.folder / "checkpoints"
    settings = {**parameters, "checkpoints": folder}
    launcher = bench.start(**run, parameters=settings)
    wait_for(
        lambda: [*folder.glob("*.json")] or launcher.poll() is not None, "no checkpoint was left"
    )
    assert launcher.poll() is None, launcher.communicate()
    launcher.kill()
    wait_for(lambda: not bench.processes(), "a rank outlived its launcher")
    launcher.communicate()
    assert bench.read_record() is None
    done = bench.run(**run, parameters=settings)
    assert [*folder.iterdir()] == [], "it has ended"
    return done.record


def assert_same_training(record: Any, whole: Any) -> None:
    """Check bitwise equality, though the first epochs were computed by another process."""
    (rank,), (other,) = record["ranks"], whole["ranks"]
    assert 1 <= rank["resumed_after"] < len(rank["curve"])
    assert rank["weights_checksum"] == other["weights_checksum"]
    for name in ("loss", "held_out", "learning_rate"):
        assert [epoch[name] for epoch in rank["curve"]] == [epoch[name] for epoch in other["curve"]]


def test_a_killed_pre_training_resumes_and_a_second_phase_goes_on_from_it(tmp_path: Path) -> None:
    """Masked words and replacements continue the drawing."""
    python, weights = build_environment("pytorch"), tmp_path / "weights"
    run = {
        **RUN,
        "model": ROOT / "scripts/models/topics_electra.json",
        "batch_per_device": 16,
        "accumulation": 2,
        "sequence_length": 32,
    }
    parameters = {"epochs": 4, "epoch_steps": 15, "weights": weights}
    places = [tmp_path / name for name in ("whole", "killed", "second", "weights_alone")]
    for place in places:
        place.mkdir()
    whole, killed, *phases = (Bench(place, python) for place in places)
    undisturbed = whole.run(**run, parameters={**parameters, "weights": tmp_path / "others"}).record
    record = killed_and_taken_up(killed, run, parameters)
    assert record["status"] == "ok", record["reason"]
    assert_same_training(record, undisturbed)
    (left,) = weights.glob("*.safetensors")
    options = {**run, "batch_per_device": 8, "accumulation": 4, "sequence_length": 64}
    ends = []
    for second, start in zip(phases, (weights, left), strict=True):
        phase = {"epochs": 1, "epoch_steps": 15, "start": start}
        done = second.run(**options, parameters=phase)
        assert_outcome(done.record, "ok")
        (rank,) = done.record["ranks"]
        assert rank["started_from"]["file"] == str(left)
        assert ("optimizer" in rank["started_from"]) == (start == weights)
        ends.append((rank["untrained"]["loss"], rank["weights_checksum"]))
    (first_phase,) = record["ranks"]
    (with_moments, end), (alone, other) = ends
    assert with_moments == alone < first_phase["untrained"]["loss"], "it began with other weights"
    assert end != other, "the moments changed nothing"
