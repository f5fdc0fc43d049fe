"""Sharding of a training step: gradients as of one process, of which each rank has a part."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from core.parallelism import layout_of
from reference import compute

from .comparing import beyond, compared_by_rank
from .fork_server import ForkServer, served
from .models import SEQUENCE, small

#: Models with learned positions and a tied head; with rotary positions, grouped keys and a gate;
#: with post-normalisation and segments.
MODELS = ("gpt2_small", "llama_8b", "bert_base")
#: Sharding, model and micro-steps, by framework and number of ranks. Each pair of parallelisms is
#: in one entry. JAX has one mesh of three axes for all.
WAYS: dict[str, dict[int, list[tuple[str, str, int]]]] = {
    "pytorch": {
        2: [
            ("fsdp", "gpt2_small", 1),
            *(("tensor", model, 1) for model in MODELS),
            *(("pipeline", model, steps) for steps, model in enumerate(MODELS, 1)),
        ],
        4: [
            *((parallelism, "gpt2_small", 2) for parallelism in ("data2xfsdp2", "data2xtensor2")),
            ("pipeline", "gpt2 of 4 layers", 5),
            ("data2xpipeline2", "gpt2_small", 3),
            ("pipeline2xdata2", "llama_8b", 2),
            ("fsdp2xtensor2", "bert_base", 2),
        ],
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


MODEL_CONFIGS = {model: small(model, dropout=0.0) for model in (*MODELS, "electra_base")}
MODEL_CONFIGS["gpt2 of 4 layers"] = small("gpt2_small", dropout=0.0, layers=4)
MODEL_CONFIGS["gpt2 of 1 layer"] = small("gpt2_small", dropout=0.0, layers=1)
MODEL_CONFIGS["llama of 1 layer"] = small("llama_8b", dropout=0.0, layers=1)


@pytest.mark.parametrize(
    ("run", "ranks"), [(name, ranks) for name in WAYS for ranks in WAYS[name]], indirect=["run"]
)
def test_gradients_equal_those_of_one_process(run: ForkServer, ranks: int) -> None:
    cases = WAYS[run.framework][ranks]
    given = [(parallelism, MODEL_CONFIGS[model], steps) for parallelism, model, steps in cases]
    answers = run("parallelism.observe", ranks=ranks, cases=given)
    for index, (parallelism, model, steps) in enumerate(cases):
        of_ranks = [answer["found"][index] for answer in answers]
        about, total = f"{parallelism} {model} {steps}", of_ranks[0]["total"]
        assert max(rank["error"] for rank in of_ranks) < ERROR, about
        assert max(rank["change"] for rank in of_ranks) < UPDATE_ERROR[run.framework], about
        held = [rank["held"] for rank in of_ranks]
        assert max(held) < total <= sum(held), about
        if parallelism == "fsdp":
            assert sum(held) == total, about
        if "pipeline" in parallelism:
            assert_in_stages(parallelism, model, steps, of_ranks)
        losses = [rank["loss"][0] for rank in of_ranks]
        alone = of_ranks[0]["loss"][1]
        assert sum(losses) / ranks == pytest.approx(alone, rel=1e-5), about


def assert_in_stages(
    parallelism: str, model: str, steps: int, of_ranks: list[dict[str, Any]]
) -> None:
    """Check that each rank holds its own layers, and a tied embedding is at both ends.
    Each rank sends as many messages as its stages have neighbours, per micro-batch."""
    layout, total = layout_of(parallelism, len(of_ranks)), of_ranks[0]["total"]
    twice = 0 if model == "llama_8b" else 50 * 32
    held = sum(rank["held"] for rank in of_ranks)
    assert held == layout.data * (total + twice), f"{parallelism} {model}"
    for rank, entry in enumerate(of_ranks):
        stage = rank // layout.data
        neighbours = (stage > 0) + (stage < layout.pipeline - 1)
        about = f"{parallelism} {model} rank {rank}"
        assert entry["collectives"]["send"] == steps * neighbours, about


def test_ranks_of_a_tensor_group_drop_other_elements_in_layers(pytorch: ForkServer) -> None:
    """Fail if ranks drop the same elements of different positions, or different elements of what
    all of them compute, or if a pass repeats the masks of the one before."""
    model_config = small("gpt2_small", dropout=0.5)
    answers = pytorch("parallelism.drop_elements", ranks=2, model_config=model_config)
    one, other = (answer["masks"] for answer in answers)
    assert one["embeddings.dropout"] == other["embeddings.dropout"]
    in_layers = [*one["layers.0.dropout"], *other["layers.0.dropout"]]
    assert len({tuple(mask) for mask in in_layers}) == len(in_layers) == 2 * 2 * 2


def test_a_product_is_compared_with_the_mean_over_all_of_its_batches(
    pytorch: ForkServer, tmp_path: Path
) -> None:
    compute.write(small("gpt2_small", layers=1), SEQUENCE, 0, tmp_path / "four", parts=4)
    errors = compared_by_rank(pytorch, tmp_path / "four", 4, parallelism="data2xfsdp2")
    assert len(errors) == 4
    assert not beyond(errors)


def test_accumulated_gradients_go_once(pytorch: ForkServer) -> None:
    (answer, _) = pytorch(
        "parallelism.accumulate", ranks=2, model_config=MODEL_CONFIGS["gpt2_small"]
    )
    for error, _, _ in answer["found"].values():
        assert error < ERROR
    _, several, one = answer["found"]["fsdp"]
    assert several["reduce_scatter"] == one["reduce_scatter"] > 0
    _, several, one = answer["found"]["tensor"]
    assert several["reduce_scatter"] == 3 * one["reduce_scatter"] > 0


def test_what_cannot_be_shared_out_is_unsupported(pytorch: ForkServer) -> None:
    model_config, chain = MODEL_CONFIGS["gpt2_small"], MODEL_CONFIGS["electra_base"]
    (answer, _) = pytorch("parallelism.refuse", ranks=2, model_config=model_config, chain=chain)
    heads, inputs, compiler, layers, chain = answer["reasons"]
    assert heads == "3 attention heads cannot be sharded over 2 ranks"
    assert inputs == "65 inputs of feed_forward.down cannot be divided among 2 ranks"
    assert compiler == "with fsdp a step runs without a compiler"
    assert layers == "1 layers cannot be divided into 2 stages"
    assert chain == "the model is not a single chain of layers that could be cut into stages"
    assert answer["spans"] == [[3, 3, 3, 3], [2, 2, 2, 1]]


def test_what_no_shardings_can_do_is_unsupported(jax: ForkServer) -> None:
    (answer,) = jax("parallelism.refuse_by_jax", model_config=MODEL_CONFIGS["gpt2_small"])
    compiler, heads, sequence = answer["reasons"]
    assert compiler == "fsdp needs the compiler jit"
    assert heads == "3 attention heads cannot be sharded over 2 ranks"
    assert sequence == "sequences of 15 tokens cannot be divided among 2 ranks"
