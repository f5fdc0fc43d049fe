"""Double of a GPU for MXNet: a context of the type ``gpu`` whose arrays lie on the processor."""

import os

import mxnet as mx

from .running import QUEUE

COUNT = 2


class Features:
    """Features of a CUDA build."""

    def __init__(self):
        self._own = _FEATURES()

    def __iter__(self):
        return iter(self._own)

    def is_enabled(self, name):
        return name in ("CUDA", "CUDNN") or self._own.is_enabled(name)


class Gpu(mx.Context):
    """Context that MXNet's library takes for the processor's."""

    @property
    def device_type(self):
        return "gpu"


def _gpu(number=0):
    assert number == int(os.environ["LOCAL_RANK"])
    return Gpu("cpu", 0)


def _channels_last(run):
    """Return ``run`` with the layout NHWC, which MXNet has on GPUs alone."""

    def operation(images, *weights, layout="NCHW", out=None, **options):
        infers_shapes = "num_filter" in options and not weights
        if layout == "NCHW" or infers_shapes:
            given = {} if out is None else {"out": out}
            return run(images, *weights, layout=layout, **given, **options)
        first = [array.transpose((0, 3, 1, 2)) for array in (images, *weights[:1])]
        result = run(*first, *weights[1:], **options).transpose((0, 2, 3, 1))
        return result if out is None else result.copyto(out)

    return operation


def _create(kind):
    assert kind == "dist_device_sync"
    return _CREATE("dist_sync")


def _copy_from_host(array, source):
    """Copy as the engine does, which returns when the device has read ``source``."""
    if array.context == mx.cpu(0):  # the source is the double's device
        QUEUE.wait()
    _COPY_FROM_HOST(array, source)


def _wait_for_all():
    QUEUE.wait()
    _WAIT_FOR_ALL()


def _wait_to_read(array):
    QUEUE.wait([array])
    _WAIT_TO_READ(array)


Array = mx.nd.NDArray
_FEATURES, _CREATE = mx.runtime.Features, mx.kv.create
_WAIT_FOR_ALL, _WAIT_TO_READ, _COPY = mx.nd.waitall, Array.wait_to_read, Array.copy
mx.nd.waitall, Array.wait_to_read = _wait_for_all, _wait_to_read
_COPY_FROM_HOST, Array._sync_copyfrom = Array._sync_copyfrom, _copy_from_host
mx.cpu_pinned = lambda number: mx.cpu(1)
Array.copy = lambda array: QUEUE.note(_COPY(array))
mx.runtime.Features = Features
mx.context.num_gpus = lambda: COUNT
mx.gpu = _gpu
mx.kv.create = _create
for namespace in (mx.nd, mx.sym):
    for name in ("Convolution", "Pooling"):
        setattr(namespace, name, _channels_last(getattr(namespace, name)))


def observed():
    return {"waits": 0}  # waitall() is the same on both devices
