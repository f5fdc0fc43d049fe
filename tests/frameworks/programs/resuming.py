"""Training that is killed, and resumed."""

import hashlib
import os
import signal

from harness.learning.checkpoints import Checkpoint
from harness.measuring.synthetic import make_batch

from .prelude import RANK, WORLD, started
from .ranks import answer, await_ranks
from .small import model_config_of


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
