"""Double of a GPU for OneFlow: the type ``cuda``, with tensors that lie on the processor."""

import os

from harness.adapter import RankContext
from harness.adapter.base import load_environment

from ..programs.prelude import ADDRESSES, FRAMEWORK, RANK
from ..programs.small import SCRIPTS
from .running import QUEUE

environment = load_environment(f"{SCRIPTS}/frameworks/{FRAMEWORK}")
environment.prepare(None, RankContext(RANK, RANK, ADDRESSES, "cuda", 1, 7))
environment.wait_for_listener = lambda address: None  # the listener accepts only once
import oneflow  # noqa: E402
import oneflow.sysconfig  # noqa: E402

CAPABILITY, NAME = (8, 0), "NVIDIA A100"
waits = []


class Device(str):
    """Device whose text names the processor, because OneFlow takes devices by their text."""

    __slots__ = ()
    type = "cuda"


class Devices(type):
    def __call__(cls, kind, *number):
        return Device("cpu") if kind == "cuda" else _DEVICE(kind, *number)

    def __instancecheck__(cls, value):
        return isinstance(value, _DEVICE)


def _set_device(number):
    assert number == int(os.environ["LOCAL_RANK"])


# Kernels for channels last, which compute something else on the processor, and a kernel that exists
# only on GPUs.
def _conv2d(x, weight, *bias, channel_pos="channels_first", **options):
    if channel_pos == "channels_first":
        return _CONV(x, weight, *bias, **options)
    first = [tensor.permute(0, 3, 1, 2) for tensor in (x, weight)]
    return _CONV(*first, *bias, **options).permute(0, 2, 3, 1)


def _normalization(x, *arrays, axis, **options):
    if axis == 1:
        return _NORM(x, *arrays, axis=axis, **options)
    return _NORM(x.permute(0, 3, 1, 2), *arrays, axis=1, **options).permute(0, 2, 3, 1)


def _normalization_add_relu(x, addend, *arrays, **options):
    y = _normalization(x, *arrays, **options)
    return oneflow.relu(y if addend is None else y + addend)


def _all(kind):
    assert kind == "cuda"
    return _ALL("cpu")


def _to(tensor, *arguments, **options):
    """Move a tensor; to the host after all enqueued work."""
    moved = _TO(tensor, *arguments, **options)
    to_host = arguments == ("cpu",) and not isinstance(arguments[0], Device)
    return QUEUE.note(moved) if to_host else moved


def _tensor(values, *, device=None, **options):
    """Return a tensor of an array: on the device, when it has read the array."""
    if isinstance(device, Device):
        QUEUE.wait()
    return _TENSOR(values, device=device, **options)


def _numpy(tensor):
    QUEUE.wait([tensor])
    return _NUMPY(tensor)


def _synchronize(device=None):
    waits.append(device)
    QUEUE.wait()


_DEVICE, _ALL = oneflow.device, oneflow.placement.all
_TO, _NUMPY = oneflow.Tensor.to, oneflow.Tensor.numpy
oneflow.Tensor.to, oneflow.Tensor.numpy = _to, _numpy
oneflow.Tensor.pin_memory = lambda tensor: tensor
_TENSOR, oneflow.tensor = oneflow.tensor, _tensor
_CONV, _NORM = oneflow._C.conv2d, oneflow._C.normalization
oneflow._C.conv2d = oneflow.nn.functional.conv2d = _conv2d
oneflow._C.normalization = _normalization
oneflow._C.normalization_add_relu = _normalization_add_relu
oneflow.device = Devices("device", (), {})
oneflow.placement.all = _all
oneflow.sysconfig.with_cuda = lambda: True
oneflow.cuda.device_count = lambda: 2
oneflow.cuda.set_device = _set_device
oneflow.cuda.get_device_capability = lambda device=None: CAPABILITY
oneflow.cuda.get_device_name = lambda device=None: NAME
oneflow.cuda.synchronize = _synchronize


def observed():
    return {"waits": len(waits)}
