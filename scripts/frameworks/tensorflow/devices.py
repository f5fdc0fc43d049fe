"""Device and precision of a rank, and its connection to the other ranks."""

from __future__ import annotations

import json
import os
import re
from typing import List, Optional, Tuple

import tensorflow as tf
from harness.adapter import (
    RankContext,
    Unsupported,
    is_mixed,
    matmul_dtype,
    require_tf32,
    takes_gpu,
)

MACHINE_CODE, PTX = "machine code", "PTX, compiled by the driver at first use"


def take(rank_context: RankContext) -> Optional[tf.config.PhysicalDevice]:
    """Return the rank's GPU, the only one that TensorFlow will see; None on the CPU. Raises
    :class:`Unsupported` where there is none, or where it is newer than TensorFlow's build."""
    gpus = tf.config.list_physical_devices("GPU")
    name, has_cuda = f"TensorFlow {tf.__version__}", tf.test.is_built_with_cuda()
    if not takes_gpu(rank_context, name, has_cuda, lambda: len(gpus)):
        tf.config.set_visible_devices([], "GPU")
        return None
    gpu = gpus[rank_context.local_rank]
    kernels(gpu)
    tf.config.set_visible_devices(gpu, "GPU")
    # Otherwise the peak would be TensorFlow's reserve, which is nearly the whole GPU.
    tf.config.experimental.set_memory_growth(gpu, True)
    return gpu


def capability_and_name(gpu: tf.config.PhysicalDevice) -> Tuple[Tuple[int, int], str]:
    """Return compute capability and product name."""
    details = tf.config.experimental.get_device_details(gpu)
    return details.get("compute_capability", (0, 0)), details.get("device_name", "GPU")


def kernels(gpu: tf.config.PhysicalDevice) -> Optional[str]:
    """Return the form of TensorFlow's own kernels for this GPU, MACHINE_CODE or PTX; None where it
    is unknown.

    Raises :class:`Unsupported` for a GPU of a later generation than all that TensorFlow was built
    for, because XLA and the driver refuse TensorFlow's PTX there (tensorflow#111958), and for a GPU
    that is older than all of them."""
    built: List[str] = tf.sysconfig.get_build_info().get("cuda_compute_capabilities", [])
    codes = [re.fullmatch(r"(sm|compute)_(\d+)(\d)[a-z]?", name) for name in built]
    known = [(code[1], int(code[2]), int(code[3])) for code in codes if code]
    (major, minor), name = capability_and_name(gpu)
    if not known or not major:
        return None
    is_code = [kind == "sm" and number == major and m <= minor for kind, number, m in known]
    is_ptx = [kind == "compute" and (number, m) <= (major, minor) for kind, number, m in known]
    if major > max(generation for _, generation, _ in known) or not any(is_code + is_ptx):
        raise Unsupported(
            f"TensorFlow {tf.__version__} is built for {', '.join(built)}; the device is {name}, "
            f"compute capability {major}.{minor}"
        )
    return MACHINE_CODE if any(is_code) else PTX


def set_tf32(enabled: bool, gpu: Optional[tf.config.PhysicalDevice]) -> None:
    """Switch TF32 on or off. Raise :class:`harness.adapter.Unsupported` if the device has none."""
    if enabled:
        require_tf32(*(capability_and_name(gpu) if gpu else ()))
    tf.config.experimental.enable_tensor_float_32_execution(enabled)


def onednn_built_in() -> Optional[bool]:
    """Return whether oneDNN's kernels are in this build; None where the build does not say."""
    try:
        from tensorflow.python.util import _pywrap_util_port
    except ImportError:
        return None
    return bool(_pywrap_util_port.IsMklEnabled())


def has_gradient_of_groups() -> bool:
    """Return whether a kernel computes gradients of grouped convolutions. On CPUs only oneDNN has
    one, which is the default on processors with AVX512_VNNI, AVX512_BF16 or AMX."""
    return bool(onednn_built_in() or tf.config.get_visible_devices("GPU"))


def policy(precision: str, gpu: Optional[tf.config.PhysicalDevice]) -> str:
    """Return Keras's dtype policy: for ``amp`` bfloat16 wherever the hardware has it. Raises
    :class:`Unsupported` where the hardware lacks the requested dtype."""
    has_bfloat16 = gpu is None or capability_and_name(gpu)[0] >= (8, 0)
    dtype = matmul_dtype(precision, has_bfloat16, "TensorFlow on this GPU")
    return f"mixed_{dtype}" if is_mixed(precision) else dtype


def collective(rank_context: RankContext) -> tf.distribute.experimental.CommunicationImplementation:
    """Return the name of the library that carries the all-reduce."""
    kinds = tf.distribute.experimental.CommunicationImplementation
    return kinds.RING if rank_context.accelerator == "cpu" else kinds.NCCL


def join(rank_context: RankContext) -> tf.distribute.Strategy:
    """Return the strategy over all ranks, each a worker with one device. Must come
    before TensorFlow's first operation."""
    if rank_context.world_size == 1:
        return tf.distribute.get_strategy()
    task = {"type": "worker", "index": rank_context.rank}
    cluster = {"worker": list(rank_context.addresses)}
    os.environ["TF_CONFIG"] = json.dumps({"cluster": cluster, "task": task})
    options = tf.distribute.experimental.CommunicationOptions(
        implementation=collective(rank_context)
    )
    return tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)
