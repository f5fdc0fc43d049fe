"""Double of a GPU for PyTorch: a device of the type ``cuda`` whose tensors lie on the processor.

Copies that the host does not wait for complete late: copies to the host when the device is waited
for, copies in a separate stream when another stream waits for it. Work is enqueued on the first
stream; events of another do not wait for it. A rank may only take the GPU of its own index, unless
it measures pairs of GPUs."""

import contextlib
import importlib.util
import os
import time
from types import SimpleNamespace

import torch

from .running import QUEUE

CAPABILITY, NAME = (8, 0), "NVIDIA A100"
waits = []
_FIND, _DEVICE = importlib.util.find_spec, torch.device
_AUTOCAST, _JOIN = torch.autocast, torch.distributed.init_process_group
_SCALER = torch.amp.GradScaler
_PARALLEL = torch.nn.parallel.DistributedDataParallel
_CLONE = torch.Tensor.clone
_COPY, _TO, _ZEROS_LIKE = torch.Tensor.copy_, torch.Tensor.to, torch.zeros_like
streams, pinned = [], []
chosen = [0]  # PyTorch's current device
unrecorded = []  # tensors that another stream made and the first one has not claimed


class Device(str):
    """Device whose text names the processor, because PyTorch takes devices by their text."""

    __slots__ = ()
    type, index = "cuda", int(os.environ["LOCAL_RANK"])


class Devices(type):
    allowed = range(Device.index, Device.index + 1)

    def __call__(cls, kind, *number):
        if kind != "cuda" or not number:  # PyTorch's own code creates devices in this way
            return _DEVICE(kind, *number)
        assert number[0] in cls.allowed, f"takes GPU {number[0]}, not {Device.index}"
        return Device("cpu")

    def __instancecheck__(cls, value):
        return isinstance(value, _DEVICE)


class Event:
    def __init__(self, enable_timing=False):
        self.record()

    def record(self, stream=None):
        if (stream or current[-1]) is current[0]:
            QUEUE.note(self)
        self._at, self._complete = max(QUEUE.done, time.monotonic()), False

    def elapsed_time(self, later):
        assert later._complete, "nobody waited for the event"
        return 1e3 * (later._at - self._at)

    def synchronize(self):
        waits.append("event")
        QUEUE.wait([self])
        self._complete = True


class Stream:
    def __init__(self, device=None):
        self.pending = []
        streams.append(self)

    def record_event(self):
        with _on_stream(self):
            return Event()

    def synchronize(self):
        waits.append("stream")
        self.wait_stream(self)

    def wait_stream(self, other):
        while other.pending:
            other.pending.pop(0)()


@contextlib.contextmanager
def _on_stream(stream):
    current.append(stream)
    yield
    current.pop()


def _synchronize(device=None):
    waits.append(device)
    QUEUE.wait()
    for stream in streams:
        stream.wait_stream(stream)


def _zeros_like(tensor, pin_memory=False, **options):
    zeros = _ZEROS_LIKE(tensor, **options)
    if pin_memory:
        pinned.append(zeros)
    return zeros


def _copy(target, source, non_blocking=False):
    if non_blocking and any(target is entry for entry in pinned):
        current[0].pending.append(lambda: _COPY(target, source))
        return target
    return _COPY(target, source)


def _to(tensor, *arguments, non_blocking=False, **options):
    if not non_blocking or len(current) == 1:
        return _TO(tensor, *arguments, **options)
    moved = torch.zeros_like(tensor)
    current[-1].pending.append(lambda: _COPY(moved, tensor))
    unrecorded.append(moved)
    return moved


def _record_stream(tensor, stream):
    assert stream is current[0]
    unrecorded[:] = [other for other in unrecorded if other is not tensor]


def _clone(tensor, **options):
    if len(current) == 1:
        return _CLONE(tensor, **options)
    cloned = torch.zeros_like(tensor)
    current[-1].pending.append(lambda: _COPY(cloned, tensor))
    return cloned


def _parallel(model, device_ids, **options):
    assert [device.type for device in device_ids] == ["cuda"]
    return _PARALLEL(model, **options)


def _join(backend, device_id, **options):
    """Use Gloo for the process group that would use NCCL."""
    assert (backend, device_id.type) == ("nccl", "cuda")
    _JOIN("gloo", **options)


def _autocast(kind, **options):
    assert kind == "cuda"
    return _AUTOCAST("cpu", **options)


def _scaler(kind, enabled):
    assert kind == "cuda"
    return _SCALER("cpu", enabled=enabled)


def _set_device(device):
    chosen[:] = [device.index]


current = [Stream()]
torch.device = Devices("device", (), {})
torch.zeros_like = _zeros_like
torch.cuda.Event = Event
torch.Tensor.copy_, torch.Tensor.to = _copy, _to
torch.Tensor.pin_memory, torch.Tensor.clone = torch.Tensor.clone, _clone
torch.Tensor.record_stream = _record_stream
torch.autocast = _autocast
torch.amp.GradScaler = _scaler
torch.nn.parallel.DistributedDataParallel = _parallel
torch.distributed.init_process_group = _join
torch.distributed.get_backend = lambda group=None: "nccl"
torch.version.cuda = "13.0"
importlib.util.find_spec = lambda name: name == "triton" or _FIND(name)
for _name, _function in {
    "device_count": lambda: 2,
    "init": lambda: None,
    "set_device": _set_device,
    "get_device_capability": lambda device=None: CAPABILITY,
    "get_device_name": lambda device=None: NAME,
    "get_device_properties": lambda device=None: SimpleNamespace(multi_processor_count=56),
    "is_bf16_supported": lambda including_emulation=True: CAPABILITY >= (8, 0),
    "synchronize": _synchronize,
    "Stream": Stream,
    "stream": _on_stream,
    "current_stream": lambda device=None: current[-1],
    "get_rng_state": lambda device=None: torch.get_rng_state(),
    "set_rng_state": lambda state, device=None: None,
    "reset_peak_memory_stats": lambda device=None: None,
    "max_memory_allocated": lambda device=None: 2**21,
}.items():
    setattr(torch.cuda, _name, _function)


def observed():
    assert chosen == [Device.index], "the current device is another rank's"
    assert not unrecorded, "the next copy would overwrite a batch"
    deterministic = torch.backends.cudnn.deterministic
    deterministic |= torch.are_deterministic_algorithms_enabled()
    return {"waits": len(waits), "deterministic": deterministic}
