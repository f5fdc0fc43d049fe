"""How devices share a training step: whatever the way, gradients are those of one process with all
samples, and each rank holds a part of the model."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from ..conftest import build_environment
from .comparing import BEFORE
from .fork_server import ForkServer, served
from .models import small

#: Learned positions and a tied head; rotary ones, grouped keys and a gate; normalised behind its
#: residuals and with segments.
MODELS = ("gpt2_small", "llama_8b", "bert_base")
#: By framework and number of ranks.
WAYS = {
    "pytorch": {2: ("fsdp", "tensor"), 4: ("fsdp", "tensor", "fsdp2xtensor2")},
}
ERROR = 1e-5  # relative, of a gradient's norm
#: AdamW's first update is a gradient over its own size: those near zero are mostly rounding.
UPDATE_ERROR = 2e-3


@pytest.fixture(scope="module", params=WAYS)
def run(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ForkServer]:
    python, folder = build_environment(request.param), tmp_path_factory.mktemp("ranks")
    with ForkServer(request.param, python, "", folder) as server:
        yield server


pytorch = served("pytorch")
COMPARED = """
import numpy as np
from harness.measuring.errors import compare_arrays
from harness.measuring.sharding import check_exchanges

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


STEP = """
def observed(way, facts):
    adapter = on_all(facts, way)
    layout = adapter.case.layout
    alone = on_one(facts, layout.replicas)
    before = alone.weights()
    error = apart(adapter.gradients(), alone.gradients())
    loss = adapter.read(adapter.step()), alone.read(alone.step())
    after, expected = adapter.weights(), alone.weights()
    change = apart(
        {n: after[n] - before[n] for n in after}, {n: expected[n] - before[n] for n in after})
    held, total = adapter.held_parameters(), adapter.trainable_parameters()
    exchanges = check_exchanges(way, layout, RANK, adapter.exchanges())
    return dict(error=error, change=change, loss=loss, held=held, total=total, exchanges=exchanges)
"""


@pytest.mark.parametrize("ranks", [2, 4])
def test_gradients_are_those_of_one_process(run: ForkServer, ranks: int) -> None:
    """And so is an update with them, from the weights that the seed draws. Each rank holds a part
    of the model, and exchanges something in every step."""
    cases = [
        (way, model)
        for way in WAYS[run.framework][ranks]
        for model in (MODELS if ranks == 2 else MODELS[:1])
    ]
    text = "answer(found=[observed(way, FACTS[model]) for way, model in CASES])"
    answers = run(script(run, STEP + text, CASES=cases), ranks=ranks)
    for place, (way, model) in enumerate(cases):
        of_ranks = [answer["found"][place] for answer in answers]
        about, total = f"{way} {model}", of_ranks[0]["total"]
        assert max(one["error"] for one in of_ranks) < ERROR, about
        assert max(one["change"] for one in of_ranks) < UPDATE_ERROR, about
        held = [one["held"] for one in of_ranks]
        assert max(held) < total <= sum(held), about
        if way == "fsdp":
            assert sum(held) == total, about
        losses = [one["loss"][0] for one in of_ranks]
        alone = of_ranks[0]["loss"][1]
        assert sum(losses) / ranks == pytest.approx(alone, rel=1e-5), about


#: What goes wrong, by what stands in place of what in the adapter's module.
MISTAKES = {
    "norms not summed up": ("tensor", "torch.distributed.all_reduce(flat, group=group)", "pass"),
    "heads of a rank mixed up": (
        "tensor",
        "for rank in range(ranks) for part in parts]",
        "for part in parts for rank in range(ranks)]",
    ),
    "only layers sharded": ("fsdp", "fully_shard(model, mesh=self._mesh[FSDP])", "pass"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_found(pytorch: ForkServer, mistake: str) -> None:
    """By the gradients, by what ranks hold, or because the shapes no longer fit."""
    way, right, wrong = MISTAKES[mistake]
    text = """
import inspect
from pathlib import Path
adapter = started(FACTS["gpt2_small"], parallelism=WAY)
sharded = adapter._sharded
source = inspect.getsource(sharded)
assert source.count(RIGHT) == 1, RIGHT
exec(compile(source.replace(RIGHT, WRONG), sharded.__file__, "exec"), sharded.__dict__)
adapter._parallel.join = lambda *where: "gloo"
try:
    found = observed(WAY, FACTS["gpt2_small"])
    good = found["error"] < ERROR and found["held"] < found["total"]
except (RuntimeError, ValueError, Mismatch) as error:
    good = False
answer(good=good)
"""
    values = {"WAY": way, "RIGHT": right, "WRONG": wrong, "ERROR": ERROR}
    answers = pytorch(script(pytorch, STEP + text, **values), ranks=2)
    assert not any(answer["good"] for answer in answers), mistake


def test_accumulated_gradients_go_once(pytorch: ForkServer) -> None:
    """With FSDP, several micro-steps send their gradients as often as one does."""
    text = """
found = {}
facts = FACTS["gpt2_small"]
for way in ("fsdp", "tensor"):
    adapter = on_all(facts, way, steps=3)
    alone = on_one(facts, adapter.case.layout.replicas, steps=3)
    error = apart(adapter.gradients(), alone.gradients())
    found[way] = [error, adapter.exchanges(), on_all(facts, way).exchanges()]
answer(found=found)
"""
    (answer, _) = pytorch(script(pytorch, text), ranks=2)
    for error, _, _ in answer["found"].values():
        assert error < ERROR
    _, several, one = answer["found"]["fsdp"]
    assert several["reduce_scatter"] == one["reduce_scatter"] > 0
    _, several, one = answer["found"]["tensor"]
    assert several["reduce_scatter"] == 3 * one["reduce_scatter"] > 0


def test_what_cannot_be_shared_out_is_unsupported(pytorch: ForkServer) -> None:
    text = """
facts, reasons = FACTS["gpt2_small"], []
def attempt(way, **options):
    changed = {**facts, "hyperparameters": {**facts["hyperparameters"], **options.pop("hyper", {})}}
    def build():
        adapter = started(changed, parallelism=way, **options)
        adapter._parallel.join = lambda *where: "gloo"
        adapter.build(batch_of(changed))
    reasons.append(raised(Unsupported, build))
attempt("tensor", hyper={"heads": 3, "key_value_heads": 3, "hidden": 30})
attempt("tensor", hyper={"intermediate": 65})
attempt("fsdp", compiler="inductor")
answer(reasons=reasons)
"""
    (answer, _) = pytorch(script(pytorch, text), ranks=2)
    heads, inputs, compiler = answer["reasons"]
    assert heads == "3 attention heads are not shared out among 2 ranks"
    assert inputs == "65 inputs of feed_forward.down are not cut into 2 parts"
    assert compiler == "with fsdp a step runs without a compiler here"
