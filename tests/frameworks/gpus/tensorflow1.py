"""Double of a GPU for TensorFlow 1: the processor, where graphs name ``gpu:0``."""

import os
from types import SimpleNamespace

import tensorflow as tf
from tensorflow.python.client import device_lib
from tensorflow.python.ops import collective_ops

NAME = "NVIDIA A100"
_DEVICE, _ALL_REDUCE = tf.device, collective_ops.all_reduce
_SERVER, _SESSION = tf.train.Server, tf.Session
devices, grown = [], []


def _device(name):
    devices.append(name)
    return _DEVICE(name.replace("gpu:0", "cpu:0"))


def _server(*arguments, config):
    assert config.experimental.collective_nccl
    return _SERVER(*arguments, config=config)


def _session(target="", graph=None, config=None):
    taken = config.gpu_options.visible_device_list
    has_gpus = "GPU" not in config.device_count  # the input's session has no GPU
    assert not has_gpus or taken == os.environ["LOCAL_RANK"], f"takes GPU {taken}"
    grown.append(config.gpu_options.allow_growth or not has_gpus)
    return _SESSION(target, graph, config)


def _all_reduce(*arguments, communication_hint, **options):
    assert communication_hint == "nccl"
    return _ALL_REDUCE(*arguments, communication_hint="ring", **options)


tf.test.is_built_with_cuda = lambda: True
tf.config.experimental.list_physical_devices = lambda kind=None: ["GPU:0", "GPU:1"]
tf.device = _device
tf.train.Server = _server
tf.Session = _session
collective_ops.all_reduce = _all_reduce
device_lib.list_local_devices = lambda config=None: [
    SimpleNamespace(
        device_type="GPU",
        physical_device_desc=f"device: 0, name: {NAME}, compute capability: 8.0",
    )
]


def observed():
    assert all(name.endswith("gpu:0") for name in devices)
    return {"waits": 0, "memory_growth": all(grown)}
