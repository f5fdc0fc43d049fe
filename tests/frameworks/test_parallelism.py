"""Sharding of a training step: gradients as of one process, and a part of the model on
each rank."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from core.parallelism import layout_of
from reference import compute

from .comparing import BEFORE, beyond
from .fork_server import ForkServer, served
from .mistakes.planted import Computation
from .models import SEQUENCE, small
from .planting import PYTORCH, errors_of

#: Models with learned positions and a tied head; with rotary positions, grouped keys and a gate;
#: with post-normalisation and segments.
MODELS = ("gpt2_small", "llama_8b", "bert_base")
#: Sharding, model and micro-steps, by framework and number of ranks. Each pair of ways is in one of
#: them. JAX has one mesh of three axes for all.
WAYS: dict[str, dict[int, list[tuple[str, str, int]]]] = {
    "pytorch": {
        2: [
            ("fsdp", "gpt2_small", 1),
            *(("tensor", model, 1) for model in MODELS),
            *(("pipeline", model, steps) for steps, model in enumerate(MODELS, 1)),
            ("interleaved", "gpt2_small", 4),
            ("interleaved", "bert_base", 1),
        ],
        4: [
            *((way, "gpt2_small", 2) for way in ("data2xfsdp2", "data2xtensor2")),
            ("pipeline", "gpt2 of 4 layers", 5),
            ("data2xpipeline2", "gpt2_small", 3),
            ("interleaved2xfsdp2", "llama_8b", 2),
        ],
        8: [("pipeline2xfsdp2xtensor2", "bert_base", 2)],
    },
    "jax": {
        4: [
            ("data2xfsdp2", "gpt2 of 1 layer", 2),
            ("fsdp2xtensor2", "llama of 1 layer", 2),
        ],
    },
}
ERROR = 1e-5  # relative, of a gradient's norm
#: Error of an element's first update, relative to the learning rate, beyond rounding. JAX computes
#: a step's gradients and returned gradients in different programs; they differ in the last bits,
#: which an update of an element with a gradient of about epsilon amplifies.
UPDATE_ERROR = {"pytorch": 1e-4, "jax": 1e-2}


run = served(*WAYS)
pytorch = served("pytorch")
jax = served("jax")
#: Code of a process before it starts several adapters.
STARTING = {
    "pytorch": BEFORE["pytorch"],
    "jax": """
begin = started
def started(facts, compiler="jit", **options):
    return begin(facts, compiler=compiler, **options)
""",
}
COMPARED = """
import numpy as np
from harness.measuring.verification.micro_steps import check_micro_steps
from harness.measuring.verification.errors import compare_arrays
from harness.measuring.verification.sharding import check_collectives

def one_batch(facts, replicas, steps=1):
    parts = [batch_of(facts, 2 * steps, rank=replica) for replica in range(replicas)]
    return parts, {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

def on_one(facts, replicas, steps=1):
    alone = RankContext(0, 0, ADDRESSES[RANK:RANK + 1], "cpu", 1, seed=7)
    adapter = started(facts, batch=2 * replicas * steps, rank_context=alone)
    adapter.build(one_batch(facts, replicas, steps)[1])
    return adapter

def on_all(facts, parallelism, steps=1):
    adapter = started(facts, parallelism=parallelism, steps=steps)
    adapter._data_parallel.join = lambda *where: "gloo"  # once in a process
    layout = adapter.case.layout
    adapter.build(one_batch(facts, layout.replicas, steps)[0][layout.replica(RANK)])
    return adapter

def apart(arrays, others):
    # relative to a twentieth of the norm of all at least: a key's bias has a gradient of zero
    (worst,) = compare_arrays("gradients", arrays, others, 0.05)[:1]
    return worst["error"]
"""


def script(run: ForkServer, text: str, **values: Any) -> str:
    facts = {model: small(model, dropout=0.0) for model in (*MODELS, "electra_base")}
    facts["gpt2 of 4 layers"] = small("gpt2_small", dropout=0.0, layers=4)
    facts["gpt2 of 1 layer"] = small("gpt2_small", dropout=0.0, layers=1)
    facts["llama of 1 layer"] = small("llama_8b", dropout=0.0, layers=1)
    given = "".join(f"{name} = {value!r}\n" for name, value in values.items())
    facts_text = f"FACTS = json.loads({json.dumps(facts)!r})\n"
    return STARTING[run.framework] + COMPARED + facts_text + given + text


#: AdamW's first update, g / (|g| + epsilon), may be anything if a gradient is mostly rounding. So
#: it is computed element by element from a rank's own gradients, which are compared with one
#: process's.
STEP = """
def first_update(facts, weights, gradients):
    hyper = facts["hyperparameters"]
    gradients = {name: one.astype("float64") for name, one in gradients.items()}
    norm = sum((one ** 2).sum() for one in gradients.values()) ** 0.5
    scale = min(1.0, hyper.get("clip_global_norm", np.inf) / norm)
    decay, epsilon = hyper["weight_decay"], hyper["epsilon"]
    return {
        name: -(scale * one / (abs(scale * one) + epsilon) + decay * weights[name])
        for name, one in gradients.items()
    }

def results_of_one(adapter, facts, steps):
    # weights, gradients and loss of one process: the first rank computes them for all
    if RANK == 0:
        alone = on_one(facts, adapter.case.layout.replicas, steps)
        np.savez("weights.npz", **alone.weights())
        np.savez("gradients.npz", **alone.gradients())
        np.save("loss.npy", alone.read(alone.step()))
    adapter.all_reduce(0.0)
    return dict(np.load("weights.npz")), dict(np.load("gradients.npz")), float(np.load("loss.npy"))

def observed(way, facts, steps=1):
    adapter = observed.adapter = on_all(facts, way, steps)
    layout = adapter.case.layout
    before, expected, loss_of_one = results_of_one(adapter, facts, steps)
    gradients = adapter.gradients()
    error = apart(gradients, expected)
    loss = adapter.read(adapter.step()), loss_of_one
    after, rate = adapter.weights(), facts["hyperparameters"]["learning_rate"]
    expected = first_update(facts, before, gradients)
    change = 0.0
    for name, update in expected.items():
        found = after[name].astype("float64") - before[name]
        rounding = 2.0 ** -23 * np.maximum(abs(after[name]), abs(before[name]))
        change = max(change, ((abs(found - rate * update) - rounding) / rate).max())
    held, total = adapter.held_parameters(), adapter.trainable_parameters()
    collectives = check_collectives(way, layout, RANK, adapter.collective_counts())
    if steps > 1:
        check_micro_steps(steps, adapter.step_matmuls(), adapter.micro_step_matmuls())
    return dict(error=error, change=change, loss=loss, held=held, total=total,
                collectives=collectives)
"""


@pytest.mark.parametrize(
    ("run", "ranks"), [(name, ranks) for name in WAYS for ranks in WAYS[name]], indirect=["run"]
)
def test_gradients_are_those_of_one_process(run: ForkServer, ranks: int) -> None:
    """Fail if gradients or an update differ from those of one process.
    Each rank holds a part of the model, and communicates in every step."""
    cases = WAYS[run.framework][ranks]
    text = """
answer(found=[observed(way, FACTS[model], steps) for way, model, steps in CASES])
"""
    answers = run(script(run, STEP + text, CASES=cases), ranks=ranks)
    for place, (way, model, steps) in enumerate(cases):
        of_ranks = [answer["found"][place] for answer in answers]
        about, total = f"{way} {model} {steps}", of_ranks[0]["total"]
        assert max(one["error"] for one in of_ranks) < ERROR, about
        assert max(one["change"] for one in of_ranks) < UPDATE_ERROR[run.framework], about
        held = [one["held"] for one in of_ranks]
        assert max(held) < total <= sum(held), about
        if way == "fsdp":
            assert sum(held) == total, about
        if "pipeline" in way or "interleaved" in way:
            assert_in_stages(way, model, steps, of_ranks)
        losses = [one["loss"][0] for one in of_ranks]
        alone = of_ranks[0]["loss"][1]
        assert sum(losses) / ranks == pytest.approx(alone, rel=1e-5), about


def assert_in_stages(way: str, model: str, steps: int, of_ranks: list[dict[str, Any]]) -> None:
    """Check that each rank holds its own layers, and a tied embedding is at both ends.
    Each rank sends as many messages as its stages have neighbours, per micro-batch."""
    ranks, total = len(of_ranks), of_ranks[0]["total"]
    layout = layout_of(way, ranks)
    size, inner = layout.stages, layout.replicas * layout.tensor
    twice = 0 if model == "llama_8b" else 50 * 32
    held = sum(one["held"] for one in of_ranks)
    once = layout.data * (total + twice)
    if "tensor" in way:  # embeddings, heads and normalisations are whole in each rank
        assert once < held < layout.tensor * once, f"{way} {model}"
    else:
        assert held == once, f"{way} {model}"
    last = size * (2 if "interleaved" in way else 1) - 1
    for rank, one in enumerate(of_ranks):
        stages = range(rank // inner, last + 1, size)
        neighbours = sum((stage > 0) + (stage < last) for stage in stages)
        assert one["collectives"]["send"] == steps * neighbours, f"{way} {model} rank {rank}"
    if "fsdp" in way and "tensor" not in way:  # gradients are sent once, whatever the micro-steps
        sums = {one["collectives"]["reduce_scatter"] for one in of_ranks}
        assert max(sums) <= 2 * 2 + 2, f"{way} {model}"


#: Mistakes: sharding, text in the adapter's module, and replacement.
MISTAKES = {
    "norms not summed up": ("tensor", "torch.distributed.all_reduce(flat, group=group)", "pass"),
    "heads of a rank mixed up": (
        "tensor",
        "for rank in range(ranks) for part in parts]",
        "for part in parts for rank in range(ranks)]",
    ),
    "only layers sharded": ("fsdp", "fully_shard(model, mesh=over)", "pass"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_found(pytorch: ForkServer, mistake: str) -> None:
    """Fail if a mistake shows neither in gradients nor in what ranks hold nor in shapes."""
    answers = find(pytorch, "gpt2_small", [MISTAKES[mistake]])
    assert not any(answer["good"][0] for answer in answers), mistake


#: Mistakes of stages that stop no rank: one process finds all of them.
MISTAKES_OF_STAGES = (
    ("pipeline", "all_reduce_together(tied, self._ends)", "pass"),
    (
        "pipeline",
        "distributed.broadcast(value, src=self._ranks[-1], group=self._group)",
        "pass",
    ),
    ("interleaved", "batch = self._batches[int(number)]", "batch = self._batches[0]"),
)


def test_mistakes_of_stages_are_found(pytorch: ForkServer) -> None:
    """Fail if mistakes of stages are missed.
    They are: separate gradients of a tied embedding, a loss sent to nobody, a repeated micro-batch.
    """
    unchanged = MISTAKES_OF_STAGES[0][1]
    control = ("pipeline", unchanged, unchanged)
    answers = find(pytorch, "gpt2_small", [*MISTAKES_OF_STAGES, control], steps=2)
    assert all(answer["good"][-1] for answer in answers)
    for number, mistake in enumerate(MISTAKES_OF_STAGES):
        assert not all(answer["good"][number] for answer in answers), mistake


def find(
    run: ForkServer, model: str, mistakes: Sequence[tuple[str, str, str]], steps: int = 1
) -> list[dict[str, Any]]:
    """Return whether all looks good, by rank and mistake.
    ``mistakes``: sharding, text in the adapter's module, and replacement."""
    text = """
facts, good = FACTS[MODEL], []
for way, right, wrong in MISTAKES:
    adapter = started(facts, parallelism=way)
    adapter._data_parallel.join = lambda *where: "gloo"
    with planted(adapter._sharded, (right, wrong)):
        try:
            found = observed(way, facts, STEPS)
            loss, alone = found["loss"]
            good.append(found["error"] < ERROR and found["held"] < found["total"])
            good[-1] = good[-1] and (STEPS == 1 or abs(loss - alone) < ERROR)
        except (RuntimeError, ValueError, Mismatch) as error:
            good.append(False)
answer(good=good)
"""
    values = {"MODEL": model, "MISTAKES": list(mistakes), "ERROR": ERROR, "STEPS": steps}
    return run(script(run, STEP + text, **values), ranks=2)


def test_ranks_of_a_tensor_group_drop_other_elements_in_layers(pytorch: ForkServer) -> None:
    """Fail if ranks drop the same elements of different positions, or different elements of what
    all of them compute, or if a pass repeats the masks of the one before."""
    text = """
import torch
facts = FACTS["gpt2_small"]
facts["hyperparameters"]["dropout"] = 0.5
adapter = on_all(facts, "tensor")
masks = {"embeddings.dropout": [], "layers.0.dropout": []}
for name, found in masks.items():
    def note(module, inputs, output, found=found):
        found.append(torch.nonzero(output.flatten()[:512]).flatten().tolist())
    adapter._model.get_submodule(name).register_forward_hook(note)
adapter.step()
adapter.step()
answer(masks=masks)
"""
    one, other = (answer["masks"] for answer in pytorch(script(pytorch, text), ranks=2))
    assert one["embeddings.dropout"] == other["embeddings.dropout"]
    in_layers = [*one["layers.0.dropout"], *other["layers.0.dropout"]]
    assert len({tuple(mask) for mask in in_layers}) == len(in_layers) == 2 * 2 * 2


def test_a_product_is_compared_with_the_mean_over_all_of_its_batches(
    pytorch: ForkServer, tmp_path: Path
) -> None:
    compute.write(small("gpt2_small", layers=1), SEQUENCE, 0, tmp_path / "four", parts=4)
    on_four = Computation(ranks=4, parallelism="data2xfsdp2")
    errors = errors_of(pytorch, tmp_path / "four", PYTORCH, on_four)
    assert len(errors) == 4
    assert not beyond(errors)


def test_accumulated_gradients_go_once(pytorch: ForkServer) -> None:
    """Fail if FSDP sends accumulated gradients more often than those of one micro-step."""
    text = """
found = {}
facts = FACTS["gpt2_small"]
for way in ("fsdp", "tensor"):
    adapter = on_all(facts, way, steps=3)
    # before any step, as a run does: what is computed for the first time may be computed twice
    check_micro_steps(3, adapter.step_matmuls(), adapter.micro_step_matmuls())
    alone = on_one(facts, adapter.case.layout.replicas, steps=3)
    error = apart(adapter.gradients(), alone.gradients())
    found[way] = [error, adapter.collective_counts(), on_all(facts, way).collective_counts()]
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
facts, reasons, modules = FACTS["gpt2_small"], [], []
def attempt(way, **options):
    changed = {**facts, "hyperparameters": {**facts["hyperparameters"], **options.pop("hyper", {})}}
    def build():
        adapter = started(changed, parallelism=way, **options)
        adapter._data_parallel.join = lambda *where: "gloo"
        modules.append(adapter._sharded)
        adapter.build(batch_of(changed))
    reasons.append(raised(Unsupported, build))
attempt("tensor", hyper={"heads": 3, "key_value_heads": 3, "hidden": 30})
attempt("tensor", hyper={"intermediate": 65})
attempt("fsdp", compiler="inductor")
attempt("pipeline", hyper={"layers": 1})
attempt("interleaved", steps=5)
facts = FACTS["electra_base"]
attempt("pipeline")
pipeline = modules[-1]
reasons.append(raised(Unsupported, lambda: pipeline.require_schedule(4, False, 3)))
spans = [pipeline.spans_of(*asked) for asked in ((12, 4, 4), (7, 4, 4), (2, 4, 2))]
answer(reasons=reasons, spans=[[len(one) for one in found] for found in spans])
"""
    (answer, _) = pytorch(script(pytorch, text), ranks=2)
    heads, inputs, compiler, layers, rounds, chain, few = answer["reasons"]
    assert heads == "3 attention heads cannot be sharded over 2 ranks"
    assert inputs == "65 inputs of feed_forward.down are not cut into 2 parts"
    assert compiler == "with fsdp a step runs without a compiler here"
    assert layers == "1 layers cannot be divided into 2 stages"
    wanted = "interleaved 1F1B of 2 ranks takes a multiple of 2 micro-steps here, not 5"
    assert rounds == wanted
    assert chain == "the model is no single chain of layers that stages could be cut of"
    assert few.startswith("1F1B takes at least as many micro-steps as there are stages, 4, or a")
    assert answer["spans"] == [[3, 3, 3, 3], [2, 2, 2, 1], [0, 1, 1, 0]]


def test_what_no_shardings_can_do_is_unsupported(jax: ForkServer) -> None:
    text = """
facts, reasons = FACTS["gpt2_small"], []
reasons.append(
    raised(Unsupported, lambda: started(facts, compiler="none", parallelism="fsdp")))
adapter = started(facts, parallelism="tensor")
heads = {**facts["hyperparameters"], "heads": 3, "key_value_heads": 3}
for hyper, length in ((heads, 16), (facts["hyperparameters"], 15)):
    require = lambda: adapter._sharded.require_multiples(adapter._definition, hyper, length, 2)
    reasons.append(raised(Unsupported, require))
order = adapter._sharded.by_rank(16, (4, 2, 2), 2).tolist()
answer(reasons=reasons, order=order)
"""
    (answer,) = jax(script(jax, text))
    assert answer["order"] == [0, 1, 2, 3, 8, 9, 12, 13, 4, 5, 6, 7, 10, 11, 14, 15]
    compiler, heads, sequence = answer["reasons"]
    assert compiler == "fsdp is of programs that JAX compiles: with jit alone"
    assert heads == "3 attention heads cannot be sharded over 2 ranks"
    assert sequence == "sequences of 15 tokens are not cut into 2 parts"
