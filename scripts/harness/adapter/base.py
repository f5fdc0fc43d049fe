"""The core of the interface: what every framework brings, and that it may bring more."""

from __future__ import annotations

import functools
import importlib
import operator
import sys
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Dict, Optional, Sequence

from harness.adapter.case import Case, RankContext, Unsupported
from harness.adapter.layout import Variable, in_shared_layout, shape_of

#: What errors say when memory ran out, in any framework; compared without regard to case.
OUT_OF_MEMORY = (
    "out of memory",
    "cannot allocate memory",
    "bad_alloc",
    "STATUS_ALLOC_FAILED",  # of cuBLAS and cuDNN
)


class Adapter(ABC):
    """One framework running one case in one rank, which is a process of its own.

    ``model_config`` is the model's entry in ``scripts/models/NAME.json`` (hyper-parameters, inputs,
    parameter count). Subclasses use the attributes ``case``, ``model_config`` and
    ``rank_context``."""

    #: The framework's module, whose ``__version__`` is that of the framework.
    MODULE: ClassVar[str]
    #: What errors of this framework say when memory ran out, beside :data:`OUT_OF_MEMORY`: words of
    #: their text or names of their types.
    OUT_OF_MEMORY: ClassVar[Sequence[str]] = ()

    def __init__(self, case: Case, model_config: Dict[str, Any], rank_context: RankContext) -> None:
        self.case, self.model_config, self.rank_context = case, model_config, rank_context

    @abstractmethod
    def start(self) -> None:
        """Import the framework, set threads, flags and seeds, take the device, and join the
        process group where ``rank_context.world_size`` > 1. Raise :class:`Unsupported` for what the
        framework cannot do here."""

    @abstractmethod
    def build(self, batch: Dict[str, Any]) -> None:
        """Make the model, the optimizer and the step, and copy ``batch`` to the device.

        ``batch`` maps the names of ``model_config["inputs"]`` to numpy arrays: normal values as
        float32 (images: batch, height, width, channels), everything else as int64. Each rank gets
        another batch and other dropout, and starts with the same weights, drawn by
        ``rank_context.seed``. Where the case accumulates, it has the samples of all micro-steps
        (:func:`micro_batches`)."""

    @abstractmethod
    def step(self) -> Any:
        """Enqueue one step. Training: zero gradients, forward, loss, backward, all-reduce,
        optimizer; returns a handle on the loss. Where the case accumulates (:class:`Accumulation`)
        forward, loss and backward are done for each micro-batch, and the loss is the mean of
        theirs. Inference: forward; returns a handle on the outputs. A handle is a sequence of
        tensors, unless :meth:`read` is overridden, and is read before the next step or never. Must
        not wait for the device where the framework need not. The first step compiles all that the
        others need."""

    @abstractmethod
    def synchronize(self) -> None:
        """Return when all work enqueued so far is complete."""

    @abstractmethod
    def settings(self) -> Dict[str, Any]:
        """What is set and matters for speed (threads, memory layout, fused optimizer, dtype of
        mixed precision, TF32, back-end of the process group): JSON values, for the record."""

    @abstractmethod
    def state(self) -> Dict[str, Variable]:
        """Every trainable parameter of the model as built, and the running statistics of batch
        normalisation, by the names in the model's module under ``scripts/reference``."""

    @abstractmethod
    def to_numpy(self, tensor: Any) -> Any:
        """A tensor of the framework on the host, as float32 if it has fewer bits."""

    def definition(self) -> Any:
        """Return the module that defines the case's model; None where the case has no model.

        It is ``models/DEFINITION.py`` in the framework's folder, by the ``definition`` of the
        model's config or else the model's name; ``models/SOURCE/DEFINITION.py`` for code of another
        source. A model that the user brings is an object with the same functions. The module may
        import the framework at its top, so call this after the framework's own import."""
        if not self.case.model:
            return None
        package = type(self).__module__.rpartition(".")[0]
        name = self.model_config.get("definition", self.case.model.replace(".", "_"))
        module = importlib.import_module(f"{package}.models.{name}")
        if "own" not in self.model_config:
            return module
        return module.Definition(self.case, self.model_config, self.rank_context)

    def read(self, handle: Any) -> float:
        """The number behind a handle of :meth:`step`: the loss, or the mean of all outputs."""
        arrays = [self.to_numpy(tensor) for tensor in handle]
        return float(sum(a.sum(dtype="float64") for a in arrays) / sum(a.size for a in arrays))

    def blocking(self) -> bool:
        """Whether :meth:`step` returns only when its work is complete, on this device."""
        return False

    def mark(self, handle: Any) -> Any:
        """What :meth:`wait` knows a step by, an event for example; called right behind it."""
        return handle

    def wait(self, mark: Any) -> None:
        """Return when the step of ``mark`` is complete; later ones are enqueued. By default they
        are waited for as well: the framework never runs ahead."""
        self.synchronize()

    def version(self) -> str:
        """The framework's own version string, as imported."""
        return str(sys.modules[self.MODULE].__version__)

    def device(self) -> str:
        """The device this rank computes on, e.g. ``cpu`` or ``cuda:0 NVIDIA H200``."""
        if self.rank_context.accelerator == "cpu":
            return "cpu"
        device = f"{self.rank_context.accelerator}:{self.rank_context.local_rank}"
        return f"{device} {self.accelerator_name()}".rstrip()

    def accelerator_name(self) -> str:
        """Product name of the accelerator; empty where the framework does not tell it."""
        return ""

    def trainable_parameters(self) -> int:
        """Number of trainable parameters of the model as built."""
        trainable = (variable for variable in self.state().values() if variable.trainable)
        return sum(functools.reduce(operator.mul, shape_of(variable), 1) for variable in trainable)

    def weights(self) -> Dict[str, Any]:
        """Every trainable parameter as a float32 numpy copy, by its name and in the layout that
        all frameworks share: convolutions (height, width, in, out), dense layers (in, out)."""
        return {
            name: in_shared_layout(self.to_numpy(variable.tensor), variable)
            for name, variable in self.state().items()
            if variable.trainable
        }

    def statistics(self) -> Dict[str, Any]:
        """The running statistics of batch normalisation, as :meth:`weights` has parameters; {} of a
        model without."""
        return {
            name: in_shared_layout(self.to_numpy(variable.tensor), variable)
            for name, variable in self.state().items()
            if not variable.trainable
        }

    def weights_checksum(self) -> float:
        """Sum of the absolute values of all trainable parameters, in float64. Ranks of one run
        must agree on it: their batches differ, so only a real all-reduce keeps them equal."""
        return float(sum(abs(a.astype("float64")).sum() for a in self.weights().values()))

    def all_reduce(self, value: float) -> float:
        """Sum of ``value`` over all ranks; of one rank, its own."""
        return value

    def compiled(self) -> Dict[str, Any]:
        """After warm-up, where the case has a compiler: proof that it compiled (counts, for the
        record). Raises :class:`Mismatch` where it fell back. ``{}``: there is no proof."""
        return {}

    def reset_peak_device_memory(self) -> None:  # noqa: B027
        """Forget the peak so far (called between warm-up and window)."""

    def peak_device_memory(self) -> Optional[int]:
        """Peak bytes allocated on the device; None where the device is the host."""
        return None

    def out_of_memory(self, error: BaseException) -> bool:
        """Whether ``error`` is the framework's way to say that memory ran out."""
        text = f"{type(error).__name__}: {error}".lower()
        words = (*OUT_OF_MEMORY, *self.OUT_OF_MEMORY)
        return isinstance(error, MemoryError) or any(word.lower() in text for word in words)

    def stop(self) -> None:  # noqa: B027
        """Leave the process group, behind a run that was good: after an error the process just
        ends."""


class Capability(Adapter):
    """What a framework may be able to do beyond running a step on one device."""

    #: Why something that needs it cannot be measured; the framework's name stands before it.
    LACKING: ClassVar[str]


def require(adapter: Adapter, *capabilities: type) -> None:
    """Raises :class:`Unsupported` where ``adapter`` lacks one of ``capabilities``, classes like
    those above."""
    for capability in capabilities:
        if not isinstance(adapter, capability):
            lacking = getattr(capability, "LACKING", f"brings no {capability.__name__}")
            raise Unsupported(f"{adapter.case.framework} {lacking}")
