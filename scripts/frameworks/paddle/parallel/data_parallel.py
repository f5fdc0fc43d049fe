"""Several ranks: one process each, the gradients averaged by DataParallel."""

from __future__ import annotations

import os
from typing import Any, List

import paddle
import paddle.distributed
from harness.adapter import RankContext
from harness.machine import interfaces


def join(rank_context: RankContext) -> str:
    """Join the process group of all ranks; returns its back-end.

    Paddle reads the variables that its launcher would set."""
    backend = "gloo" if rank_context.accelerator == "cpu" else "nccl"
    address = rank_context.addresses[rank_context.rank].rpartition(":")[0]
    own = interfaces.interface_with(address)
    if own and backend == "gloo":
        os.environ.setdefault("GLOO_SOCKET_IFNAME", own)  # else wherever the host's name leads
    host, _, port = rank_context.addresses[0].rpartition(":")
    os.environ.update(
        {
            "PADDLE_DISTRI_BACKEND": backend,
            "PADDLE_TRAINER_ID": str(rank_context.rank),
            "PADDLE_TRAINERS_NUM": str(rank_context.world_size),
            "PADDLE_TRAINER_ENDPOINTS": ",".join(rank_context.addresses),
            "PADDLE_CURRENT_ENDPOINT": rank_context.addresses[rank_context.rank],
            "MASTER_ADDR": host,
            "MASTER_PORT": port,
        }
    )
    paddle.distributed.init_parallel_env()
    return str(paddle.distributed.get_backend()).lower()


def group_bytes(wrapped: Any) -> List[int]:
    """Return the bytes of each group of gradients that DataParallel sends at once, in the order of
    the backward pass."""
    # the parameters that DataParallel numbers, in its order
    layers = wrapped.sublayers()
    parameters = [p for layer in layers for p in layer.parameters(include_sublayers=False)]
    sizes = [
        p.size * p.element_size() for p in {id(p): p for p in parameters}.values() if p.trainable
    ]
    return [sum(sizes[index] for index in group) for group in reversed(wrapped.group_indices)]
