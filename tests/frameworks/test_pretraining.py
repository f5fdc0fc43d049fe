"""ELECTRA learns generated sentences by the benchmark ``converge``."""

from __future__ import annotations

import math
from typing import Any

from tasks import topics

from .fork_server import ForkServers

#: Mean cross-entropy of one of two words, in nats.
ENTROPY = -sum(chance * math.log(chance) for chance in topics.CHANCES)
#: Case and recipe that take seconds in all.
LENGTH, BATCH, MICRO_STEPS = 32, 16, 2
PARAMETERS = {"epochs": 2, "epoch_steps": 50, "schedule": "polynomial:0.5:0", "warmup": 0.2}


def faults(answer: dict[str, Any]) -> list[str]:
    """Return the results of a training that are outside the bounds for so few steps."""
    scores = answer["curve"][-1]["held_out"]
    bounds = {
        # 85 % of the words are masked, each one of two with chances of 3/4 and 1/4; below this
        # only by chance
        "generator_loss": (0.97 * 0.85 * ENTROPY, 2.0),
        # the likelier of two words is right in 3 of 4, unmasked ones are known: at most 0.79
        "masked_accuracy": (0.45, 0.82),
        "sampled_accuracy": (0.15, 0.75),
        "discriminator_accuracy": (0.87, 1.0),
        "discriminator_precision": (0.5, 1.0),
        "discriminator_recall": (0.04, 1.0),
        "discriminator_loss": (0.0, 0.36),
    }
    return [
        f"{name} is {scores[name]:.4f}, not from {low:.4g} to {high:.4g}"
        for name, (low, high) in bounds.items()
        if not low <= scores[name] <= high
    ]


def test_it_learns_what_can_be_learned(fork_servers: ForkServers) -> None:
    """Fail if a score is outside its bounds. ``test_words.py`` trains other frameworks."""
    (answer,) = fork_servers("pytorch")(
        "pretraining.learn",
        length=LENGTH,
        batch=BATCH,
        micro_steps=MICRO_STEPS,
        parameters=PARAMETERS,
    )
    assert not faults(answer)
    before, behind = answer["curve"][0], answer["curve"][-1]
    assert behind["final_loss"] < before["loss"]
    assert behind["samples"] == PARAMETERS["epoch_steps"] * BATCH * MICRO_STEPS
