"""PaddlePaddle, set up as its guides recommend: the dynamic graph, ``to_static`` programs,
``auto_cast`` for mixed precision, DataParallel with one process for each device."""

from __future__ import annotations

import contextlib
import functools
import os
import warnings
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Sequence

from harness.adapter import (
    CONVOLUTION_OIHW,
    DENSE_CHWO,
    DENSE_OI,
    SAME,
    Accumulation,
    ExecutedMatmul,
    Generation,
    MicroBatch,
    Variable,
    is_mixed,
    micro_batches,
)
from harness.common_capabilities import CommonCapabilities
from harness.loader import Loading
from harness.primitives import Primitives
from harness.step_breakdown import StepPart, eager_parts

if TYPE_CHECKING:
    from .steps import Outputs

# the end of the names that Paddle gives running statistics, in the shared names
ENDINGS = {"_mean": "running_mean", "_variance": "running_var"}


class PaddleAdapter(Generation, Accumulation, CommonCapabilities, Loading):
    MODULE = "paddle"
    OUT_OF_MEMORY = ("ResourceExhausted",)
    KEEPS_RANDOM = False

    def import_framework(self) -> None:
        # cuBLAS and cuDNN read it when they are loaded
        if self.case.precision != "tf32":
            os.environ["NVIDIA_TF32_OVERRIDE"] = "0"
        with warnings.catch_warnings():
            # of a compiler cache for extensions, which none here is
            warnings.filterwarnings("ignore", message="No ccache found")
            import paddle

        # all that imports Paddle at its top: from here on it is there
        from . import compiler, devices, matmuls, optimizers, steps
        from .parallel import data_parallel

        self._paddle: Any = paddle
        self._compiler, self._devices, self._data_parallel = compiler, devices, data_parallel
        self._matmuls, self._steps, self._optimizers = matmuls, steps, optimizers

    def start(self) -> None:
        self.import_framework()
        devices = self._devices
        self._gpu = devices.take(self.rank_context)
        self._amp = is_mixed(self.case.precision)
        if self.case.precision == "tf32":
            devices.allow_tf32(self._gpu)
        self._dtype = devices.matmul_dtype(self.case.precision, self._gpu)
        self._compiled = self.case.compiler != "none"
        self._compiler.require(self.case.compiler)
        if self._amp and not self._compiled:
            devices.require_amp(self._dtype)
        if self.case.accumulation > 1 and self.rank_context.world_size > 1:
            self.step_all_reduces()  # which it does not tell: better refused before than behind
        self._definition: Any = self.definition()
        self._process_group = (
            self._data_parallel.join(self.rank_context)
            if self.rank_context.world_size > 1
            else None
        )

    def build(self, batch: Dict[str, Any]) -> None:
        paddle, definition = self._paddle, self._definition
        self.note_form(batch)
        self.put(batch)
        paddle.seed(self.rank_context.seed)  # the same weights in every rank
        self._model = definition.build(self.model_config)
        if self._amp:
            self._devices.require_amp_of(self._model)
        self._network = self._devices.Network(self._model, self._dtype)
        self._network.train() if self.trains else self._network.eval()
        paddle.seed(self.rank_context.dropout_seed)
        if self._compiled:
            self._compiler.compile_model(self._network, self.case.compiler, self._inputs, self._amp)
            if self._amp and not self._gpu:
                self._compiler.require_amp(self.case.mode)
        if not self.trains:
            self._step = self._steps.inference(lambda: self._forward(self._network))
            return
        network = self._network
        if self._process_group:
            network = self._wrapped = self._data_parallel.wrap(network)
        trained = {name: v.tensor.name for name, v in self.state().items() if v.trainable}
        self._optimizer = self._optimizers.from_model_config(
            self._model, self.model_config, trained
        )
        # bfloat16 has the range of float32: only float16 needs its loss scaled
        self._scaler = paddle.amp.GradScaler(enable=self._dtype == "float16")
        self._evaluate_alone = self._evaluation(self._network)
        self._differentiate = self._differentiation(network)
        self._update = self._steps.updating(self._optimizer, self._scaler)
        self._step = self._steps.training(self._differentiate, self._update)

    def put(self, batch: Dict[str, Any]) -> None:
        paddle, definition = self._paddle, self._definition
        parts = micro_batches(batch, self.case.accumulation)
        moved = [
            {n: a if isinstance(a, paddle.Tensor) else paddle.to_tensor(a) for n, a in part.items()}
            for part in parts
        ]
        self._micro_batches = [MicroBatch(part, definition.inputs(part)) for part in moved]
        self._inputs = self._micro_batches[0].inputs

    def set_learning_rate(self, rate: float) -> None:
        self._optimizer.set_lr(rate)

    def training_parts(self) -> Sequence[Any]:
        return self._model, self._optimizer, self._scaler

    def _loss(self, network: Any, number: int) -> Any:
        """Return the loss of the micro-batch that has this number when the step runs."""
        batch = self._micro_batches[number]
        return self._definition.loss(tuple(network(batch.inputs)), batch.tensors, self.model_config)

    def _evaluation(self, network: Any) -> Any:
        """Return the first part of a step, on the first micro-batch, with ``network``, wrapped or
        not."""
        return self._steps.evaluation(lambda: self._loss(network, 0), self._optimizer)

    def _differentiation(self, network: Any) -> Any:
        """Return the step until its update."""
        if self.case.accumulation == 1:
            return self._steps.gradients(self._evaluation(network), self._scaler)
        return self._steps.accumulated(
            [
                functools.partial(self._loss, network, number)
                for number in range(self.case.accumulation)
            ],
            self._optimizer,
            self._scaler,
            network.no_sync if self._process_group else contextlib.nullcontext,
        )

    def _forward(self, network: Any) -> Outputs:
        return tuple(network(self._inputs))

    def step(self) -> Outputs:
        return self._step()

    def read(self, handle: Outputs) -> float:
        total = sum(float(tensor.sum(dtype="float64")) for tensor in handle)
        return total / sum(tensor.size for tensor in handle)

    def synchronize(self) -> None:
        # on the CPU all work is done when its call returns, and this call is refused
        if self._gpu:
            self._paddle.device.synchronize()

    def blocking(self) -> bool:
        return not self._gpu

    def mark(self, handle: Outputs) -> Any:
        return self._paddle.device.current_stream().record_event() if self._gpu else handle

    def wait(self, mark: Any) -> None:
        mark.synchronize()

    def accelerator_name(self) -> str:
        return str(self._paddle.device.cuda.get_device_name())

    def settings(self) -> Dict[str, Any]:
        settings = self._devices.settings(self.rank_context, self._gpu)
        settings["amp_dtype"] = self._dtype if self._amp else None
        settings["amp_level"] = "O1" if self._amp else None
        settings["process_group"] = self._process_group
        if self.trains:
            settings["multi_tensor_optimizer"] = bool(self._optimizer._use_multi_tensor)
            settings["grad_scaler"] = self._scaler.is_enable()
        return settings

    def state(self) -> Dict[str, Variable]:
        # one behind flattened images says so: (channels, height, width)
        flattened = {
            f"{name}.weight": layer.flattened
            for name, layer in self._model.named_sublayers()
            if hasattr(layer, "flattened")
        }

        # Paddle's parameters include the running statistics; its dense layers are (in, out),
        # its recurrent ones (out, in)
        def variable(name: str, tensor: Any) -> Variable:
            trained = not tensor.stop_gradient
            if name in flattened:
                return Variable(tensor, DENSE_CHWO, trained, (*flattened[name], tensor.shape[1]))
            # a matrix of a recurrent layer is named weight_ih_l0 and the like
            recurrent = name.rpartition(".")[2].startswith("weight_")
            axes = DENSE_OI if recurrent else CONVOLUTION_OIHW if tensor.ndim == 4 else SAME
            return Variable(tensor, axes, trained)

        parameters = self._model.named_parameters()
        return {_shared_name(name): variable(name, tensor) for name, tensor in parameters}

    def to_numpy(self, tensor: Any) -> Any:
        return tensor.detach().astype("float32").numpy()

    def assign(self, arrays: Dict[str, Any]) -> None:
        for name, variable in self.state().items():
            variable.tensor.set_value(arrays[name])

    def raw_gradients(self) -> Dict[str, Any]:
        self._differentiate()
        return {name: v.tensor.grad for name, v in self.state().items() if v.trainable}

    def loss_scale(self) -> float:
        return float(self._scaler._scale) if self._scaler.is_enable() else 1.0

    def logits(self) -> Outputs:
        with self._paddle.set_grad_enabled(self.trains):
            return self._forward(self._network)

    def matmuls(self, forward_only: bool) -> List[ExecutedMatmul]:
        if self._compiled or forward_only:  # what runs in the dynamic graph is seen without sizes
            program = self._compiler.trace(self._network, self._inputs)
            return self._matmuls.in_program(program)
        return self._matmuls.watch(self._model, lambda: self._forward(self._network))

    def forward_dtypes_run(self) -> bool:
        return self._compiled  # else those of a trace, which is not what runs

    def micro_step_matmuls(self) -> List[ExecutedMatmul]:
        return self._watched(self._steps.gradients(self._evaluate_alone, self._scaler))

    def step_matmuls(self) -> List[ExecutedMatmul]:
        return self._watched(self._differentiate)

    def _watched(self, differentiate: Callable[[], Any]) -> List[ExecutedMatmul]:
        return self._matmuls.watch_training(self._model, differentiate)

    def compiled(self) -> Dict[str, Any]:
        return self._compiler.proof(self._network, self.case.compiler)

    def gradient_messages(self) -> List[int]:
        return self._data_parallel.group_bytes(self._wrapped)

    def step_parts(self) -> List[StepPart]:
        # Without the wrapper's forward pass, its hooks let gradients be: they stay this rank's.
        return eager_parts(
            forward=self._evaluate_alone,
            backward=lambda loss: self._scaler.scale(loss).backward(),
            averaged=self._differentiate if self._process_group else None,
            update=self._update,
        )

    def make_cache(self, new_tokens: int) -> None:
        generator = self.to_generate_with(self._definition, "Generator")
        (prompts,) = self._inputs
        self._generator = generator(self._model, prompts, new_tokens)

    def _pass(self, run: Callable[[Any], Any], tokens: Any) -> Any:
        paddle, mixed = self._paddle, contextlib.nullcontext()
        if self._amp:
            mixed = paddle.amp.auto_cast(dtype=self._dtype, level="O1")
        with paddle.no_grad(), mixed:
            return run(None if tokens is None else paddle.to_tensor(tokens))

    def primitives(self) -> Primitives:
        from . import micro

        return micro.Primitives(self.rank_context, self._paddle.get_device(), self._dtype)

    def reset_peak_device_memory(self) -> None:
        if self._gpu:
            self._paddle.device.cuda.reset_max_memory_allocated()

    def peak_device_memory(self) -> Optional[int]:
        return self._paddle.device.cuda.max_memory_allocated() if self._gpu else None

    def stop(self) -> None:
        if self._process_group:
            self._paddle.distributed.destroy_process_group()


def _shared_name(name: str) -> str:
    layer, _, ending = name.rpartition(".")
    return f"{layer}.{ENDINGS[ending]}" if ending in ENDINGS else name
