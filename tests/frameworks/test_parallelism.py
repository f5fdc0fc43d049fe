"""How devices share a training step: whatever the way, gradients are those of one process with all
samples, and each rank holds a part of the model."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from ..conftest import build_environment
from .comparing import BEFORE
from .fork_server import ForkServer
from .models import small

#: Learned positions and a tied head; rotary ones, grouped keys and a gate; normalised behind its
#: residuals and with segments.
MODELS = ("gpt2_small", "llama_8b", "bert_base")
#: By framework and number of ranks.
WAYS = {
    "pytorch": {2: ("fsdp", "tensor"), 4: ("fsdp", "tensor", "fsdp2xtensor2")},
}
ERROR = 1e-5  # relative, of a gradient's norm


@pytest.fixture(scope="module", params=WAYS)
def run(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ForkServer]:
    python, folder = build_environment(request.param), tmp_path_factory.mktemp("ranks")
    with ForkServer(request.param, python, IMPORTS[request.param], folder) as server:
        yield server


IMPORTS = {"pytorch": "import torch", "jax": ""}
COMPARED = """
import numpy as np
from harness.measuring.errors import compare_arrays

def one_batch(facts, replicas, steps=1):
    parts = [batch_of(facts, 2 * steps, rank=replica) for replica in range(replicas)]
    return parts, {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

def on_one(facts, replicas, steps=1):
    alone = Place(0, 0, ADDRESSES[RANK:RANK + 1], "cpu", 1, seed=7)
    adapter = started(facts, batch=2 * replicas * steps, place=alone)
    adapter.build(one_batch(facts, replicas, steps)[1])
    return adapter

def on_all(facts, parallelism, steps=1):
    adapter = started(facts, parallelism=parallelism, steps=steps)
    adapter._parallel.join = lambda *where: "gloo"  # once in a process
    layout = adapter.case.layout
    adapter.build(one_batch(facts, layout.replicas, steps)[0][layout.replica(RANK)])
    return adapter

def apart(arrays, others):
    # relative to a twentieth of the norm of all at least: a key's bias has a gradient of zero
    (worst,) = compare_arrays("gradients", arrays, others, 0.05)[:1]
    return worst["error"]
"""


def script(run: ForkServer, text: str, **values: Any) -> str:
    facts = {model: small(model, dropout=0.0) for model in MODELS}
    given = "".join(f"{name} = {value!r}\n" for name, value in values.items())
    facts_text = f"FACTS = json.loads({json.dumps(facts)!r})\n"
    return BEFORE[run.framework] + COMPARED + facts_text + given + text


@pytest.mark.parametrize("ranks", [2, 4])
def test_gradients_are_those_of_one_process(run: ForkServer, ranks: int) -> None:
    ways = WAYS[run.framework][ranks]
    found = run(
        script(
            run,
            """
errors, changes, losses, held, exchanges = {}, {}, {}, {}, {}
for way in WAYS:
    for model, facts in FACTS.items():
        if way == "tensor" and WORLD > facts["hyperparameters"].get("key_value_heads", 4):
            continue
        key = f"{way} {model}"
        adapter = on_all(facts, way)
        alone = on_one(facts, adapter.case.layout.replicas)
        alone.load_weights(adapter.weights())
        before = alone.weights()
        held[key] = [adapter.held_parameters(), adapter.trainable_parameters()]
        errors[key] = apart(adapter.gradients(), alone.gradients())
        losses[key] = [adapter.read(adapter.step()), alone.read(alone.step())]
        after, expected = adapter.weights(), alone.weights()
        changes[key] = apart(
            {n: after[n] - before[n] for n in after}, {n: expected[n] - before[n] for n in after})
        exchanges[key] = adapter.exchanges()
answer(errors=errors, changes=changes, losses=losses, held=held, exchanges=exchanges)
""",
            WAYS=ways,
        ),
        ranks=ranks,
    )
    print(json.dumps(found[0], indent=1))
    for one in found:
        assert {key: error for key, error in one["errors"].items() if not error < ERROR} == {}
