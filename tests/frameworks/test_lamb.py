"""LAMB: an update equals the reference's rule on a framework's own clipped mean gradients.
The mean is over all micro-steps and devices. ``test_decoder.py`` also checks the gradients;
``test_encoders.py`` finds mistakes."""

from __future__ import annotations

from typing import Any

from .comparing import beyond
from .fork_server import ForkServer, served
from .models import small

#: Settings that show: a limit that clips, an epsilon of the gradients' size, a large decay.
MODEL_CONFIG: dict[str, Any] = small(
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


def test_an_update_is_lamb_of_the_mean_over_micro_steps(run: ForkServer) -> None:
    """Fail if an update is not LAMB's on the mean over micro-steps.
    All weights have a ratio of norms; it is 1 for biases, which start at zero."""
    (actual,) = run("updates.update_by_lamb", model_config=MODEL_CONFIG)
    assert {computation for computation, *_ in beyond(actual["errors"])} == {"not clipped"}
    assert actual["zeros"] > 5
    assert actual["absent"] == "no_weight_decay: no parameter of the model has 'nrom' in its name"


def test_what_paddles_kernel_cannot_leave_out_is_unsupported(paddle: ForkServer) -> None:
    (actual,) = paddle(
        "updates.refuse",
        model_config=MODEL_CONFIG,
        no_weight_decay=["norm"],
        no_trust_ratio=["bias"],
    )
    assert actual["reason"] == (
        "PaddlePaddle's Lamb applies trust ratios to what decays or to everything: not "
        "no_trust_ratio ['bias'] with no_weight_decay ['norm']"
    )


def test_the_whole_gradient_is_clipped_over_ranks_and_micro_steps(pytorch: ForkServer) -> None:
    """Fail if clipping is per rank or micro-step instead of on the whole gradient."""
    answers = pytorch("updates.clip_over_ranks", ranks=2, model_config=MODEL_CONFIG)
    wrong = {"of ranks", "of micro-steps", "of none"}
    for answer in answers:
        assert {computation for computation, *_ in beyond(answer["errors"])} == wrong
    assert len({answer["checksum"] for answer in answers}) == 1


def test_norms_are_of_whole_parameters_where_ranks_share_them(pytorch: ForkServer) -> None:
    """Fail if norms are of sharded parts instead of whole parameters.
    With FSDP and tensor parallelism, the update is that of one process with all samples."""
    answers = pytorch("updates.share_parameters", ranks=2, model_config=MODEL_CONFIG)
    for answer in answers:
        assert not beyond(answer["errors"])
