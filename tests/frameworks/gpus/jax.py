"""Double of a GPU for JAX: a device of the platform ``gpu`` whose arrays lie on the processor."""

import os

import jax
from jax._src.xla_bridge import CUDA_VISIBLE_DEVICES

from .running import QUEUE

CAPABILITY, NAME = "8.0", "NVIDIA A100"
_LOCAL, _PUT, _JOIN = jax.local_devices, jax.device_put, jax.distributed.initialize
_SINGLE, _BLOCK = jax.sharding.SingleDeviceSharding, jax.block_until_ready


class Device:
    """Device as the adapter sees it; ``own`` is the one that JAX takes."""

    platform, device_kind, compute_capability = "gpu", NAME, CAPABILITY

    def __init__(self, own):
        self.own = own
        self.client = own.client

    def memory_stats(self):
        return {"bytes_in_use": 2**20, "peak_bytes_in_use": 2**21, "bytes_reserved": 2**22}


def _own(device):
    return device.own if isinstance(device, Device) else device


def _local(backend=None):
    assert backend in (None, "cuda")
    return [Device(_LOCAL()[0])] if backend else _LOCAL()


def _join(local_device_ids, **options):
    """Join by Gloo the ranks that would be joined by NCCL."""
    assert local_device_ids == [int(os.environ["LOCAL_RANK"])]
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    _JOIN(**options)


def _block(tree):
    QUEUE.wait(jax.tree.leaves(tree))
    return _BLOCK(tree)


def outputs(adapter, handle):
    return jax.tree.leaves((adapter._shared, adapter._own, handle))


jax.block_until_ready = _block
jax.local_devices = _local
jax.device_put = lambda tree, device=None, **options: _PUT(tree, _own(device), **options)
jax.sharding.SingleDeviceSharding = lambda device: _SINGLE(_own(device))
jax.distributed.initialize = _join


def observed():
    assert CUDA_VISIBLE_DEVICES.value == os.environ["LOCAL_RANK"]
    return {"waits": 0}  # block_until_ready() is the same on both devices
