"""Double of a GPU for MXNet: a context of the type ``gpu`` whose arrays lie on the processor."""

import os

import mxnet as mx

COUNT = 2


class Features:
    """Features of a CUDA build."""

    def __init__(self):  # noqa: ANN204
        self._own = _FEATURES()

    def __iter__(self):  # noqa: ANN204
        return iter(self._own)

    def is_enabled(self, name):  # noqa: ANN001, ANN201
        return name in ("CUDA", "CUDNN") or self._own.is_enabled(name)


class Gpu(mx.Context):
    """Context that MXNet's library takes for the processor's."""

    @property
    def device_type(self):  # noqa: ANN201
        return "gpu"


def _gpu(number=0):  # noqa: ANN001, ANN202
    assert number == int(os.environ["LOCAL_RANK"])
    return Gpu("cpu", 0)


def _create(kind):  # noqa: ANN001, ANN202
    assert kind == "dist_device_sync"
    return _CREATE("dist_sync")


_FEATURES, _CREATE = mx.runtime.Features, mx.kv.create
mx.runtime.Features = Features
mx.context.num_gpus = lambda: COUNT
mx.gpu = _gpu
mx.kv.create = _create


def observed():  # noqa: ANN201
    return {"waits": 0}  # waitall() is the same on both devices
