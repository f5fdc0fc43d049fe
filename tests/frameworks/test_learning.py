"""Every framework learns the shipped digits with other batches and learning rates than at build.
One process per framework does all of it, because most of the time goes to imports."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from .comparing import in_one_process
from .fork_server import ForkServers
from .training_compilers import TRAINING_COMPILERS

#: Framework whose weights all others get.
TEACHER = "pytorch"
EPOCHS = 4
#: Frameworks that do the whole training here.
LEARNERS = (TEACHER,)

SCRIPT = """
import numpy as np
import tasks
from harness.learning import batches, material, starting
from harness.learning.evaluation import Evaluator
from harness.learning.sources import TrainingData
from harness.learning.targets import Softening, softened
from harness.learning.training import Recipe, train
from harness.kind import Context, Workload
from harness.messages.report import Report

facts = facts_of("digits_resnet")
task = tasks.load("digits")
data = task.data()

def drawn(seed):
    return make_batch(facts["inputs"], 4, None, seed, 0)

def adapter_with(batch):
    one = started(facts, compiler=COMPILER, batch=4)
    one.build(batch)
    one.set_learning_rate(STILL)
    return one

def loss(adapter):
    return adapter.read(adapter.step())

def flat(arrays):
    return np.concatenate([arrays[name].ravel() for name in sorted(arrays)]).astype(np.float64)

STILL = 1e-12  # not 0: momentum of steps would be lost
found = {}
fed, built = adapter_with(drawn(1)), adapter_with(drawn(2))
before = flat(fed.weights())
found["first"] = loss(fed)
handed = drawn(2)
fed.feed(handed)
for array in handed.values():
    array[:] = 0  # it has been copied
found["fed"] = loss(fed)
start = built.weights()
built.set_learning_rate(0.01)
found["built"] = loss(built)
first = flat(built.weights()) - flat(start)
found["moved"] = float(abs(flat(fed.weights()) - before).max())
wrong = drawn(2)
wrong["images"] = wrong["images"][:, :4]
found["wrong shape"] = raised(ValueError, lambda: fed.feed(wrong))
found["wrong names"] = raised(ValueError, lambda: fed.feed({"images": handed["images"]}))

# from the same weights with the same batch, and so with the same gradient, a second step goes 1.9
# times as far, at another rate: by that, and by the momentum
built.load_weights({**start, **built.statistics()})
built.set_learning_rate(0.003)
built.step()
moved, wanted = flat(built.weights()) - flat(start), 0.3 * 1.9 * first
found["pace"] = float(np.linalg.norm(moved - wanted) / np.linalg.norm(wanted))

# soft answers: from weights that all frameworks have, and beside them what its own outputs say
def mixed(seed):
    return softened(drawn(seed), Softening(0.1, 0.2, 10), (seed, 0, 0, 0))

soft = adapter_with(mixed(3))
random = np.random.RandomState(1)
held = soft.weights()
held = {name: random.normal(0, 0.1, held[name].shape) for name in sorted(held)}
soft.load_weights({**held, **soft.statistics()})
logits = np.asarray(soft.outputs()[0], np.float64)
logits -= logits.max(axis=1, keepdims=True)
logits -= np.log(np.exp(logits).sum(axis=1, keepdims=True))
found["soft by its outputs"] = float(-(mixed(3)["labels"] * logits).sum(axis=1).mean())
found["hard by its outputs"] = float(-logits[np.arange(4), drawn(3)["labels"]].mean())
found["soft"] = loss(soft)

# taken up by a model that has not made a step
def go_on(adapter, seeds):
    for seed in seeds:
        adapter.set_learning_rate(0.001 * seed)
        adapter.feed(mixed(seed))
        adapter.step()
    return flat({**adapter.weights(), **adapter.statistics()})

go_on(soft, (4, 5))
soft.save_training(KEPT)
wanted = go_on(soft, (6, 7))
fresh = started(facts, compiler=COMPILER, batch=4)
fresh.build(mixed(3))
fresh.load_training(KEPT)
found["taken up"] = float(abs(go_on(fresh, (6, 7)) - wanted).max())
found["went on"] = float(abs(wanted - go_on(soft, (8,))).max())
"""

LEARN = """
class Silent(Report):
    def _save(self, final):
        pass

adapter = started(facts, compiler=COMPILER, batch=32)
evaluator = Evaluator(adapter, task.score, data.held_out)
if LEARNS:
    first = next(batches.epoch_batches(data.train, 32, 0, 1, 0))
    adapter.build(first)
    workload = Workload(adapter.case, facts, {}, 1, None, 1)
    context = Context(workload, adapter.rank_context, adapter, [], Silent("", 0, ""))
    recipe = Recipe(EPOCHS, "accuracy", None, "one_cycle", 0.1, 0.3)
    source = TrainingData(
        len(data.train["labels"]),
        first,
        lambda epoch: batches.epoch_batches(data.train, 32, 0, 1, epoch),
        lambda: evaluator,
        len(data.train["labels"]) // 32,
    )
    curve = train(context, source, recipe, evaluator.scores)
    found["curve"] = [epoch["held_out"]["accuracy"] for epoch in curve]
    found["losses"] = [epoch["loss"] for epoch in curve]
    kept = {**adapter.weights(), **adapter.statistics()}
    frozen = {
        name: np.full_like(array, "var" in name) for name, array in adapter.statistics().items()
    }
    evaluator.load({**kept, **frozen})
    found["without statistics"] = evaluator.scores_as_loaded()
    if FRAMEWORK == TEACHER:
        material.leave(adapter, *os.path.split(WEIGHTS))
shapes = {name: array.shape for name, array in {**soft.weights(), **soft.statistics()}.items()}
start = starting.read(WEIGHTS + ".safetensors", shapes)
evaluator.load(start.weights)
found["taught"] = evaluator.scores_as_loaded()
soft.load_weights(start.weights)
found["left"] = material.leave(soft, *os.path.split(f"{WEIGHTS}-{FRAMEWORK}"))["sha256"]
fresh.load_weights({name: array + 1 for name, array in start.weights.items()})
found["left otherwise"] = material.leave(fresh, *os.path.split(KEPT + "-other"))["sha256"]
answer(**found)
"""


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
        names = {
            "COMPILER": TRAINING_COMPILERS[framework],
            "LEARNS": framework in LEARNERS,
            "EPOCHS": EPOCHS,
            "TEACHER": TEACHER,
            "WEIGHTS": str(self._folder / "taught"),
            "KEPT": str(self._folder / f"{framework}-kept"),
        }
        given = "\n".join(f"{name} = {value!r}" for name, value in names.items())
        before = in_one_process(framework)
        (answer,) = self._servers(framework)(f"{given}\n{before}\n{SCRIPT}{LEARN}")
        return answer


@pytest.fixture(scope="module")
def learned(fork_servers: ForkServers, tmp_path_factory: pytest.TempPathFactory) -> Answers:
    return Answers(fork_servers, tmp_path_factory.mktemp("learned"))


def test_the_teacher_learns_first() -> None:
    assert next(iter(TRAINING_COMPILERS)) == TEACHER, "the others are given its weights"


@pytest.mark.parametrize("framework", TRAINING_COMPILERS)
def test_a_step_computes_with_what_was_fed_last(framework: str, learned: Answers) -> None:
    """Fail if a step computes with other data than those fed last, or with changed arrays."""
    found = learned[framework]
    assert found["fed"] == pytest.approx(found["built"], rel=1e-5)
    assert found["first"] != pytest.approx(found["built"], rel=1e-3), "both batches are alike"
    assert "images is float32 (4, 4, 8, 1), not float32 (4, 8, 8, 1)" in found["wrong shape"]
    assert "labels" in found["wrong names"]


@pytest.mark.parametrize("framework", TRAINING_COMPILERS)
def test_a_step_goes_as_far_as_the_rate_says(framework: str, learned: Answers) -> None:
    assert learned[framework]["moved"] < 1e-9
    assert learned[framework]["pace"] < 1e-3


@pytest.mark.parametrize("framework", LEARNERS)
def test_it_learns_the_digits(framework: str, learned: Answers) -> None:
    found = learned[framework]
    assert found["curve"][-1] > 0.95
    assert found["losses"][-1] < found["losses"][0] / 3
    # planted: the second model with the initial statistics
    assert found["without statistics"]["accuracy"] < found["curve"][-1] - 0.1


@pytest.mark.parametrize("framework", TRAINING_COMPILERS)
def test_what_one_has_learned_all_others_know(framework: str, learned: Answers) -> None:
    """Fail if another framework scores differently with the teacher's weights and statistics.
    They come from the file of a training, by shared names."""
    found, teacher = learned[framework]["taught"], learned[TEACHER]["taught"]
    assert found["accuracy"] == teacher["accuracy"] == learned[TEACHER]["curve"][-1]
    assert found["loss"] == pytest.approx(teacher["loss"], rel=1e-4)


@pytest.mark.parametrize("framework", TRAINING_COMPILERS)
def test_each_leaves_the_same_file_of_the_same_weights(framework: str, learned: Answers) -> None:
    """Fail if two frameworks write different files of the same weights: names, layout, bits."""
    found, teacher = learned[framework], learned[TEACHER]
    assert found["left"] == teacher["left"]
    assert found["left otherwise"] != found["left"]


@pytest.mark.parametrize("framework", TRAINING_COMPILERS)
def test_soft_answers_have_the_same_loss_everywhere(framework: str, learned: Answers) -> None:
    """Fail if label smoothing or mixup give another loss than in float64 or in another framework.
    Weights and batch are the same."""
    found, teacher = learned[framework], learned[TEACHER]
    assert found["soft"] == pytest.approx(found["soft by its outputs"], rel=1e-5)
    assert found["soft"] == pytest.approx(teacher["soft"], rel=1e-5)
    # planted: answers that are not soft
    assert found["soft"] != pytest.approx(found["hard by its outputs"], rel=1e-3)


@pytest.mark.parametrize("framework", TRAINING_COMPILERS)
def test_a_training_is_taken_up_bit_by_bit(framework: str, learned: Answers) -> None:
    """Fail if a resumed training differs in any bit: weights, statistics, momentum, rate.
    The resuming model has made no step."""
    assert learned[framework]["taken up"] == 0
    # planted: one more step
    assert learned[framework]["went on"] > 0
