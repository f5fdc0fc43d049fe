"""Device and precision of a rank, and its connection to the other ranks."""

from __future__ import annotations

from typing import Callable, Container, List, Optional

import tensorflow as tf
from harness.adapter import RankContext, Unsupported, is_mixed, takes_gpu
from tensorflow.python.ops import collective_ops

GROUP = 1  # key of the group of all ranks
ALONE_KEY = 2 * 10**9  # key of the first all-reduce that is measured alone


def take(rank_context: RankContext, config: tf.ConfigProto) -> None:
    """Restrict ``config`` to the device of this rank. Raises :class:`Unsupported` if it is
    missing."""
    config.intra_op_parallelism_threads = rank_context.threads
    # Concurrent operations, each with the threads above, would oversubscribe the cores.
    config.inter_op_parallelism_threads = 1
    name, has_cuda = f"TensorFlow {tf.__version__}", tf.test.is_built_with_cuda()
    physical = tf.config.experimental.list_physical_devices
    if not takes_gpu(rank_context, name, has_cuda, lambda: len(physical("GPU"))):
        config.device_count["GPU"] = 0
        return
    config.gpu_options.visible_device_list = str(rank_context.local_rank)
    # Otherwise the peak would be TensorFlow's reserve, which is nearly the whole GPU.
    config.gpu_options.allow_growth = True


def device_name(rank_context: RankContext) -> str:
    kind = "gpu" if rank_context.accelerator == "cuda" else "cpu"
    task = f"/job:worker/task:{rank_context.rank}" if rank_context.world_size > 1 else ""
    return f"{task}/{kind}:0"


def join(rank_context: RankContext, config: tf.ConfigProto) -> Optional[tf.train.Server]:
    """Return this rank's server in the cluster of all ranks; None for a single rank. Changes
    ``config`` for collective operations."""
    if rank_context.world_size == 1:
        return None
    config.experimental.collective_group_leader = "/job:worker/replica:0/task:0"
    # Each rank runs its own graph, and only collectives reach other ranks.
    config.device_filters.append(f"/job:worker/task:{rank_context.rank}")
    if collective(rank_context) == "nccl":
        config.experimental.collective_nccl = True
    cluster = tf.train.ClusterSpec({"worker": list(rank_context.addresses)})
    return tf.train.Server(cluster, "worker", rank_context.rank, config=config)


def collective(rank_context: RankContext) -> str:
    """Return the name of the library that carries the all-reduce."""
    return "nccl" if rank_context.accelerator == "cuda" else "ring"


def all_reduce(
    tensor: tf.Tensor, rank_context: RankContext, instance: int, mean: bool
) -> tf.Tensor:
    """Return the sum or mean over all ranks, each of which must pass the same key ``instance``."""
    return collective_ops.all_reduce(
        tensor,
        rank_context.world_size,
        GROUP,
        instance,
        merge_op="Add",
        final_op="Div" if mean else "Id",
        communication_hint=collective(rank_context),
    )


def averaging(rank_context: RankContext) -> Callable[[List[tf.Tensor]], List[tf.Tensor]]:
    """Return a function from this rank's tensors to their means over the ranks, one collective for
    each tensor.

    A collective starts while the backward pass goes on. Joining them, as
    ``MultiWorkerMirroredStrategy`` does by ``scoped_allocator_optimization``, takes as much
    processor time and more memory."""
    if rank_context.world_size == 1:
        return lambda tensors: tensors
    return lambda tensors: [
        all_reduce(tensor, rank_context, instance, mean=True)
        for instance, tensor in enumerate(tensors, 2)
    ]


def set_precision(precision: str, config: tf.ConfigProto) -> None:
    """Switch automatic mixed precision on or off: Grappler rewrites the graph to float16.

    ``tf.train.experimental.enable_mixed_precision_graph_rewrite`` does the same, but needs an
    optimizer, which inference does not have."""
    rewriting = config.graph_options.rewrite_options
    rewriting.auto_mixed_precision = rewriting.ON if is_mixed(precision) else rewriting.OFF


def require_halves(matmul_dtypes: Container[str]) -> None:
    """Raise :class:`Unsupported` where the rewrite left all matmuls as they were."""
    if "float16" not in matmul_dtypes:
        raise Unsupported(
            "TensorFlow's graph rewrite left all matmuls in float32: 'No (suitable) GPUs "
            "detected, skipping auto_mixed_precision graph optimizer' (it wants Tensor Cores)"
        )
