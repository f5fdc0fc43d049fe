"""Every framework learns the shipped digits with other batches and learning rates than at build.
One process per framework does all of it, because most of the time goes to imports."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from .fork_server import ForkServers
from .training_compilers import TRAINING_COMPILERS

#: Framework whose weights all others get.
TEACHER = "pytorch"
EPOCHS = 4
#: Frameworks that do the whole training here.
LEARNERS = (TEACHER,)


class Answers:
    """Answers of each framework, computed when the first test needs them, the teacher's first."""

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


def test_the_teacher_learns_first() -> None:
    assert next(iter(TRAINING_COMPILERS)) == TEACHER, "the others are given its weights"


@pytest.mark.parametrize("framework", TRAINING_COMPILERS)
def test_a_step_computes_with_what_was_fed_last(framework: str, learned: Answers) -> None:
    """Fail if a step computes with other data than those fed last, or with changed arrays."""
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
    # planted: the second model with the initial statistics
    assert actual["without statistics"]["accuracy"] < actual["curve"][-1] - 0.1


@pytest.mark.parametrize("framework", TRAINING_COMPILERS)
def test_what_one_has_learned_all_others_know(framework: str, learned: Answers) -> None:
    """Fail if another framework scores differently with the teacher's weights and statistics.
    They come from the file of a training, by shared names."""
    actual, teacher = learned[framework]["taught"], learned[TEACHER]["taught"]
    assert actual["accuracy"] == teacher["accuracy"] == learned[TEACHER]["curve"][-1]
    assert actual["loss"] == pytest.approx(teacher["loss"], rel=1e-4)


@pytest.mark.parametrize("framework", TRAINING_COMPILERS)
def test_each_leaves_the_same_file_of_the_same_weights(framework: str, learned: Answers) -> None:
    """Fail if two frameworks write different files of the same weights: names, layout, bits."""
    actual, teacher = learned[framework], learned[TEACHER]
    assert actual["left"] == teacher["left"]
    assert actual["left otherwise"] != actual["left"]


@pytest.mark.parametrize("framework", TRAINING_COMPILERS)
def test_soft_answers_have_the_same_loss_everywhere(framework: str, learned: Answers) -> None:
    """Fail if label smoothing or mixup give another loss than in float64 or in another framework.
    Weights and batch are the same."""
    actual, teacher = learned[framework], learned[TEACHER]
    assert actual["soft"] == pytest.approx(actual["soft by its outputs"], rel=1e-5)
    assert actual["soft"] == pytest.approx(teacher["soft"], rel=1e-5)
    # planted: answers that are not soft
    assert actual["soft"] != pytest.approx(actual["hard by its outputs"], rel=1e-3)


@pytest.mark.parametrize("framework", TRAINING_COMPILERS)
def test_a_training_is_taken_up_bit_by_bit(framework: str, learned: Answers) -> None:
    """Fail if a resumed training differs in any bit: weights, statistics, momentum, rate.
    The resuming model has made no step."""
    assert learned[framework]["taken up"] == 0
    # planted: one more step
    assert learned[framework]["went on"] > 0
