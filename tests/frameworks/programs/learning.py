"""Training: of digits, killed and resumed, and of ELECTRA by the benchmark ``converge``."""

import functools
import hashlib
import os
import signal

import numpy as np
import tasks
from harness.kind import Context, Workload
from harness.kinds.converge import Converge
from harness.learning import saved as files
from harness.learning import sources
from harness.learning.evaluation import Evaluator
from harness.learning.saved import Checkpoint
from harness.learning.sources import TrainingData
from harness.learning.training import Recipe, Softening, softened, train
from harness.measuring.model import make_batch
from harness.report import Report

from .prelude import FRAMEWORK, RANK, WORLD, started
from .ranks import answer, await_ranks
from .small import model_config_of


def pretrain(length, batch, micro_steps, parameters):
    model_config = model_config_of("topics_electra")
    adapter = started(model_config, batch=batch, steps=micro_steps, sequence=length)
    given = {parameter.name: parameter.default for parameter in Converge.parameters}
    given.update(parameters)
    workload = Workload(adapter.case, adapter.model_config, given, 1, None, 1)
    context = Context(workload, adapter.rank_context, adapter, [], SilentReport("", 0, ""))
    context.fields["framework_version"] = context.fields["device"] = ""
    Converge().measure(context)
    return {"curve": context.fields["curve"]}


def train_and_die(compiler, folder, epochs, kept, dropout):
    model_config = model_config_of("digits_resnet")
    model_config["hyperparameters"]["dropout"] = dropout
    model_config["hyperparameters"]["layers"] = [
        {"op": "convolution", "name": "conv1", "channels": 4, "kernel": 3},
        {"op": "batch_norm", "name": "bn1"},
        {"op": "relu", "name": "relu1"},
        {"op": "global_average_pool", "name": "pool"},
        {"op": "dropout", "name": "drop"},
        {"op": "linear", "name": "fc", "features": 10},
    ]

    def drawn(seed):
        return make_batch(model_config["inputs"], 4, None, seed, RANK)

    def digest(arrays):
        whole = hashlib.sha256()
        for name in sorted(arrays):
            whole.update(arrays[name].tobytes())
        return whole.hexdigest()

    adapter = started(model_config, compiler=compiler, batch=4)
    adapter.require_resumable()
    adapter.build(drawn(0))
    checkpoint = Checkpoint(folder, {}, RANK, WORLD)
    curve = checkpoint.load(adapter)
    resumed, seen = len(curve), []
    for number in range(resumed, epochs):
        for step in range(2):
            adapter.set_learning_rate(0.01 * (number + step + 1))
            adapter.feed(drawn(2 * number + step))
            adapter.step()
        curve.append({"epoch": number + 1})
        seen.append([digest(adapter.weights()), digest(adapter.statistics())])
        if number < kept:
            checkpoint.save(adapter, curve)
    answer(resumed=resumed, seen=seen)
    await_ranks()
    os.kill(os.getpid(), signal.SIGKILL)


class SilentReport(Report):
    """Report that leaves no file."""

    def _save(self, final):
        pass


def learn(compiler, learns, epochs, teacher, weights, kept):
    model_config = model_config_of("digits_resnet")
    task = tasks.load("digits")
    data = task.data()

    def drawn(seed):
        return make_batch(model_config["inputs"], 4, None, seed, 0)

    def adapter_with(batch):
        one = started(model_config, compiler=compiler, batch=4)
        one.build(batch)
        one.set_learning_rate(still)
        return one

    def loss(adapter):
        return adapter.read(adapter.step())

    def flat(arrays):
        return np.concatenate([arrays[name].ravel() for name in sorted(arrays)]).astype(np.float64)

    still = 1e-12  # not 0, because momentum of steps would be lost
    actual = {}
    fed, built = adapter_with(drawn(1)), adapter_with(drawn(2))
    before = flat(fed.weights())
    actual["first"] = loss(fed)
    handed = drawn(2)
    fed.feed(handed)
    for array in handed.values():
        array[:] = 0  # the array must have been copied
    actual["fed"] = loss(fed)
    start = built.weights()
    built.set_learning_rate(0.01)
    actual["built"] = loss(built)
    first = flat(built.weights()) - flat(start)
    actual["moved"] = float(abs(flat(fed.weights()) - before).max())

    # Weights and batch are the same, and so is the gradient: because of the momentum, a second step
    # at another rate moves 1.9 times as far relative to its rate.
    built.load_weights({**start, **built.statistics()})
    built.set_learning_rate(0.003)
    built.step()
    moved, wanted = flat(built.weights()) - flat(start), 0.3 * 1.9 * first
    actual["pace"] = float(np.linalg.norm(moved - wanted) / np.linalg.norm(wanted))

    # soft labels: losses from weights that all frameworks share, and the loss that the framework's
    # own outputs imply
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
    actual["soft by its outputs"] = float(-(mixed(3)["labels"] * logits).sum(axis=1).mean())
    actual["hard by its outputs"] = float(-logits[np.arange(4), drawn(3)["labels"]].mean())
    actual["soft"] = loss(soft)

    # taken up by a model that has not made a step
    def go_on(adapter, seeds):
        for seed in seeds:
            adapter.set_learning_rate(0.001 * seed)
            adapter.feed(mixed(seed))
            adapter.step()
        return flat({**adapter.weights(), **adapter.statistics()})

    go_on(soft, (4, 5))
    soft.save_training(kept)
    wanted = go_on(soft, (6, 7))
    fresh = started(model_config, compiler=compiler, batch=4)
    fresh.build(mixed(3))
    fresh.load_training(kept)
    actual["taken up"] = float(abs(go_on(fresh, (6, 7)) - wanted).max())
    actual["went on"] = float(abs(wanted - go_on(soft, (8,))).max())

    adapter = started(model_config, compiler=compiler, batch=32)
    held_out = functools.partial(sources.evaluation_batches, data.held_out, 32)
    evaluator = Evaluator(adapter, task.scoring, data.train, held_out)
    if learns:
        first = next(sources.epoch_batches(data.train, 32, 0, 1, 0))
        adapter.build(first)
        workload = Workload(adapter.case, model_config, {}, 1, None, 1)
        context = Context(workload, adapter.rank_context, adapter, [], SilentReport("", 0, ""))
        recipe = Recipe(epochs, "accuracy", None, "one_cycle", 0.1, 0.3)
        source = TrainingData(
            len(data.train["labels"]),
            first,
            lambda epoch: sources.epoch_batches(data.train, 32, 0, 1, epoch),
            lambda: evaluator,
            len(data.train["labels"]) // 32,
        )
        curve = train(context, source, recipe, evaluator.scores)
        actual["curve"] = [epoch["held_out"]["accuracy"] for epoch in curve]
        actual["losses"] = [epoch["loss"] for epoch in curve]
        learned = {**adapter.weights(), **adapter.statistics()}
        frozen = {
            name: np.full_like(array, "var" in name) for name, array in adapter.statistics().items()
        }
        actual["without statistics"] = evaluator.scores({**learned, **frozen})
        if teacher == FRAMEWORK:
            files.save_training(adapter, *os.path.split(weights))
    shapes = {name: array.shape for name, array in {**soft.weights(), **soft.statistics()}.items()}
    start, _ = files.read_weights(weights + ".safetensors", shapes)
    actual["taught"] = evaluator.scores(start)
    soft.load_weights(start)
    actual["left"] = files.save_training(soft, *os.path.split(f"{weights}-{FRAMEWORK}"))["sha256"]
    fresh.load_weights({name: array + 1 for name, array in start.items()})
    actual["left otherwise"] = files.save_training(fresh, *os.path.split(kept + "-other"))["sha256"]
    return actual
