"""What a framework brings: one subclass of :class:`Adapter` in its folder's ``adapter.py``.

An adapter says what differs between frameworks and nothing else. The loop, the clock, the
statistics, the record, the launching and the error handling live in the harness.

:class:`Adapter` is the core: it builds a model and runs steps. What more a framework can do, its
adapter says by the capabilities that it derives from. Without one, what needs it is `unsupported`:

- :class:`Operators`: which products run, in which dtype; every figure of a step needs the proof;
- :class:`Rounding`: whether products of float32 run in TF32;
- :class:`Numerics`: outputs and gradients from given weights, to compare with the reference;
- :class:`Collectives`: several devices;
- :class:`Matmul`: the peak of the device;
- :class:`StepBreakdown`: where the time of a training step goes;
- :class:`Generation`: text, token by token;
- :class:`OwnModels`: models that users bring;
- :class:`Accumulation`: several micro-steps before each update;
- :class:`harness.operations.SingleOperations`: single operations, without a model;
- :class:`harness.sharded.Sharded`: several devices that each hold a part of the model;
- :class:`harness.feeding.Feeding` and :class:`harness.feeding.Scheduling`: another batch and
  another learning rate for each step.

The harness calls, in this order and in every rank of a run::

    start() -> exchange(array) on several ranks -> build(batch) -> product_dtypes()
    -> step() * warm-up -> compiled()
    -> synchronize(), step(), mark(..), wait(..) * window, synchronize()
    -> read(..), weights_checksum(), .. -> step(), synchronize() * waited window, if not blocking()
    -> parts() in training, where they are wanted
    -> gradient_messages(), exchange_gradients(..) in training on several ranks
    -> stop(), unless something failed before

or, to find the peak of the device, ``start() -> matmul(..)`` and nothing else; to generate text,
``start() -> build(batch) -> product_dtypes() -> make_cache(count) -> prefill(), decode() ..``.

Standard library and numpy; Python 3.7 to 3.13. Frameworks are imported in :meth:`Adapter.start`.
"""

from __future__ import annotations

import functools
import importlib
import operator
import sys
import types
from abc import ABC, abstractmethod
from collections import Counter
from dataclasses import dataclass
from typing import (
    Any,
    Callable,
    ClassVar,
    ContextManager,
    Dict,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
)

from harness.inputs import SYNTHETIC
from harness.parallelism import DATA, Layout, layout_of
from harness.parts import Part

#: The axes that permute an array of a model into the layout that all frameworks share.
Axes = Tuple[int, ...]
SAME: Axes = ()
CONVOLUTION_OIHW: Axes = (2, 3, 1, 0)  # (out, in, height, width) -> (height, width, in, out)
DENSE_OI: Axes = (1, 0)  # (out, in) -> (in, out)
DENSE_CHWO: Axes = (1, 2, 0, 3)  # (channels, height, width, out) -> (height, width, channels, out)

#: What errors say when memory ran out, in any framework; compared without regard to case.
OUT_OF_MEMORY = (
    "out of memory",
    "cannot allocate memory",
    "bad_alloc",
    "STATUS_ALLOC_FAILED",  # of cuBLAS and cuDNN
)


class Unsupported(Exception):
    """The framework cannot do what the case asks; the message is its reason."""


class Mismatch(Exception):
    """What ran is not what was asked: products in another precision, a compiler that fell back."""


@dataclass(frozen=True)
class Case:
    """One point of the matrix. ``batch_per_device`` counts the samples that a device computes in a
    micro-step, of which a training step has ``accumulation``; ``sequence_length`` counts tokens and
    is None for a model without sequences; ``parallelism``: see :mod:`harness.parallelism`;
    ``input``: where samples come from, see :mod:`harness.inputs`."""

    framework: str
    model: str
    mode: str  # train, inference
    nodes: int
    devices_per_node: int
    batch_per_device: int
    precision: str  # a name of scripts/precisions
    compiler: str  # none, or a name from the framework's framework.json
    sequence_length: Optional[int]
    accumulation: int = 1
    parallelism: str = DATA
    input: str = SYNTHETIC

    @property
    def devices(self) -> int:
        return self.nodes * self.devices_per_node

    @property
    def samples_of_replica(self) -> int:
        """That a device computes between one update and the next."""
        return self.batch_per_device * self.accumulation

    @property
    def samples_per_step(self) -> int:
        """That all devices together compute between one update and the next."""
        return self.samples_of_replica * self.layout.replicas

    @property
    def layout(self) -> Layout:
        """How the devices share a step."""
        return layout_of(self.parallelism, self.devices)


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


class Variable(NamedTuple):
    """One array of the model: a tensor of the framework, which has a ``shape``, and the ``axes``
    that permute it into the shared layout. Running statistics are not ``trainable``.

    ``unfolded`` is of a dense layer behind images that were flattened with their channels first,
    where the shared layout has them last: the shape of its matrix with channels, height and width
    as axes of their own, which ``axes`` permute.

    ``gates`` is of a recurrent layer whose gates stand side by side in another order on the last
    axis: which of them the input, forget, cell and output gate of the shared layout are."""

    tensor: Any
    axes: Axes = SAME
    trainable: bool = True
    unfolded: Tuple[int, ...] = ()
    gates: Tuple[int, ...] = ()


class Product(NamedTuple):
    """A matrix product or convolution that the model contains. ``dtype`` of its operands, as numpy
    would name it (``float32``, ``bfloat16``, ``float16``); what float32 is rounded to,
    :class:`Rounding` shows."""

    dtype: str
    multiply_adds: int = 0


class MatrixProduct(NamedTuple):
    """A product of two matrices on the device. ``multiply`` enqueues it once more; ``dtype`` is
    that of its result."""

    multiply: Callable[[], Any]
    dtype: str


class Exchange(NamedTuple):
    """An all-reduce of one array on the device. ``run`` enqueues it: each rank's array becomes the
    sum over all ranks; run again, the sum of the sums. ``result``: the array now, for numpy."""

    run: Callable[[], Any]
    result: Callable[[], Any]


class Adapter(ABC):
    """One framework running one case in one rank, which is a process of its own.

    ``facts`` is the model's entry in ``scripts/models/NAME.json`` (hyper-parameters, inputs,
    parameter count). Attributes ``case``, ``facts`` and ``place`` are there for subclasses."""

    #: The framework's module, whose ``__version__`` is that of the framework.
    MODULE: ClassVar[str]
    #: What errors of this framework say when memory ran out, beside :data:`OUT_OF_MEMORY`: words of
    #: their text or names of their types.
    OUT_OF_MEMORY: ClassVar[Sequence[str]] = ()

    def __init__(self, case: Case, facts: Dict[str, Any], place: Place) -> None:
        self.case, self.facts, self.place = case, facts, place

    @abstractmethod
    def start(self) -> None:
        """Import the framework, set threads, flags and seeds, take the device, and join the
        process group where ``place.world_size`` > 1. Raise :class:`Unsupported` for what the
        framework cannot do here."""

    @abstractmethod
    def build(self, batch: Dict[str, Any]) -> None:
        """Make the model, the optimizer and the step, and copy ``batch`` to the device.

        ``batch`` maps the names of ``facts["inputs"]`` to numpy arrays: normal values as float32
        (images: batch, height, width, channels), everything else as int64. Each rank gets another
        batch and other dropout, and starts with the same weights, drawn by ``place.seed``. Where
        the case accumulates, it has the samples of all micro-steps: see :func:`micro_batches`."""

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
        """The module of the case's model in the framework's folder: what the facts name as their
        ``definition``, or the model's own, ``NAME.py``; of another source, that in its folder
        ``sources/SOURCE``; of a model that the user brings, an object with the same functions. It
        may import the framework at its top: call this behind the framework's own import. None where
        the case has no model."""
        if not self.case.model:
            return None
        package = type(self).__module__.rpartition(".")[0]
        name = self.facts.get("definition", self.case.model.replace(".", "_"))
        module = importlib.import_module(f"{package}.{name}")
        if "own" not in self.facts:
            return module
        return module.Definition(self.case, self.facts, self.place)

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
        if self.place.accelerator == "cpu":
            return "cpu"
        device = f"{self.place.accelerator}:{self.place.local_rank}"
        return f"{device} {self.accelerator_name()}".rstrip()

    def accelerator_name(self) -> str:
        """Product name of the accelerator; empty where the framework does not tell it."""
        return ""

    def trainable_parameters(self) -> int:
        """Number of trainable parameters of the model as built."""
        trainable = (variable for variable in self.state().values() if variable.trainable)
        return sum(functools.reduce(operator.mul, _shape(variable), 1) for variable in trainable)

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


class Operators(Capability):
    """The precision of what runs is observed in the framework, not assumed."""

    LACKING = "does not tell its products: in which precision they run cannot be proved"

    @abstractmethod
    def products(self, forward_only: bool) -> List[Product]:
        """All matrix products and convolutions of one forward pass over this rank's batch, with
        their multiply-adds, counted by the framework or from its graph, not from the model's
        facts. Unless ``forward_only``: with their dtypes as they run, whatever their multiply-adds,
        and those of the backward pass too where the framework shows them."""

    def product_dtypes(self) -> Dict[str, int]:
        """How many products run in which dtype."""
        return dict(Counter(product.dtype for product in self.products(forward_only=False)))

    def forward_multiply_adds(self) -> int:
        """Multiply-adds of one forward pass over this rank's batch."""
        return sum(product.multiply_adds for product in self.products(forward_only=True))


class Rounding(Operators):
    """Whether products of float32 round their operands, to TF32 for example, is observed."""

    LACKING = "does not tell to how many bits its products round float32"

    @abstractmethod
    def multiplied(self, left: Any, right: Any) -> Any:
        """The product of two float32 numpy arrays on the device, set up as for the case, as a numpy
        array: of two matrices, or of images (batch, height, width, in) with a kernel (height,
        width, in, out), with stride 1 and no padding. :meth:`build` may not have been called."""


class Numerics(Capability):
    """What a step computes, from weights that all frameworks share. It goes through the functions
    that :meth:`step` runs, compiled where they are: of others it would prove nothing."""

    LACKING = "gives no gradients and outputs to compare with the reference"

    @abstractmethod
    def assign(self, arrays: Dict[str, Any]) -> None:
        """Overwrite the tensors of :meth:`state` with ``arrays``: float32 numpy arrays of the same
        names and shapes, to be copied."""

    @abstractmethod
    def raw_gradients(self) -> Dict[str, Any]:
        """Gradient of the training step's loss in every trainable parameter: tensors laid out as
        those, averaged over the ranks, times :meth:`loss_scale`, not clipped, without the
        optimizer's weight decay. Weights and optimizer stay as they are."""

    @abstractmethod
    def logits(self) -> Sequence[Any]:
        """The model's outputs for the batch, as tensors, in the case's mode: in training with the
        batch's own statistics and with dropout, in inference with neither. Weights stay as they
        are."""

    def loss_scale(self) -> float:
        """What the last :meth:`raw_gradients` are multiplied by."""
        return 1.0

    def load_weights(self, weights: Dict[str, Any]) -> None:
        """Overwrite the model's :meth:`state`, after :meth:`build`, with arrays named and laid out
        as in :meth:`weights`. Raises KeyError or ValueError where a name or a shape does not fit
        the model as built, in either direction."""
        import numpy as np

        state = self.state()
        unknown = sorted(set(weights) - set(state))
        if unknown:
            raise KeyError(f"the model has no {unknown}")
        arrays = {}
        for name, variable in state.items():
            array = _own(weights[name], variable)
            if array.shape != _shape(variable):
                raise ValueError(f"{name} is {_shape(variable)}, not {array.shape}")
            arrays[name] = np.array(array, np.float32, order="C")
        self.assign(arrays)

    def gradients(self) -> Dict[str, Any]:
        """The gradients as float32 numpy arrays, named and laid out as in :meth:`weights`, without
        the loss scale."""
        gradients, state = self.raw_gradients(), self.state()
        scale = self.loss_scale()
        return {
            name: in_shared_layout(self.to_numpy(tensor), state[name]) / scale
            for name, tensor in gradients.items()
        }

    def outputs(self) -> List[Any]:
        """The logits as numpy arrays."""
        return [self.to_numpy(tensor) for tensor in self.logits()]


class Collectives(Capability):
    """Several ranks train together."""

    LACKING = "brings no collectives: one device only"

    @abstractmethod
    def exchange(self, array: Any) -> Exchange:
        """An all-reduce of a numpy array of float32, one-dimensional, through the collectives
        that the gradients take. Called on several ranks alone, also before :meth:`build`."""

    def gradient_messages(self) -> List[int]:
        """Bytes of each array that an all-reduce of a training step's gradients sends, as the
        framework says after some steps, not as the model's facts let expect. Raises
        :class:`Unsupported` where it does not tell."""
        raise Unsupported(f"{self.case.framework} does not tell in which messages gradients go")

    def exchange_gradients(self, messages: Sequence[int]) -> Callable[[], Any]:
        """A function that enqueues all-reduces of ``messages``, as :meth:`gradient_messages` has
        them, of zeros: the sums of sums of anything else grow. By default one behind the other, of
        one array for each size; a framework whose step enqueues them together does so here."""
        exchanges = {size: self.exchange(zeros(size)) for size in set(messages)}

        def run() -> None:
            for size in messages:
                exchanges[size].run()

        return run

    def all_reduce(self, value: float) -> float:
        if self.place.world_size == 1:
            return value
        import numpy as np

        exchange = self.exchange(np.array([value], np.float32))
        exchange.run()
        return float(exchange.result()[0])


class Matmul(Capability):
    """How fast the device multiplies, which the throughput of a model is held against."""

    LACKING = "offers no product of two matrices, so that the peak of a device is not known"

    @abstractmethod
    def matmul(self, left: Any, right: Any) -> MatrixProduct:
        """The product of two square float32 numpy arrays, copied to the device in the dtype that
        products have under the case's precision; :meth:`build` was not called. Each product takes
        the one before in the place of ``right``, so that none runs beside another, and
        :meth:`synchronize` waits for the last."""


class Generation(Operators):
    """Sequences are continued by their likeliest tokens, with a cache of keys and values."""

    LACKING = "does not generate text"

    #: The compilers, or none, with which it does.
    GENERATES_WITH: ClassVar[Sequence[str]] = ("none",)

    def to_generate_with(self, definition: Any, name: str) -> Any:
        """What ``definition`` has under ``name`` for models that generate; raises
        :class:`Unsupported` where it has none."""
        if not hasattr(definition, name):
            raise Unsupported(f"{self.case.model} {self.LACKING}")
        return getattr(definition, name)

    @abstractmethod
    def make_cache(self, new_tokens: int) -> None:
        """Room for the prompts of the batch and ``new_tokens`` more; called behind :meth:`build`.
        Raises :class:`Unsupported` for a model that does not generate."""

    @abstractmethod
    def prefill(self, more: Any = None) -> Any:
        """Enqueue a pass over the prompts of the batch, and ``more`` tokens behind them (batch, n),
        int64 of numpy. Their keys and values are all that the cache has then. Returns the tokens
        that follow, a tensor (batch,), one of its own for each call."""

    @abstractmethod
    def decode(self) -> Any:
        """Enqueue a pass over the tokens that :meth:`prefill` or this returned last, which go into
        the cache. Returns those that follow."""

    @abstractmethod
    def following_logits(self) -> Any:
        """What the last pass chose its tokens by, a tensor (batch, vocabulary)."""


class Accumulation(Operators):
    """A training step has several micro-steps: forward and backward pass of a micro-batch each, one
    after the other and in the memory of one. Their gradients are averaged, then, once, over the
    ranks, and update the weights once.

    How many there are is observed, in the functions that :meth:`Adapter.step` runs: a case that
    does not accumulate goes without all this."""

    LACKING = "accumulates no gradients"

    @abstractmethod
    def micro_step_products(self) -> List[Product]:
        """Matrix products and convolutions of the first micro-batch alone, forward and, where the
        framework shows them, backward. One in a loop counts as often as it is computed. With
        their multiply-adds as far as the framework tells them."""

    @abstractmethod
    def step_products(self) -> List[Product]:
        """The same of a whole training step: of its loop over the micro-batches, run or read.
        Weights and optimizer stay as they are."""

    def step_exchanges(self) -> int:
        """All-reduces of gradients in one training step, which this may run. Called on several
        ranks alone, in all of them, behind the window. Raises :class:`Unsupported` where the
        framework does not tell."""
        raise Unsupported(
            f"{self.case.framework} does not tell how often a step exchanges gradients: that "
            "micro-steps do not cannot be proved on several devices"
        )


class StepBreakdown(Capability):
    """The parts of a training step can be run one by one."""

    LACKING = "does not take its training step apart"

    @abstractmethod
    def parts(self) -> List[Part]:
        """What a training step consists of, in its order, from the functions that :meth:`step`
        runs where the framework can be stopped between them (:func:`harness.parts.cut`), from
        programs of their own where it cannot (:func:`harness.parts.nested`). The last part updates
        the weights with gradients that were averaged over the ranks."""


#: The precision of a run that one in another is compared with; no case has it.
FLOAT64 = "float64"


class OwnModels(Numerics):
    """It runs models that users bring, each compared with its own run in float64. Their batch in
    :meth:`build` is ``{"seed": number}``: what the rank's own is drawn by."""

    LACKING = "runs no models of one's own"

    @abstractmethod
    def in_float64(self) -> ContextManager[OwnModels]:
        """An adapter, started and not built, of the same model with the initial weights of this
        one: alone, without a compiler, and in float64, for as long as the context lasts."""

    @abstractmethod
    def result_dtypes(self) -> Dict[str, int]:
        """How many operations of a forward pass give floating-point numbers of which dtype."""

    @abstractmethod
    def batch_arrays(self) -> Sequence[Any]:
        """This rank's inputs and targets, as numpy arrays."""


def own_module(facts: Dict[str, Any]) -> Any:
    """The user's file, run as a module: the content that the facts were made of. Raises what
    running it raises."""
    own = facts["own"]
    module = types.ModuleType("own_model")
    module.__file__ = own["source"]
    sys.modules[module.__name__] = module  # compilers look there for the functions' globals
    exec(compile(own["text"], own["source"], "exec"), vars(module))
    return module


def parts_of_own(made: Any, batch: int, first: Callable[[Any], Any]) -> Tuple[Any, Any, Any, Any]:
    """Model, inputs, targets and loss from what ``make`` has returned. ``first``: an array among
    the inputs. Raises TypeError where it is something else, :class:`Mismatch` where the inputs are
    not ``batch`` samples."""
    try:
        model, (inputs, targets), loss = made
    except (TypeError, ValueError):
        raise TypeError("make must return model, (inputs, targets), loss") from None
    shape = tuple(first(inputs).shape)
    if shape[:1] != (batch,):
        raise Mismatch(f"make was asked for {batch} samples; its inputs have the shape {shape}")
    return model, inputs, targets, loss


def state_of_modules(model: Any, dense: type) -> Dict[str, Variable]:
    """:meth:`Adapter.state` of a model whose modules name and lay out their arrays as PyTorch's do;
    ``dense``: the class of its dense layers. One behind flattened images says as ``flattened`` what
    was flattened: (channels, height, width)."""
    layers = model.named_modules()
    matrices = {
        f"{name}.weight": getattr(layer, "flattened", ())
        for name, layer in layers
        if isinstance(layer, dense)
    }

    def variable(name: str, tensor: Any) -> Variable:
        if matrices.get(name):
            unfolded = (tensor.shape[0], *matrices[name])
            return Variable(tensor, CONVOLUTION_OIHW, tensor.requires_grad, unfolded)
        # one of a recurrent layer is named weight_ih_l0 and the like
        dense_or_recurrent = name in matrices or name.rpartition(".")[2].startswith("weight_")
        convolution = tensor.dim() == 4
        axes = DENSE_OI if dense_or_recurrent else CONVOLUTION_OIHW if convolution else SAME
        return Variable(tensor, axes, tensor.requires_grad)

    named = (*model.named_parameters(), *model.named_buffers())
    return {n: variable(n, t) for n, t in named if not n.endswith("num_batches_tracked")}


def require(adapter: Adapter, *capabilities: type) -> None:
    """Raises :class:`Unsupported` where ``adapter`` lacks one of ``capabilities``, classes like
    those above."""
    for capability in capabilities:
        if not isinstance(adapter, capability):
            lacking = getattr(capability, "LACKING", f"brings no {capability.__name__}")
            raise Unsupported(f"{adapter.case.framework} {lacking}")


class MicroBatch(NamedTuple):
    """One on the device, of tensors. ``inputs``: what of it the model takes."""

    tensors: Dict[str, Any]
    inputs: Tuple[Any, ...]


def micro_batches(batch: Mapping[str, Any], count: int) -> List[Dict[str, Any]]:
    """``batch`` cut along the first axis of its arrays into ``count`` parts of the same size, with
    different samples in each. Raises ValueError where there is no such size."""
    import numpy as np

    if count == 1:
        return [dict(batch)]
    if any(len(array) % count for array in batch.values()):
        sizes = {name: len(array) for name, array in batch.items()}
        raise ValueError(f"samples of {count} micro-steps cannot be {sizes}")
    parts = {name: np.split(array, count) for name, array in batch.items()}
    return [{name: arrays[number] for name, arrays in parts.items()} for number in range(count)]


def require_tf32(capability: Optional[Sequence[int]], device: str) -> None:
    """Raises :class:`Unsupported` where the ``device`` has no TF32. ``capability``: the compute
    capability of NVIDIA's GPUs, as (major, minor); None of another device."""
    if capability is None or tuple(capability) < (8, 0):
        version = "" if capability is None else ", compute capability %d.%d" % tuple(capability)
        raise Unsupported(
            "TF32 is in NVIDIA's GPUs of compute capability 8.0 and later; the device is "
            f"{device}{version}"
        )


def require_visible(framework: str, devices: int, place: Place) -> None:
    """Raises :class:`Unsupported` where the framework sees so few ``devices`` of the accelerator
    that there is none for ``place``."""
    if place.local_rank >= devices:
        seen = f"{framework} sees {devices} {place.accelerator.upper()} devices"
        raise Unsupported(f"{seen}, too few for local rank {place.local_rank}")


def zeros(size: int) -> Any:
    """A numpy array of float32 with ``size`` bytes, rounded up."""
    import numpy as np

    return np.zeros(-(-size // 4), np.float32)


def _shape(variable: Variable) -> Tuple[int, ...]:
    return tuple(int(extent) for extent in variable.tensor.shape)


def in_shared_layout(array: Any, variable: Variable) -> Any:
    """A copy of ``array``, laid out as the tensor of ``variable``, in the shared layout."""
    import numpy as np

    if variable.unfolded:
        unfolded = array.reshape(variable.unfolded).transpose(variable.axes)
        array = unfolded.reshape(-1, unfolded.shape[-1])
    elif variable.axes:
        array = array.transpose(variable.axes)
    return np.array(_ordered(array, variable.gates), np.float32, order="C")


def _ordered(array: Any, gates: Sequence[int]) -> Any:
    """``array`` with the ``gates`` on its last axis in that order."""
    import numpy as np

    if not gates:
        return array
    parts = np.split(array, len(gates), axis=-1)
    return np.concatenate([parts[gate] for gate in gates], axis=-1)


def _own(array: Any, variable: Variable) -> Any:
    """What :func:`in_shared_layout` made ``array`` of. Raises ValueError where their shapes do not
    fit."""
    import numpy as np

    if variable.gates:
        array = _ordered(array, [int(gate) for gate in np.argsort(variable.gates)])
    if not variable.axes:
        return array
    if variable.unfolded:
        *inputs, outputs = (variable.unfolded[axis] for axis in variable.axes)
        if array.shape[1:] != (outputs,):
            raise ValueError(f"not {outputs} outputs behind flattened images: {array.shape}")
        array = array.reshape(*inputs, outputs)
    array = array.transpose(np.argsort(variable.axes))
    return array.reshape(_shape(variable)) if variable.unfolded else array
