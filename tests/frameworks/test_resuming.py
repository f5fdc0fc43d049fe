"""Two killed devices resume bit by bit, in every framework that trains on several.
Two other processes continue from the folder of checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from .fork_server import ForkServers
from .training_compilers import TRAINING_COMPILERS

#: Frameworks that do not save the random state of dropout masks.
FORGETFUL = {"mindspore", "mxnet", "oneflow", "paddle"}
#: Frameworks without a second model next to one on several devices, or without several devices.
ALONE = {"megengine", "tensorflow1"}
EPOCHS, KEPT = 3, 2

SCRIPT = """
import hashlib, signal
from harness.learning.checkpoints import Checkpoint

facts = facts_of("digits_resnet")
facts["hyperparameters"]["dropout"] = 0.5
facts["hyperparameters"]["layers"] = [
    {"op": "convolution", "name": "conv1", "channels": 4, "kernel": 3},
    {"op": "batch_norm", "name": "bn1"},
    {"op": "relu", "name": "relu1"},
    {"op": "global_average_pool", "name": "pool"},
    {"op": "dropout", "name": "drop"},
    {"op": "linear", "name": "fc", "features": 10},
]

def drawn(seed):
    return make_batch(facts["inputs"], 4, None, seed, RANK)

def digest(arrays):
    whole = hashlib.sha256()
    for name in sorted(arrays):
        whole.update(arrays[name].tobytes())
    return whole.hexdigest()

adapter = started(facts, compiler=COMPILER, batch=4)
refused = raised(Unsupported, adapter.require_resumable)
if refused:
    facts["hyperparameters"]["dropout"] = 0.0
    adapter.require_resumable()
adapter.build(drawn(0))
checkpoint = Checkpoint(FOLDER, {}, RANK, WORLD)
curve = checkpoint.load(adapter)
resumed, seen = len(curve), []
for number in range(resumed, EPOCHS):
    for step in range(2):
        adapter.set_learning_rate(0.01 * (number + step + 1))
        adapter.feed(drawn(2 * number + step))
        adapter.step()
    curve.append({"epoch": number + 1})
    seen.append([digest(adapter.weights()), digest(adapter.statistics())])
    if number < KEPT:
        checkpoint.save(adapter, curve)
answer(resumed=resumed, seen=seen, refused=refused)
await_ranks()
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("framework", sorted({*TRAINING_COMPILERS} - ALONE))
def test_two_devices_that_were_killed_go_on_bit_by_bit(
    fork_servers: ForkServers, framework: str, tmp_path: Path
) -> None:
    given = {
        "COMPILER": TRAINING_COMPILERS[framework],
        "FOLDER": str(tmp_path / "checkpoints"),
        "EPOCHS": EPOCHS,
        "KEPT": KEPT,
    }
    script = "\n".join(f"{name} = {value!r}" for name, value in given.items()) + SCRIPT
    run = fork_servers(framework)
    whole, resumed = run(script, ranks=2), run(script, ranks=2)
    assert [one["resumed"] for one in (*whole, *resumed)] == [0, 0, KEPT, KEPT]
    for one in (*whole, *resumed):
        refused = f"{framework} keeps no state of its random numbers" in (one["refused"] or "")
        assert refused == (framework in FORGETFUL)
    ends: list[Any] = [one["seen"][-1] for one in whole]
    assert [one["seen"][-1] for one in resumed] == ends
    (weights, statistics), (others, own) = ends
    assert weights == others, "the ranks have trained two models"
    # lost in a checkpoint of the first rank alone, and absent without one
    assert statistics != own
    assert all(one["seen"][KEPT - 1] != end for one, end in zip(whole, ends, strict=True))
