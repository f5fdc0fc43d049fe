"""Tables of trainings: over seeds, and learning curves."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pandas as pd
from framebench.records.run import Run
from framebench.tables.declared import converge
from harness.kinds.converge import Converge

from ..made_up_runs import build
from ..made_up_trainings import trained


def tables(*runs: Run) -> dict[str, list[dict[str, Any]]]:
    return {name: frame.to_dict("records") for name, frame in build(runs).items()}


def test_scores_over_seeds_count_those_that_missed_the_target() -> None:
    (row,) = tables(
        trained(0.7, 0.98, seed=0, target=0.98),
        trained(0.6, 0.9, 0.99, seed=1, target=0.98),
        trained(0.5, 0.96, 0.94, seed=2, target=0.98),
    )["converge"]
    assert (row["seeds"], row["converged"], row["status"]) == (3, 2, "ok")
    assert "1 of 3 repeats not converged: accuracy 0.98 was not reached" in row["reason"]
    assert row["score_mean"] == (0.98 + 0.99 + 0.94) / 3
    assert (row["score_minimum"], row["score_maximum"]) == (0.94, 0.99)
    assert row["score_mean_ci_low"] < 0.94, "three seeds tell little"
    assert row["time_to_target"] == 2.5, "of those that reached it"
    assert (row["task"], row["score"], row["target"]) == ("digits", "accuracy", 0.98)


def test_one_slow_seed_is_no_slow_training_and_no_share_is_above_one() -> None:
    scores = [(0.98,), (0.99,), (1.0,), (1.0,), (0.5,) * 39 + (1.0,)]
    runs = [trained(*score, seed=seed, target=0.98) for seed, score in enumerate(scores)]
    (row,) = tables(*runs)["converge"]
    assert row["time_to_target"] == 1.0, "the mean of the seeds is 8.8 s"
    assert (row["score_mean_ci_low"] < 0.99, row["score_mean_ci_high"]) == (True, 1.0)


def test_seeds_with_the_same_score_show_no_interval() -> None:
    (row,) = tables(*[trained(0.5, 1.0, seed=seed) for seed in range(3)])["converge"]
    assert row["score_deviation"] == 0.0
    assert row["score_mean_ci_low"] != row["score_mean_ci_low"], "it has none"


def test_a_case_that_never_converged_has_its_scores_and_no_time() -> None:
    actual = tables(*[trained(0.5, 0.6, seed=seed, target=0.98) for seed in range(2)])
    (row,) = actual["converge"]
    assert (row["status"], row["seeds"], row["converged"]) == ("not_converged", 2, 0)
    assert row["score_mean"] == 0.6
    assert row["time_to_target"] != row["time_to_target"], "it has none"
    (failure,) = actual["failures"]
    assert (failure["status"], failure["failed_runs"]) == ("not_converged", 2)


def with_energy(run: Run, joules: float | None, resumed_after: int = 0) -> Run:
    assert run.curve is not None
    known = "" if joules is None else "package"
    curve = replace(run.curve, resumed_after=resumed_after, others=(("top_5_accuracy", 0.999),))
    return replace(run, joules=joules, energy_sources=known, curve=curve)


def test_the_energy_of_a_training_is_that_of_one_process() -> None:
    """The energy of a process that was killed is unknown."""
    actual = tables(
        with_energy(trained(0.9, 0.97, seed=0), 300.0),
        with_energy(trained(0.9, 0.96, seed=1), 500.0),
        with_energy(trained(0.9, 0.95, seed=2), 90.0, resumed_after=1),
    )
    (row,) = actual["converge"]
    assert (row["energy_joules"], row["energy_sources"], row["resumed"]) == (400, "package", 1)
    assert (row["other_score"], row["other_score_mean"]) == ("top_5_accuracy", 0.999)


#: A value other than the default for each parameter.
CHANGED: dict[str, Any] = {
    "target": 0.9,
    "epochs": 4,
    "epoch_steps": 50,
    "schedule": "linear",
    "learning_rate": 0.5,
    "learning_rate_batch": 256,
    "warmup": 0.1,
    "weight_decay": 0.01,
    "momentum": 0.8,
    "label_smoothing": 0.1,
    "mixup": 0.2,
    "data": "/data/squad",
    "start": "/models/bert/model.safetensors",
}
#: Parameters that do not affect learning.
PLACES = {"checkpoints", "weights"}


def test_rows_that_differ_in_a_parameter_are_distinguished() -> None:
    declared = {parameter.name for parameter in Converge.parameters}
    assert {*CHANGED} == declared - PLACES
    usual: dict[str, Any] = {"data": "/data/other"}
    recipes = [usual, *({**usual, name: value} for name, value in CHANGED.items())]
    runs = [
        trained(0.9, 0.95, seed=seed, framework=framework, recipe=recipe)
        for seed in range(2)
        for framework in ("jax", "pytorch")
        for recipe in recipes
    ]
    rows = tables(*runs)["converge"]
    keys = Counter(tuple(str(row[key]) for key in converge.CONVERGE.keys) for row in rows)
    assert (len(rows), max(keys.values())) == (2 * len(recipes), 1), keys.most_common(1)


def test_what_a_training_does_without_has_an_empty_cell() -> None:
    defaults = {parameter.name: parameter.default for parameter in Converge.parameters}
    (row,) = tables(trained(0.9, 0.95, recipe=defaults))["converge"]
    for name in ("target", "epoch_steps", "learning_rate_batch", "label_smoothing", "mixup"):
        assert pd.isna(row[name]), name


def test_the_score_before_training_is_of_weights_that_were_given() -> None:
    def begun(run: Run) -> Run:
        assert run.curve is not None
        return replace(run, curve=replace(run.curve, before=0.75))

    given, drawn = tables(
        begun(trained(0.9, recipe={"start": "/models/tiny.st"})), begun(trained(0.8))
    )["converge"]
    assert (given["start"], given["score_before"]) == ("tiny.st", 0.75)
    assert drawn["score_before"] != drawn["score_before"], "it has none"
