"""Double of a GPU for TensorFlow 2: the processor, as tf.config describes a GPU.

A copy to the host waits for all that is enqueued when it begins."""

import os

import tensorflow as tf
from tensorflow.python.framework import config, ops

from .running import QUEUE

CAPABILITY, NAME, BUILT_FOR = (8, 0), "NVIDIA A100", ["sm_60", "sm_70", "sm_80", "compute_90"]
_LISTED = tf.config.list_physical_devices
GPUS = [tf.config.PhysicalDevice(f"/physical_device:GPU:{number}", "GPU") for number in range(2)]
waits, grown = [], []


def _existing(device):
    """Return ``device``. Raise ValueError for one that does not exist, as TensorFlow does."""
    assert device == tf.constant(0.0).device
    return device


def _synchronized():
    waits.append(tf.constant(0.0).device)
    QUEUE.wait()


def _set_visible(devices, kind=None):
    own = GPUS[int(os.environ["LOCAL_RANK"])]
    assert devices == own, f"takes {devices.name}, not {own.name}"


def _numpy(tensor):
    QUEUE.wait()
    return _NUMPY(tensor)


def _memory(device):
    return {"current": 2**20, "peak": 2**21} if _existing(device) else {}


tf.config.list_physical_devices = lambda kind=None: GPUS if kind == "GPU" else _LISTED(kind)
tf.test.is_built_with_cuda = lambda: True
tf.config.set_visible_devices = _set_visible
tf.config.experimental.set_memory_growth = lambda *given: grown.append(given)
tf.config.experimental.get_device_details = lambda device: {
    "compute_capability": CAPABILITY,
    "device_name": NAME,
}
tf.sysconfig.get_build_info = lambda: {
    "is_cuda_build": True,
    "cuda_compute_capabilities": BUILT_FOR,
}
tf.raw_ops.SyncDevice = _synchronized
_NUMPY, ops._EagerTensorBase.numpy = ops._EagerTensorBase.numpy, _numpy
tf.config.experimental.reset_memory_stats = _existing
tf.config.experimental.get_memory_info = _memory
_KINDS = tf.distribute.experimental.CommunicationImplementation
_OPTIONS = tf.distribute.experimental.CommunicationOptions
tf.distribute.experimental.CommunicationOptions = lambda implementation: _OPTIONS(
    implementation={_KINDS.NCCL: _KINDS.RING}[implementation]
)


def observed():
    return {
        "waits": len(waits),
        "memory_growth": grown == [(GPUS[int(os.environ["LOCAL_RANK"])], True)],
        "deterministic": config.is_op_determinism_enabled(),
    }
