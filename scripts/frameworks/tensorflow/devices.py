"""Device and precision of a rank, and its connection to the other ranks."""

from __future__ import annotations

from typing import Optional, Tuple

import tensorflow as tf
from harness.adapter import RankContext, require_tf32, require_visible


def take(rank_context: RankContext) -> Optional[tf.config.PhysicalDevice]:
    """Return the rank's GPU, the only one that TensorFlow will see; None on the CPU."""
    gpus = tf.config.list_physical_devices("GPU")
    if rank_context.accelerator == "cpu":
        tf.config.set_visible_devices([], "GPU")
        return None
    require_visible("TensorFlow", len(gpus), rank_context)
    gpu = gpus[rank_context.local_rank]
    tf.config.set_visible_devices(gpu, "GPU")
    # Without it the peak would be what TensorFlow reserved: nearly all of the GPU.
    tf.config.experimental.set_memory_growth(gpu, True)
    return gpu


def capability_and_name(gpu: tf.config.PhysicalDevice) -> Tuple[Tuple[int, int], str]:
    """Compute capability and product name."""
    details = tf.config.experimental.get_device_details(gpu)
    return details.get("compute_capability", (0, 0)), details.get("device_name", "GPU")


def set_tf32(enabled: bool, gpu: Optional[tf.config.PhysicalDevice]) -> None:
    """Raise :class:`harness.adapter.Unsupported` where the device has none to enable."""
    if enabled:
        version, name = capability_and_name(gpu) if gpu else (None, "a CPU")
        require_tf32(version, name)
    tf.config.experimental.enable_tensor_float_32_execution(enabled)


def onednn_built_in() -> Optional[bool]:
    """Return whether oneDNN's kernels are in this build; None where the build does not say."""
    try:
        from tensorflow.python.util import _pywrap_util_port
    except ImportError:
        return None
    return bool(_pywrap_util_port.IsMklEnabled())


def has_gradient_of_groups() -> bool:
    """Return whether a kernel computes gradients of grouped convolutions: on CPUs oneDNN's alone,
    which are the default on processors with AVX512_VNNI, AVX512_BF16 or AMX."""
    return bool(onednn_built_in() or tf.config.get_visible_devices("GPU"))


def policy(precision: str, gpu: Optional[tf.config.PhysicalDevice]) -> str:
    """Return Keras's dtype policy: for ``amp`` bfloat16 wherever the hardware has it."""
    if precision in ("fp32", "tf32"):
        return "float32"
    if gpu is None or capability_and_name(gpu)[0] >= (8, 0):
        return "mixed_bfloat16"
    return "mixed_float16"


def collective(rank_context: RankContext) -> tf.distribute.experimental.CommunicationImplementation:
    """Return the name of the library that carries the all-reduce."""
    kinds = tf.distribute.experimental.CommunicationImplementation
    return kinds.RING if rank_context.accelerator == "cpu" else kinds.NCCL


def join(rank_context: RankContext) -> tf.distribute.Strategy:
    """Return the strategy over all ranks, each of them one worker with one device. Reads TF_CONFIG;
    must come before TensorFlow's first operation."""
    if rank_context.world_size == 1:
        return tf.distribute.get_strategy()
    options = tf.distribute.experimental.CommunicationOptions(
        implementation=collective(rank_context)
    )
    return tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)
