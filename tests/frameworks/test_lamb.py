"""LAMB: an update equals the reference's rule on a framework's own clipped mean gradients.
The mean is over all micro-steps and devices. ``test_decoder.py`` also checks the gradients;
``test_encoders.py`` finds mistakes."""

from __future__ import annotations

from typing import Any

from . import updates
from .comparing import beyond
from .fork_server import ForkServer, served
from .models import small

#: Settings that show: a limit that clips, an epsilon of the gradients' size, a large decay.
FACTS: dict[str, Any] = small(
    "electra_base",
    layers=0,
    dropout=0.0,
    clip_global_norm=0.1,
    epsilon=0.01,
    weight_decay=0.2,
)
run = served("pytorch", "jax", "tensorflow", "paddle", "mindspore")
pytorch = served("pytorch")
paddle = served("paddle")


def script(run: ForkServer, text: str) -> str:
    return updates.script(run.framework, FACTS, text)


def test_an_update_is_lamb_of_the_mean_over_micro_steps(run: ForkServer) -> None:
    """Fail if an update is not LAMB's on the mean over micro-steps.
    All weights have a ratio of norms; it is 1 for biases, which start at zero."""
    (found,) = run(
        script(
            run,
            """
facts = with_facts(no_trust_ratio=[])
weights, gradients, change = moved(prepared(facts, steps=2))
ways = {"right": clipped(gradients), "not clipped": gradients}
errors = {n: apart(change, facts["hyperparameters"], weights, one) for n, one in ways.items()}
zeros = sum(not array.any() for array in weights.values())
absent = raised(ValueError, lambda: prepared(with_facts(no_weight_decay=["nrom"])))
answer(errors=errors, zeros=zeros, absent=absent)
""",
        )
    )
    assert {computation for computation, *_ in beyond(found["errors"])} == {"not clipped"}
    assert found["zeros"] > 5
    assert found["absent"] == "no_weight_decay: no parameter of the model has 'nrom' in its name"


def test_what_paddles_kernel_cannot_leave_out_is_unsupported(paddle: ForkServer) -> None:
    text = """
few = with_facts(no_weight_decay=["norm"], no_trust_ratio=["bias"])
answer(reason=raised(Unsupported, lambda: prepared(few)))
"""
    (found,) = paddle(script(paddle, text))
    assert found["reason"] == (
        "PaddlePaddle's Lamb scales by the ratio of norms what decays, or all: not "
        "no_trust_ratio ['bias'] with no_weight_decay ['norm']"
    )


def test_the_whole_gradient_is_clipped_over_ranks_and_micro_steps(pytorch: ForkServer) -> None:
    """Fail if clipping is per rank or micro-step instead of on the whole gradient."""
    answers = pytorch(
        script(
            pytorch,
            """
adapter = prepared(FACTS, steps=2)
weights, gradients, change = moved(adapter)
rank_context = RankContext(0, 0, ADDRESSES[RANK:RANK + 1], "cpu", 1, seed=7)
alone, each = prepared(FACTS, rank_context=rank_context), []
for rank in range(2):
    batch = batch_of(FACTS, 4, rank=rank)
    for part in (slice(0, 2), slice(2, 4)):
        alone.put({name: array[part] for name, array in batch.items()})
        each.append(widened(alone.gradients()))
ways = {
    "right": clipped(mean(each)),
    "of ranks": mean([clipped(mean(each[:2])), clipped(mean(each[2:]))]),
    "of micro-steps": mean([clipped(one) for one in each]),
    "of none": mean(each),
}
hyper = FACTS["hyperparameters"]
answer(errors={name: apart(change, hyper, weights, one) for name, one in ways.items()},
       checksum=adapter.weights_checksum())
""",
        ),
        ranks=2,
    )
    wrong = {"of ranks", "of micro-steps", "of none"}
    for answer in answers:
        assert {computation for computation, *_ in beyond(answer["errors"])} == wrong
    assert len({answer["checksum"] for answer in answers}) == 1


def test_norms_are_of_whole_parameters_where_ranks_share_them(pytorch: ForkServer) -> None:
    """Fail if norms are of sharded parts instead of whole parameters.
    With FSDP and tensor parallelism, the update is that of one process with all samples."""
    answers = pytorch(
        script(
            pytorch,
            """
def shared(way):
    adapter = started(FACTS, parallelism=way)
    adapter._data_parallel.join = lambda *where: "gloo"  # once in a process
    layout = adapter.case.layout
    adapter.build(batch_of(FACTS, 2, rank=layout.replica(RANK)))
    weights, gradients, change = moved(adapter)
    return apart(change, FACTS["hyperparameters"], weights, clipped(gradients))
answer(errors={way: shared(way) for way in ("fsdp", "tensor")})
""",
        ),
        ranks=2,
    )
    for answer in answers:
        assert not beyond(answer["errors"])
