"""Pre-training of ELECTRA: masking, scores, epochs counted in updates, and start of a phase."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import tasks
from harness.kind import combined
from harness.learning import evaluation, sources
from harness.samples import tokens
from tasks import topics

LENGTH = 32
PERCENT = 85


@pytest.fixture(scope="module")
def sentences() -> tasks.Data:
    return topics.data(LENGTH)


def drawn(data: tasks.Data, *seed: int) -> dict[str, Any]:
    return sources.masked_batch(data.held_out, LENGTH, *(seed or (0,)))


# ---- masking -------------------------------------------------------------------------------------


def test_words_are_hidden_anew_by_the_seed_and_the_same_by_the_same(sentences: tasks.Data) -> None:
    first, again, other = drawn(sentences, 7, 1), drawn(sentences, 7, 1), drawn(sentences, 7, 2)
    assert {name: str(array.dtype) for name, array in first.items()} == dict.fromkeys(
        first, "int64"
    )
    for name in tokens.DRAWN:
        assert np.array_equal(first[name], again[name])
        assert not np.array_equal(first[name], other[name]), f"{name} is not drawn anew"
    assert (first["mask_draws"] < PERCENT).mean() == pytest.approx(0.85, abs=0.03)
    chosen = np.take_along_axis(first["token_ids"], first["masked_positions"], axis=1)
    assert (chosen >= topics.FIRST_WORD).all(), "a mark or padding is hidden"


def test_a_sentence_with_padding_hides_the_same_share_of_its_words(sentences: tasks.Data) -> None:
    batch = drawn(sentences)
    places, real = batch["masked_positions"], batch["attention_mask"].sum(axis=1)
    counts = np.array([len({*row}) for row in places.tolist()])
    assert places.shape[1] == 5
    assert {*counts[real == LENGTH]} == {5}
    assert {*counts[real <= 28]} == {4}
    for name in ("mask_draws", "sampling_draws"):
        reported = zip(places.tolist(), batch[name].tolist(), strict=True)
        for row, numbers in reported:
            pairs = {*zip(row, numbers, strict=True)}
            assert len(pairs) == len({*row}), f"a word has two {name}"


# ---- scores --------------------------------------------------------------------------------------

#: Two sentences of four tokens with one masked word each; the second ends in padding.
BATCH = {
    "token_ids": np.array([[1, 5, 6, 2], [1, 7, 2, 0]]),
    "attention_mask": np.array([[1, 1, 1, 1], [1, 1, 1, 0]]),
    "masked_positions": np.array([[1], [1]]),
}


WEIGHTS = {"generator_weight": 1.0, "discriminator_weight": 50.0}


def outputs(logits: Any, generated: Any, labels: Any) -> list[Any]:
    """Return outputs; ``generated``: the likeliest word of each sentence, by a factor of e^2."""
    message = np.zeros((2, 1, 8), np.float32)
    message[[0, 1], 0, generated] = 2.0
    return [np.array(logits, np.float32), message, np.array(labels, np.float32)]


#: The first word is predicted and kept; the second is not predicted and is replaced.
RIGHT = outputs([[-9, 9, -9, -9], [-9, 9, -9, 9]], [5, 3], [[0, 0, 0, 0], [0, 1, 0, 0]])


def total(outputs: list[Any]) -> dict[str, float]:
    scored = tasks.score_replaced(outputs, BATCH)
    return tasks.replaced_scores(WEIGHTS, {name: v.sum() for name, v in scored.items()}, 2)


def test_scores_are_those_of_a_count_by_hand() -> None:
    actual = total(RIGHT)
    of_seven = math.exp(2) + 7
    known, other = math.log(of_seven) - 2, math.log(of_seven)
    small, large = math.log1p(math.exp(-9)), math.log1p(math.exp(9))
    expected = {
        "masked_accuracy": 0.5,
        "sampled_accuracy": 0.5,
        "discriminator_accuracy": 6 / 7,  # padding does not count
        "discriminator_precision": 0.5,
        "discriminator_recall": 1.0,
        "generator_loss": (known + other) / 2,
        "discriminator_loss": (6 * small + large) / 7,
    }
    expected["loss"] = expected["generator_loss"] + 50 * expected["discriminator_loss"]
    assert actual == pytest.approx(expected)
    assert tuple(actual) == (*tasks.SCORES, *tasks.LOSSES, "loss")


def test_what_is_of_no_token_is_no_number_and_costs_no_other_metric() -> None:
    silent = outputs([[-9] * 4, [-9] * 4], [5, 7], np.zeros((2, 4)))
    actual = total(silent)
    lacking = [name for name, value in actual.items() if math.isnan(value)]
    assert tuple(lacking) == tasks.MAY_LACK
    reported = {name: None if math.isnan(value) else value for name, value in actual.items()}
    rank = {"curve": [{"held_out": reported, "final_loss": 8.7}]}
    created = evaluation.metrics(tasks.REPLACED, None, "sequences/s")
    assert [name for name, metric in created.items() if metric.optional] == lacking
    assert combined(created["discriminator_recall"], [rank]) is None
    assert combined(created["masked_accuracy"], [rank]) == 1.0
    assert (combined(created["final_loss"], [rank]), created["final_loss"].better) == (8.7, "lower")


# ---- epochs counted in updates -------------------------------------------------------------------


def numbered(epoch: int) -> Iterator[Any]:
    return iter([(epoch, number) for number in range(3)])


def test_epochs_of_updates_go_on_through_the_samples_also_when_taken_up() -> None:
    rounds = sources.epochs_of_steps(numbered, 3, 4)
    whole = [list(rounds(epoch)) for epoch in range(3)]
    assert whole[0] == [(0, 0), (0, 1), (0, 2), (1, 0)]
    assert whole[2] == [(2, 2), (3, 0), (3, 1), (3, 2)]
    taken_up = sources.epochs_of_steps(numbered, 3, 4)
    assert [list(taken_up(epoch)) for epoch in (1, 2)] == whole[1:]
