"""Every framework learns the shipped digits with other batches and learning rates than at build.
One process per framework does all of it, because most of the time goes to imports. Two devices that
were killed go on, and PyTorch pre-trains ELECTRA."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from tasks import topics

from ..conftest import ROOT
from .fork_server import ForkServers

#: Frameworks whose users train with several compilers, and these compilers.
_OTHERS = {"mxnet": "hybridize"}
_DECLARED = {
    path.parent.name: json.loads(path.read_text()).get("trained_with", "none")
    for path in sorted(ROOT.glob("scripts/frameworks/*/framework.json"))
}
#: Compiler that each framework trains with; PyTorch is first and gives the others its weights.
TRAINING_COMPILERS: dict[str, str] = {"pytorch": "none", **_DECLARED, **_OTHERS}


#: Framework whose weights all others use.
TEACHER = "pytorch"
EPOCHS = 4
#: Frameworks that do the whole training here.
LEARNERS = (TEACHER,)


class Answers:
    """Answers of each framework, computed when first needed; the teacher is first."""

    def __init__(self, servers: ForkServers, folder: Path) -> None:
        self._servers, self._folder = servers, folder
        self._known: dict[str, dict[str, Any]] = {}

    def __getitem__(self, framework: str) -> dict[str, Any]:
        if framework != TEACHER:
            self[TEACHER]
        if framework not in self._known:
            self._known[framework] = self._ask(framework)
        return self._known[framework]

    def _ask(self, framework: str) -> dict[str, Any]:
        (answer,) = self._servers(framework)(
            "learning.learn",
            compiler=TRAINING_COMPILERS[framework],
            learns=framework in LEARNERS,
            epochs=EPOCHS,
            teacher=TEACHER,
            weights=str(self._folder / "taught"),
            kept=str(self._folder / f"{framework}-kept"),
        )
        return answer


@pytest.fixture(scope="module")
def learned(fork_servers: ForkServers, tmp_path_factory: pytest.TempPathFactory) -> Answers:
    return Answers(fork_servers, tmp_path_factory.mktemp("learned"))


@pytest.mark.parametrize("framework", TRAINING_COMPILERS)
def test_a_step_computes_with_what_was_fed_last(framework: str, learned: Answers) -> None:
    actual = learned[framework]
    assert actual["fed"] == pytest.approx(actual["built"], rel=1e-5)
    assert actual["first"] != pytest.approx(actual["built"], rel=1e-3), "both batches are alike"


@pytest.mark.parametrize("framework", TRAINING_COMPILERS)
def test_a_step_goes_as_far_as_the_rate_says(framework: str, learned: Answers) -> None:
    assert learned[framework]["moved"] < 1e-9
    assert learned[framework]["pace"] < 1e-3


@pytest.mark.parametrize("framework", LEARNERS)
def test_it_learns_the_digits(framework: str, learned: Answers) -> None:
    actual = learned[framework]
    assert actual["curve"][-1] > 0.95
    assert actual["losses"][-1] < actual["losses"][0] / 3
    # planted mistake: the second model keeps the initial statistics
    assert actual["without statistics"]["accuracy"] < actual["curve"][-1] - 0.1


@pytest.mark.parametrize("framework", TRAINING_COMPILERS)
def test_weights_that_one_framework_learned_work_in_all_others(
    framework: str, learned: Answers
) -> None:
    """The weights come from the file of a training, by shared names."""
    actual, teacher = learned[framework]["taught"], learned[TEACHER]["taught"]
    assert actual["accuracy"] == teacher["accuracy"] == learned[TEACHER]["curve"][-1]
    assert actual["loss"] == pytest.approx(teacher["loss"], rel=1e-4)


@pytest.mark.parametrize("framework", TRAINING_COMPILERS)
def test_each_leaves_the_same_file_of_the_same_weights(framework: str, learned: Answers) -> None:
    actual, teacher = learned[framework], learned[TEACHER]
    assert actual["left"] == teacher["left"]
    assert actual["left otherwise"] != actual["left"]


@pytest.mark.parametrize("framework", TRAINING_COMPILERS)
def test_soft_answers_have_the_same_loss_everywhere(framework: str, learned: Answers) -> None:
    """Label smoothing and mixup, also in float64; weights and batch are the same."""
    actual, teacher = learned[framework], learned[TEACHER]
    assert actual["soft"] == pytest.approx(actual["soft by its outputs"], rel=1e-5)
    assert actual["soft"] == pytest.approx(teacher["soft"], rel=1e-5)
    # planted mistake: labels that are not soft
    assert actual["soft"] != pytest.approx(actual["hard by its outputs"], rel=1e-3)


@pytest.mark.parametrize("framework", TRAINING_COMPILERS)
def test_a_training_is_taken_up_bit_by_bit(framework: str, learned: Answers) -> None:
    """Weights, statistics, momentum and rate; the resuming model has made no step."""
    assert learned[framework]["taken up"] == 0
    # planted mistake: one more step
    assert learned[framework]["went on"] > 0


KEPT = 2


@pytest.mark.parametrize("framework", ["jax", "pytorch", "tensorflow"])
def test_two_devices_that_were_killed_go_on_bit_by_bit(
    fork_servers: ForkServers, framework: str, tmp_path: Path
) -> None:
    run = fork_servers(framework)
    given: dict[str, Any] = {"epochs": KEPT + 1, "kept": KEPT, "dropout": 0.5}
    given |= {"compiler": TRAINING_COMPILERS[framework], "folder": str(tmp_path / "checkpoints")}
    whole, resumed = (run("learning.train_and_die", ranks=2, **given) for _ in range(2))
    assert [entry["resumed"] for entry in (*whole, *resumed)] == [0, 0, KEPT, KEPT]
    ends: list[Any] = [entry["seen"][-1] for entry in whole]
    assert [entry["seen"][-1] for entry in resumed] == ends
    (weights, statistics), (others, own) = ends
    assert weights == others, "the ranks have trained two models"
    # ranks differ in statistics, so a checkpoint by the first rank alone would be noticed
    assert statistics != own
    assert all(entry["seen"][KEPT - 1] != end for entry, end in zip(whole, ends, strict=True))


#: Mean cross-entropy of predicting one of two words, in nats.
ENTROPY = -sum(chance * math.log(chance) for chance in topics.CHANCES)
#: Case and recipe that take seconds in all.
WORDS, BATCH, MICRO_STEPS = 32, 16, 2
PARAMETERS = {"epochs": 2, "epoch_steps": 50, "schedule": "polynomial:0.5:0", "warmup": 0.2}


def faults(answer: dict[str, Any]) -> list[str]:
    """Return the results of a training that are outside the bounds for this number of steps."""
    scores = answer["curve"][-1]["held_out"]
    bounds = {
        # 85 % of the words are masked; each has two values, with chances of 3/4 and 1/4. Lower
        # losses occur only by chance
        "generator_loss": (0.97 * 0.85 * ENTROPY, 2.0),
        # predicting the likelier word is right in 3 of 4, and unmasked words are known: at most
        # 0.79
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


def test_electra_learns_what_can_be_learned(fork_servers: ForkServers) -> None:
    """Fail if a score is outside its bounds. ``test_words.py`` trains other frameworks."""
    (answer,) = fork_servers("pytorch")(
        "learning.pretrain",
        length=WORDS,
        batch=BATCH,
        micro_steps=MICRO_STEPS,
        parameters=PARAMETERS,
    )
    assert not faults(answer)
    before, behind = answer["curve"][0], answer["curve"][-1]
    assert behind["final_loss"] < before["loss"]
    assert behind["samples"] == PARAMETERS["epoch_steps"] * BATCH * MICRO_STEPS
