"""Double of a GPU for OneFlow: a device whose type is ``cuda`` and whose tensors lie on the
processor."""

import importlib
import os

from harness.measuring.loading import PACKAGE

load_adapter(f"{SCRIPTS}/frameworks/{FRAMEWORK}")  # noqa: F821
rendezvous = importlib.import_module(f"{PACKAGE}.parallel.rendezvous")
os.environ["GLOG_minloglevel"] = "3"  # noqa: SIM112
if RANK > 0:  # noqa: F821
    rendezvous.wait_for_listener(ADDRESSES[0])  # noqa: F821
    rendezvous.wait_for_listener = lambda address: None  # which listens once
import oneflow  # noqa: E402
import oneflow.sysconfig  # noqa: E402

CAPABILITY, NAME = (8, 0), "NVIDIA A100"
waits = []


class Device(str):
    """Device that OneFlow takes by its text, that of the processor."""

    __slots__ = ()
    type = "cuda"


class Devices(type):
    def __call__(cls, kind, *number):  # noqa: ANN001, ANN002, ANN204
        return Device("cpu") if kind == "cuda" else _DEVICE(kind, *number)

    def __instancecheck__(cls, value):  # noqa: ANN001, ANN204
        return isinstance(value, _DEVICE)


def _set_device(number):  # noqa: ANN001, ANN202
    assert number == int(os.environ["LOCAL_RANK"])


# Kernels for channels last, which compute something else on the processor, and one of GPUs alone.
def _conv2d(x, weight, *bias, channel_pos="channels_first", **options):  # noqa: ANN001, ANN002, ANN003, ANN202
    if channel_pos == "channels_first":
        return _CONV(x, weight, *bias, **options)
    first = [tensor.permute(0, 3, 1, 2) for tensor in (x, weight)]
    return _CONV(*first, *bias, **options).permute(0, 2, 3, 1)


def _normalization(x, *arrays, axis, **options):  # noqa: ANN001, ANN002, ANN003, ANN202
    if axis == 1:
        return _NORM(x, *arrays, axis=axis, **options)
    return _NORM(x.permute(0, 3, 1, 2), *arrays, axis=1, **options).permute(0, 2, 3, 1)


def _normalization_add_relu(x, addend, *arrays, **options):  # noqa: ANN001, ANN002, ANN003, ANN202
    y = _normalization(x, *arrays, **options)
    return oneflow.relu(y if addend is None else y + addend)


def _all(kind):  # noqa: ANN001, ANN202
    assert kind == "cuda"
    return _ALL("cpu")


def _to(tensor, *arguments, **options):  # noqa: ANN001, ANN002, ANN003, ANN202
    """Move a tensor: to the host, behind all that is enqueued."""
    moved = _TO(tensor, *arguments, **options)
    to_host = arguments == ("cpu",) and not isinstance(arguments[0], Device)
    return QUEUE.note(moved) if to_host else moved  # noqa: F821


def _tensor(values, *, device=None, **options):  # noqa: ANN001, ANN003, ANN202
    """Return a tensor of an array: on the device, when it has read the array."""
    if isinstance(device, Device):
        QUEUE.wait()  # noqa: F821
    return _TENSOR(values, device=device, **options)


def _numpy(tensor):  # noqa: ANN001, ANN202
    QUEUE.wait([tensor])  # noqa: F821
    return _NUMPY(tensor)


def _synchronize(device=None):  # noqa: ANN001, ANN202
    waits.append(device)
    QUEUE.wait()  # noqa: F821


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


def observed():  # noqa: ANN201
    return {"waits": len(waits)}
