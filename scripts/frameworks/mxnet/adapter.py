"""MXNet, set up as its guides recommend: Gluon, hybridized with static allocation where a compiler
is requested, its AMP, fused optimizer kernels, the parameter server between ranks."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List, Sequence, Tuple

from harness.adapter import (
    CONVOLUTION_OHWI,
    CONVOLUTION_OIHW,
    DENSE_OI,
    SAME,
    Accumulation,
    ExecutedMatmul,
    Unsupported,
    Variable,
    is_mixed,
    micro_batches,
)
from harness.common_capabilities import CommonCapabilities
from harness.loader import DeviceArray, Loading
from harness.optimizers import NO_DECAY, left_out
from harness.primitives import Primitives
from harness.step_breakdown import StepPart, eager_parts

if TYPE_CHECKING:
    from .steps import Outputs

ENDINGS = {"gamma": "weight", "beta": "bias"}  # of normalisations, in the shared names
RECURRENT = re.compile("l([0-9]+)_([ih])2h_(weight|bias)")


class MXNetAdapter(Accumulation, CommonCapabilities, Loading):
    MODULE = "mxnet"
    OUT_OF_MEMORY = ("Failed to allocate CPU Memory",)
    KEEPS_RANDOM = False
    FROM_DLPACK = "nd.from_dlpack"

    def import_framework(self) -> None:
        # OpenMP reads it once; also in MXNet's own threads, which no function reaches
        os.environ["OMP_NUM_THREADS"] = str(self.rank_context.threads)
        if self.case.precision == "fp32":
            os.environ["NVIDIA_TF32_OVERRIDE"] = "0"
        from .parallel import data_parallel

        several = self.rank_context.world_size > 1
        self._children = data_parallel.start_children(self.rank_context) if several else []
        import mxnet as mx

        # all that imports MXNet at its top: from here on it is there
        from . import devices, matmuls, optimizers, steps

        self._mx: Any = mx
        self._devices, self._optimizers, self._matmuls = devices, optimizers, matmuls
        self._steps = steps
        self._data_parallel = data_parallel

    def start(self) -> None:
        self.import_framework()
        devices = self._devices
        devices.put_messages_first()
        self._context = devices.take(self.rank_context)
        self._definition: Any = self.definition()
        of_micro_benchmarks = ("FullyConnected", "batch_dot")
        operators = self._definition.MATMULS if self._definition else of_micro_benchmarks
        # Names of the model's matmuls, each with the reason why mixed precision leaves it out.
        self._dtype, self._operators = devices.set_precision(
            self.case.precision, self._context, operators
        )
        self._group: Any = None
        if self.rank_context.world_size > 1:
            self._group = self._data_parallel.Group(self.rank_context, self._children)

    def build(self, batch: Dict[str, Any]) -> None:
        mx, definition, steps = self._mx, self._definition, self._steps
        device, dtype = self._context, self._dtype
        self._hybridize = self._devices.hybridize(self.case.mode, device, dtype)
        self.note_form(batch)
        parts = self._parts = [tuple(map(self._arrays, part)) for part in self._taken(batch)]
        self._inputs = parts[0][0]
        mx.random.seed(self.rank_context.seed)  # the same weights in every rank
        with self._context:
            self._model = definition.build(self.model_config)
        self._model.initialize(ctx=self._context)
        mx.random.seed(self.rank_context.dropout_seed)
        if self.case.compiler != "none":
            self._model.hybridize(**self._hybridize)
        self._forward = steps.inference(self._model, self._inputs)
        if self.case.mode == "inference":
            self._step = self._forward
            return
        self._first = next(iter(self._model.collect_params().values()))
        trained = [p for p in self._model.collect_params().values() if p.grad_req != "null"]
        if len(parts) > 1:
            for parameter in trained:
                parameter.grad_req = "add"
        self._gradients = gradients = [parameter.grad() for parameter in trained]
        named = {name: parameter for parameter, (name, *_) in self._named().items()}
        for name in left_out(self.model_config["hyperparameters"], NO_DECAY, named):
            named[name].wd_mult = 0.0
        # kvstore=None: the group sums the gradients before they are clipped
        self._trainer = mx.gluon.Trainer(
            self._model.collect_params(),
            self._optimizers.from_model_config(self.model_config),
            kvstore=None,
        )
        if self._dtype == "float16":  # bfloat16 has the range of float32
            mx.contrib.amp.init_trainer(self._trainer)
        others = [steps.inference(self._model, inputs) for inputs, _ in parts[1:]]
        forwards, labels = [self._forward, *others], [labels for _, labels in parts]
        evaluations = [self._evaluation(*pair) for pair in zip(forwards, labels)]
        self._evaluate = evaluations[0]
        sum_over_ranks = self._group.sum_gradients if self._group else None
        if len(parts) == 1:
            self._differentiate = steps.gradients(self._evaluate, sum_over_ranks, gradients)
        else:
            self._differentiate = steps.accumulated(evaluations, trained, sum_over_ranks, gradients)
        self._update = steps.updating(self._trainer, self.rank_context.world_size, gradients)
        self._step = steps.training(self._differentiate, self._update)

    def _taken(self, batch: Dict[str, Any]) -> List[Tuple[Any, Any]]:
        """Return numpy arrays of each micro-batch: what the model takes and, in training, the
        loss."""
        definition = self._definition
        parts = micro_batches(batch, self.case.accumulation)
        with self._context:
            return [
                (definition.inputs(part), definition.labels(part) if self.trains else ())
                for part in parts
            ]

    def put(self, batch: Dict[str, Any]) -> None:
        # Into the arrays that the step has, once what was enqueued has read them.
        for held, taken in zip(self._parts, self._taken(batch)):
            for array, values in zip(sum(held, ()), sum(map(tuple, taken), ())):
                array[:] = self._devices.staged(values, self._context)

    def device_tensor(self, array: DeviceArray) -> Any:
        return self._from_dlpack()(array.__dlpack__())

    def set_learning_rate(self, rate: float) -> None:
        self._optimizers.set_rate(self._trainer, rate)

    def training_parts(self) -> Sequence[Any]:
        return {n: v.tensor for n, v in self.state().items()}, self._trainer

    def load_training(self, path: str) -> None:
        super().load_training(path)
        self._forget_fused_weights()

    def _evaluation(self, forward: Any, labels: Tuple[Any, ...]) -> Any:
        """Return the first part of a step; of one of several micro-steps, to its part of the mean
        loss."""
        count = self.case.accumulation

        def loss(outputs: Outputs) -> Any:
            value = self._definition.loss(outputs, labels, self.model_config)
            return value / count if count > 1 else value

        return self._steps.evaluation(forward, loss, self._trainer)

    def _arrays(self, arrays: Any) -> Any:
        try:
            return tuple(self._mx.nd.array(a, ctx=self._context, dtype=a.dtype) for a in arrays)
        except self._mx.MXNetError as error:
            if "USE_INT64_TENSOR_SIZE" in str(error):  # not memory, but how MXNet was built
                raise Unsupported(str(error).splitlines()[0]) from error
            raise

    def step(self) -> Outputs:
        return self._step()

    def synchronize(self) -> None:
        self._mx.nd.waitall()

    def mark(self, handle: Outputs) -> Any:
        # The gradient of the first parameter is the last to be there. A copy: the array itself is
        # written by the next step, too, and would be waited for until that.
        array = self._first.data() if self.case.mode == "train" else handle[0]
        return array.reshape(-1)[:1].copy()

    def wait(self, mark: Any) -> None:
        mark.wait_to_read()

    def settings(self) -> Dict[str, Any]:
        settings = self._devices.settings()
        settings["layout"] = self._definition.LAYOUTS.get(self._context.device_type)
        settings["amp_dtype"] = self._dtype if is_mixed(self.case.precision) else None
        settings["hybridize"] = self._hybridize if self.case.compiler != "none" else None
        settings["process_group"] = self._group.settings() if self._group else None
        if self.trains:
            optimizer = self._trainer.optimizer
            settings["fused_optimizer"] = True
            settings["aggregated_updates"] = optimizer.aggregate_num
            settings["loss_scaling"] = self._dtype == "float16"
        return settings

    def _named(self) -> Dict[Any, Tuple[str, Any, Tuple[int, ...]]]:
        """Return the shared name, axes and unfolded shape of each parameter."""
        named: Dict[Any, Tuple[str, Any, Tuple[int, ...]]] = {}
        kernels = CONVOLUTION_OIHW if self._context.device_type == "cpu" else CONVOLUTION_OHWI
        for prefix, block in _blocks(self._model):
            for attribute, parameter in block._reg_params.items():
                kinds = (self._mx.gluon.nn.Dense, self._mx.gluon.rnn.LSTM)
                dense = isinstance(block, kinds) and attribute.endswith("weight")
                convolution = len(parameter.shape) == 4
                axes = DENSE_OI if dense else kernels if convolution else SAME
                unfolded: Tuple[int, ...] = ()
                if dense and hasattr(block, "flattened"):  # images: (channels, height, width)
                    axes, unfolded = CONVOLUTION_OIHW, (parameter.shape[0], *block.flattened)
                # one that is shared has the name of the block that made it, which comes later
                named[parameter] = (prefix + _shared_name(attribute), axes, unfolded)
        return named

    def state(self) -> Dict[str, Variable]:
        return {
            name: Variable(parameter.data(), axes, parameter.grad_req != "null", unfolded)
            for parameter, (name, axes, unfolded) in self._named().items()
        }

    def to_numpy(self, tensor: Any) -> Any:
        return tensor.astype("float32", copy=False).asnumpy()

    def assign(self, arrays: Dict[str, Any]) -> None:
        for name, variable in self.state().items():
            variable.tensor[:] = self._mx.nd.array(arrays[name], dtype="float32")
        self._forget_fused_weights()

    def _forget_fused_weights(self) -> None:
        if self.case.compiler != "none":
            # a fused graph keeps the weights of its first run, so MXNet must make a new one
            self._model.hybridize(**self._hybridize)

    def raw_gradients(self) -> Dict[str, Any]:
        self._differentiate()
        return {name: v.tensor.grad for name, v in self.state().items() if v.trainable}

    def loss_scale(self) -> float:
        return 1.0 / self._steps.gradient_scale(self._trainer, self.rank_context.world_size)

    def logits(self) -> Outputs:
        if self.case.mode == "inference":
            return self._forward()
        with self._mx.autograd.record():
            return self._forward()

    def matmuls(self, forward_only: bool) -> List[ExecutedMatmul]:
        watch = self._matmuls
        matmuls = watch.imperative if self.case.compiler == "none" else watch.compiled
        return matmuls(self._model, self._inputs, self.trains, self._operators)

    def micro_step_matmuls(self) -> List[ExecutedMatmul]:
        return self._watched(lambda: self._evaluate()[1].backward())

    def step_matmuls(self) -> List[ExecutedMatmul]:
        return self._watched(self._differentiate)

    def _watched(self, run: Callable[[], Any]) -> List[ExecutedMatmul]:
        """Observe the matmuls of a step in imperative mode, even if the model is compiled; drop
        the gradients."""
        if self.case.compiler != "none":
            self._model.hybridize(active=False)
        matmuls = self._matmuls.watched(self._model, run, self._operators)
        if self.case.compiler != "none":
            self._model.hybridize(**self._hybridize)
        return list(matmuls)

    def step_all_reduces(self) -> int:
        before = self._group.summed
        self.step()
        return int(self._group.summed - before)

    def compiled(self) -> Dict[str, Any]:
        return self._matmuls.proof(self._model)

    def all_reduce(self, value: float) -> float:
        return self._group.total(value) if self._group else value

    def gradient_messages(self) -> List[int]:
        # one for each; the kvstore cuts large ones alike here and there
        return [array.size * self._devices.itemsize(array.dtype) for array in self._gradients]

    def step_parts(self) -> List[StepPart]:
        return eager_parts(
            forward=lambda: self._evaluate()[1],
            backward=lambda loss: loss.backward(),
            averaged=self._differentiate if self._group else None,
            update=self._update,
        )

    def primitives(self) -> Primitives:
        from . import micro

        return micro.Primitives(self.rank_context, self._context, self._dtype, self._group)

    def stop(self) -> None:
        if self._group:
            self._group.leave()


def _blocks(block: Any, prefix: str = "") -> Iterator[Tuple[str, Any]]:
    """Yield ``block`` and all its parts, with the beginning of their parameters' names."""
    yield prefix, block
    for name, child in block._children.items():
        yield from _blocks(child, f"{prefix}{name}.")


def _shared_name(name: str) -> str:
    """Return the shared name of the parameter that a block calls ``name``."""
    return ENDINGS.get(name) or RECURRENT.sub(r"\3_\2h_l\1", name)
