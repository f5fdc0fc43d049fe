"""What a framework must bring: one subclass of :class:`Adapter` in its folder's ``adapter.py``.

An adapter says what differs between frameworks and nothing else. The loop, the clock, the
statistics, the record, the launching and the error handling live in the harness.

The harness calls, in this order and in every rank of a run::

    start() -> exchange(array) on several ranks -> build(batch) -> product_dtypes()
    -> step() * warm-up -> compiled()
    -> synchronize(), step(), mark() * window, synchronize() -> read(..), weights_checksum(), ..
    -> parts() in training, where they are wanted

or, to find the peak of the device, ``start() -> product(..)`` and nothing else.

Standard library only; Python 3.7 to 3.13. Frameworks are imported inside :meth:`Adapter.start`.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence

from harness.parts import Part


class Unsupported(Exception):
    """The framework cannot do what the case asks; the message is its reason."""


class Mismatch(Exception):
    """What ran is not what was asked: fp32 products under ``amp``, a compiler that fell back."""


@dataclass(frozen=True)
class Case:
    """One point of the matrix. ``batch_per_device`` counts samples; ``sequence_length`` counts
    tokens and is None for a model without sequences."""

    framework: str
    model: str
    mode: str  # train, inference
    nodes: int
    devices_per_node: int
    batch_per_device: int
    precision: str  # fp32, amp
    compiler: str  # none, or a name from the framework's framework.json
    sequence_length: Optional[int]

    @property
    def devices(self) -> int:
        return self.nodes * self.devices_per_node


@dataclass(frozen=True)
class Place:
    """Where this rank runs and how it finds the others. Filled from the environment alone, so
    that it does not matter who started the rank."""

    rank: int
    local_rank: int
    addresses: Sequence[str]  # "host:port" of every rank, in rank order; [0] is the rendezvous
    accelerator: str  # cpu, cuda
    threads: int  # intra-op threads of this rank (CPU: its cores)
    seed: int

    @property
    def world_size(self) -> int:
        return len(self.addresses)


class Product(NamedTuple):
    """A product of two matrices on the device. ``multiply`` enqueues it once more; ``dtype`` is
    that of its result, as the framework names it (``float32``, ``bfloat16``, ``float16``)."""

    multiply: Callable[[], Any]
    dtype: str


class Exchange(NamedTuple):
    """An all-reduce of one array on the device. ``run`` enqueues it: each rank's array becomes the
    sum over all ranks; run again, the sum of the sums. ``result``: the array now, for numpy."""

    run: Callable[[], Any]
    result: Callable[[], Any]


class Adapter(ABC):
    """One framework running one case in one rank.

    ``facts`` is the model's entry in ``scripts/models/NAME.json`` (hyper-parameters, inputs,
    parameter count). Attributes ``case``, ``facts`` and ``place`` are there for subclasses.
    """

    def __init__(self, case: Case, facts: Dict[str, Any], place: Place) -> None:
        self.case = case
        self.facts = facts
        self.place = place

    @abstractmethod
    def start(self) -> None:
        """Import the framework, set threads, flags and seeds, take the device, and join the
        process group where ``place.world_size`` > 1. Raise :class:`Unsupported` for what the
        framework cannot do here."""

    @abstractmethod
    def build(self, batch: Dict[str, Any]) -> None:
        """Make the model, the optimizer and the step, and copy ``batch`` to the device.

        ``batch`` maps the names of ``facts["inputs"]`` to numpy arrays: images as float32
        (batch, height, width, channels), everything else as int64. Each rank gets another batch."""

    @abstractmethod
    def step(self) -> Any:
        """Enqueue one step. Training: zero gradients, forward, loss, backward, all-reduce,
        optimizer; returns a handle on the loss. Inference: forward; returns a handle on the
        outputs. Must not wait for the device where the framework need not."""

    @abstractmethod
    def read(self, handle: Any) -> float:
        """The number behind a handle of :meth:`step`: the loss, or the mean of all outputs."""

    @abstractmethod
    def synchronize(self) -> None:
        """Return when all work enqueued so far is complete."""

    def mark(self) -> Any:
        """A moment: when the work enqueued so far was complete. Frameworks with device-side
        events override this and :meth:`mark_seconds` so that a step need not be waited for."""
        self.synchronize()
        return time.perf_counter()

    def mark_seconds(self, marks: List[Any]) -> List[float]:
        """Seconds between consecutive marks (one fewer than ``marks``)."""
        return [later - earlier for earlier, later in zip(marks, marks[1:])]

    @abstractmethod
    def version(self) -> str:
        """The framework's own version string, as imported."""

    @abstractmethod
    def device(self) -> str:
        """Name of the device this rank computes on, e.g. ``cpu`` or ``cuda:0 NVIDIA H200``."""

    @abstractmethod
    def settings(self) -> Dict[str, Any]:
        """What is set and matters for speed (threads, memory layout, fused optimizer, amp dtype,
        TF32, back-end of the process group): JSON values, for the record."""

    @abstractmethod
    def trainable_parameters(self) -> int:
        """Number of trainable parameters of the model as built."""

    @abstractmethod
    def product_dtypes(self) -> Dict[str, int]:
        """How many matrix products and convolutions of a step, or of its forward pass alone, run
        in which dtype (``float32``, ``bfloat16``, ``float16``), observed in the framework, not
        assumed."""

    def compiled(self) -> Dict[str, Any]:
        """After warm-up: proof that the compiler compiled (counts, for the record). Raises
        :class:`Mismatch` where it fell back. ``{}`` for compiler ``none``."""
        return {}

    @abstractmethod
    def all_reduce(self, value: float) -> float:
        """Sum of ``value`` over all ranks, through the framework's own collectives."""

    @abstractmethod
    def exchange(self, array: Any) -> Exchange:
        """An all-reduce of a numpy array of float32, one-dimensional, through the collectives
        that the gradients take. Called before :meth:`build`, on several ranks alone."""

    @abstractmethod
    def weights_checksum(self) -> float:
        """Sum of the absolute values of all trainable parameters, in float64. Ranks of one run
        must agree on it: their batches differ, so only a real all-reduce keeps them equal."""

    @abstractmethod
    def load_weights(self, weights: Dict[str, Any]) -> None:
        """Overwrite every trainable parameter, and the running statistics of batch normalisation,
        with the float32 numpy arrays of ``weights``; called after :meth:`build`.

        Names and layouts are the same for all frameworks and stand in the model's module under
        ``scripts/reference``: convolutions (height, width, in, out), dense layers (in, out).
        Raises KeyError or ValueError where a name or a shape does not fit the model as built, in
        either direction."""

    @abstractmethod
    def weights(self) -> Dict[str, Any]:
        """Every trainable parameter as a float32 numpy copy, named and laid out as in
        :meth:`load_weights`."""

    @abstractmethod
    def gradients(self) -> Dict[str, Any]:
        """Gradient of the training step's loss in every trainable parameter, float32 numpy, named
        and laid out as in :meth:`load_weights`: averaged over the ranks, loss scale removed, not
        clipped, without the optimizer's weight decay. From the functions that :meth:`step` runs,
        compiled where it is; weights and optimizer stay as they are."""

    @abstractmethod
    def outputs(self) -> List[Any]:
        """The model's logits for the batch, float32 numpy, in the case's mode: in training with
        the batch's own statistics and with dropout, in inference with neither. From the function
        that :meth:`step` runs, compiled where it is; weights stay as they are."""

    @abstractmethod
    def forward_multiply_adds(self) -> int:
        """Multiply-adds of all products and convolutions of one forward pass over this rank's
        batch, counted by the framework or from its graph, not from the model's facts."""

    @abstractmethod
    def parts(self) -> List[Part]:
        """What a training step consists of, in its order, from the functions that :meth:`step`
        runs where the framework can be stopped between them (:func:`harness.parts.cut`), from
        programs of their own where it cannot (:func:`harness.parts.nested`). These are compiled,
        and have run once, when this returns. The last part updates the weights with gradients
        that were averaged over the ranks."""

    @abstractmethod
    def product(self, left: Any, right: Any) -> Product:
        """The product of two square float32 numpy arrays, copied to the device in the dtype that
        products have under the case's precision; :meth:`build` was not called. Each product takes
        the one before in the place of ``right``, so that none runs beside another, and
        :meth:`synchronize` waits for the last."""

    def reset_peak_device_memory(self) -> None:  # noqa: B027
        """Forget the peak so far (called between warm-up and window)."""

    def peak_device_memory(self) -> Optional[int]:
        """Peak bytes allocated on the device; None where the device is the host."""
        return None

    def out_of_memory(self, error: BaseException) -> bool:
        """Whether ``error`` is the framework's way to say that memory ran out."""
        return isinstance(error, MemoryError)

    def stop(self) -> None:  # noqa: B027
        """Leave the process group."""
