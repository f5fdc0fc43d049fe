"""Core of the interface: what every framework implements, the context of a rank, errors for cases
that cannot run as requested, and loading the adapter from a framework's folder."""

from __future__ import annotations

import functools
import importlib
import importlib.machinery
import importlib.util
import inspect
import operator
import os
import sys
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Callable, ClassVar, Dict, Mapping, Optional, Sequence

from core.case import Case as Case

from harness.adapter.layout import INPUTS, Variable, in_shared_layout, shape_of

#: Package as which a framework's folder is imported. Its parent is not put on the path, where a
#: folder ``mxnet`` would hide the framework of that name.
PACKAGE = "framework_under_test"
#: Texts of out-of-memory errors of any framework; compared without regard to case.
OUT_OF_MEMORY = (
    "out of memory",
    "cannot allocate memory",
    "bad_alloc",
    "STATUS_ALLOC_FAILED",  # the status of cuBLAS and cuDNN
)


class Unsupported(Exception):
    """The framework cannot run the case; the message is the reason."""


class Mismatch(Exception):
    """Run that differs from the request: matmuls in another precision, a compiler that fell
    back."""


@dataclass(frozen=True)
class RankContext:
    """Rank and device of this process, and addresses of all ranks. They come from environment
    variables alone, so any launcher can start the rank."""

    rank: int
    local_rank: int
    addresses: Sequence[str]  # "host:port" of every rank, in rank order; [0] is the rendezvous
    accelerator: str  # cpu, cuda
    threads: int  # intra-op threads of this rank (CPU: its cores)
    seed: int

    @property
    def world_size(self) -> int:
        return len(self.addresses)

    @property
    def dropout_seed(self) -> int:
        """Seed of this rank's dropout, which differs between ranks."""
        return self.seed + 1 + self.rank


class Definition:
    """A model written with one framework's layers. The adapter calls the functions that subclasses
    define. ``hyper``: the model's hyper-parameters."""

    def __init__(self, case: Case, model_config: Dict[str, Any], rank_context: RankContext) -> None:
        self.case, self.model_config, self.rank_context = case, model_config, rank_context
        self.hyper: Dict[str, Any] = model_config["hyperparameters"]

    def inputs(self, batch: Mapping[str, Any]) -> Any:
        """Return the tensors of a batch that the model takes, by default in the order of INPUTS."""
        return tuple(batch[name] for name in INPUTS if name in batch)


class Adapter(ABC):
    """One framework running one case in one rank, which is a process of its own.

    ``model_config`` is the model's entry in ``scripts/models/NAME.json`` (hyper-parameters,
    inputs, parameter count). Subclasses use the attributes ``case``, ``model_config`` and
    ``rank_context``."""

    #: Name of the framework's module, which has its ``__version__``.
    MODULE: ClassVar[str]
    #: Texts or type names of this framework's own out-of-memory errors, in addition to
    #: :data:`OUT_OF_MEMORY`.
    OUT_OF_MEMORY: ClassVar[Sequence[str]] = ()

    def __init__(self, case: Case, model_config: Dict[str, Any], rank_context: RankContext) -> None:
        self.case, self.model_config, self.rank_context = case, model_config, rank_context

    @property
    def trains(self) -> bool:
        """Return whether the case is a training; otherwise it is an inference."""
        return self.case.mode == "train"

    @abstractmethod
    def start(self) -> None:
        """Set threads, flags and seeds, take the device, and join the process group where
        ``rank_context.world_size`` > 1. Raise :class:`Unsupported` for requests that the framework
        cannot fulfil on this machine."""

    @abstractmethod
    def build(self, batch: Dict[str, Any]) -> None:
        """Make the model, the optimizer and the step, and copy ``batch`` to the device.

        ``batch`` maps the names of ``model_config["inputs"]`` to numpy arrays: normal values as
        float32 (images: batch, height, width, channels), everything else as int64. Each rank gets
        a batch and dropout masks of its own, and starts with the same weights, drawn by
        ``rank_context.seed``. With gradient accumulation, ``batch`` has the samples of all
        micro-steps (:func:`micro_batches`)."""

    @abstractmethod
    def step(self) -> Any:
        """Enqueue one step and return a handle.

        Training: zero gradients, forward, loss, backward, all-reduce, optimizer; the handle is on
        the loss. With micro-steps forward, loss and backward run for each
        micro-batch, and the loss is their mean. Inference: forward; the handle is on the outputs.

        A handle is a sequence of tensors, unless :meth:`read` is overridden, and is read before the
        next step or never. :meth:`step` waits for the device only if the framework cannot avoid it.
        The first step compiles everything."""

    @abstractmethod
    def synchronize(self) -> None:
        """Return when all work enqueued so far is complete."""

    @abstractmethod
    def settings(self) -> Dict[str, Any]:
        """Return settings that matter for speed, as JSON values for the record.

        Examples: threads, memory layout, fused optimizer, dtype of mixed precision, TF32, back-end
        of the process group."""

    @abstractmethod
    def state(self) -> Dict[str, Variable]:
        """Return every trainable parameter of the model as built, and the running statistics of
        batch normalization, by the names in the model's module under ``scripts/reference``."""

    @abstractmethod
    def to_numpy(self, tensor: Any) -> Any:
        """Return a tensor on the host, as float32 if it has fewer bits."""

    def definition(self) -> Any:
        """Return the definition of the case's model; None where the case has no model.

        It is the class ``Definition`` in ``models/NAME.py`` of the framework's folder, by the
        ``definition`` of the model's config or else the model's name."""
        if not self.case.model:
            return None
        package = type(self).__module__.rpartition(".")[0]
        name = self.model_config.get("definition", self.case.model.replace(".", "_"))
        module = importlib.import_module(f"{package}.models.{name}")
        return module.Definition(self.case, self.model_config, self.rank_context)

    def read(self, handle: Any) -> float:
        """Return the number behind a handle of :meth:`step`: the loss, or the mean of all
        outputs."""
        arrays = [self.to_numpy(tensor) for tensor in handle]
        return float(sum(a.sum(dtype="float64") for a in arrays) / sum(a.size for a in arrays))

    def blocking(self) -> bool:
        """Return whether :meth:`step` returns only when its work is complete, on this device."""
        return False

    def mark(self, handle: Any) -> Any:
        """Return a marker of the step just enqueued, such as an event, for :meth:`wait`."""
        return handle

    def wait(self, mark: Any) -> None:
        """Return when the step of ``mark`` is complete; later steps stay enqueued.

        By default later steps are waited for as well: the framework never runs ahead."""
        self.synchronize()

    def device_seconds(self, run: Callable[[], Any], count: int) -> Optional[float]:
        """Return the seconds of ``count`` runs between two events in the device's queue; None for
        a device or framework without events that tell the time."""
        return None

    def version(self) -> str:
        """Return the version string of the imported framework."""
        return str(sys.modules[self.MODULE].__version__)

    def device(self) -> str:
        """Return the device of this rank, e.g. ``cpu`` or ``cuda:0 NVIDIA H200``."""
        if self.rank_context.accelerator == "cpu":
            return "cpu"
        device = f"{self.rank_context.accelerator}:{self.rank_context.local_rank}"
        return f"{device} {self.accelerator_name()}".rstrip()

    def accelerator_name(self) -> str:
        """Return the product name of the accelerator; empty where the framework does not
        report it."""
        return ""

    def trainable_parameters(self) -> int:
        """Return the number of trainable parameters of the model as built."""
        trainable = (variable for variable in self.state().values() if variable.trainable)
        return sum(functools.reduce(operator.mul, shape_of(variable), 1) for variable in trainable)

    def weights(self) -> Dict[str, Any]:
        """Return every trainable parameter as a float32 numpy copy, by name.

        The layout is the one that all frameworks share: convolutions (height, width, in, out),
        dense layers (in, out)."""
        return self._copied(trainable=True)

    def statistics(self) -> Dict[str, Any]:
        """Return the running statistics of batch normalization, as :meth:`weights` returns
        parameters; {} without any."""
        return self._copied(trainable=False)

    def _copied(self, trainable: bool) -> Dict[str, Any]:
        return {
            name: in_shared_layout(self.to_numpy(variable.tensor), variable)
            for name, variable in self.state().items()
            if variable.trainable == trainable
        }

    def weights_checksum(self) -> float:
        """Return the sum of absolute values of all trainable parameters, in float64.

        Ranks of one run must agree on it: their batches differ, so only a real all-reduce keeps
        them equal."""
        return float(sum(abs(a.astype("float64")).sum() for a in self.weights().values()))

    def all_reduce(self, value: float) -> float:
        """Return the sum of ``value`` over all ranks."""
        return value

    def compiled(self) -> Dict[str, Any]:
        """Return evidence that the compiler worked (counts, for the record), after warm-up; {}
        without any.

        Raises :class:`Mismatch` where it fell back."""
        return {}

    def compiled_by_model(self) -> Dict[str, Any]:
        """Return counts of functions that a user's model compiled itself although the case names no
        compiler."""
        return {}

    def recompilations(self) -> Sequence[str]:
        """Return the reason of each recompilation so far, in order. Called before and after the
        timed region."""
        return ()

    def reset_peak_device_memory(self) -> None:  # noqa: B027
        """Reset the memory peak (called between warm-up and the timed region)."""

    def peak_device_memory(self) -> Optional[int]:
        """Return the peak bytes allocated on the device; None where the device is the host."""
        return None

    def out_of_memory(self, error: BaseException) -> bool:
        """Return whether ``error``, or its cause, is the framework's way to report that memory ran
        out."""
        errors = (error, error.__cause__)
        text = "; ".join(f"{type(error).__name__}: {error}" for error in errors).lower()
        phrases = (*OUT_OF_MEMORY, *self.OUT_OF_MEMORY)
        return isinstance(error, MemoryError) or any(word.lower() in text for word in phrases)

    def stop(self) -> None:  # noqa: B027
        """Leave the process group after a successful run; after an error the process just ends."""


class Capability(Adapter):
    """Ability of a framework beyond running a step on one device."""

    #: Reason where the capability is missing; the framework's name is put before it.
    LACKING: ClassVar[str]


def require(adapter: Adapter, *capabilities: type) -> None:
    """Raise :class:`Unsupported` where ``adapter`` lacks one of these capability classes."""
    for capability in capabilities:
        if not isinstance(adapter, capability):
            lacking = getattr(capability, "LACKING", f"brings no {capability.__name__}")
            raise Unsupported(f"{adapter.case.framework} {lacking}")


def load_environment(folder: str) -> Any:
    """Make the ``folder`` a package, so that its modules can use ``from . import cnn``. Return its
    module ``environment``, None where it has none."""
    spec = importlib.machinery.ModuleSpec(PACKAGE, None, is_package=True)
    spec.submodule_search_locations = [folder]
    sys.modules[PACKAGE] = importlib.util.module_from_spec(spec)
    if not os.path.exists(os.path.join(folder, "environment.py")):
        return None
    return importlib.import_module(PACKAGE + ".environment")


def load_adapter(
    folder: str, case: Case, model_config: Dict[str, Any], rank_context: RankContext
) -> Adapter:
    """Import a framework and return its adapter of a case: the one subclass of :class:`Adapter`
    that ``folder/adapter.py`` defines.

    Before that, ``prepare`` of the folder's module ``environment``, if there is one, makes settings
    that the framework reads when it is imported. Raises any error of the import, and TypeError
    unless the module defines exactly one."""
    environment = load_environment(folder)
    if environment is not None:
        environment.prepare(case, rank_context)
    module = importlib.import_module(PACKAGE + ".adapter")
    adapters = [
        value
        for value in vars(module).values()
        if inspect.isclass(value)
        and issubclass(value, Adapter)
        and value.__module__.startswith(PACKAGE)
        and not inspect.isabstract(value)
    ]
    if len(adapters) != 1:
        raise TypeError(
            f"{folder}/adapter.py defines {len(adapters)} complete subclasses of Adapter, not 1"
        )
    return adapters[0](case, model_config, rank_context)
