"""PaddlePaddle, set up as its guides recommend: the dynamic graph, ``to_static`` programs,
``auto_cast`` for mixed precision, DataParallel with one process for each device."""

from __future__ import annotations

import contextlib
from typing import Any, Callable, ContextManager, Dict, List, Optional, Tuple

import paddle
from harness.adapter import (
    CONVOLUTION_OIHW,
    DENSE_CHWO,
    DENSE_OI,
    SAME,
    Accumulation,
    EagerTraining,
    Generation,
    MicroBatch,
    Variable,
    is_mixed,
    matmul_dtype,
    micro_batches,
)
from harness.capabilities import CommonCapabilities
from harness.loader import Loading
from harness.primitives import Primitives

from . import devices, micro, steps

Outputs = Tuple[paddle.Tensor, ...]
# Under NumPy 2.4 the function of Paddle 3.3 refuses the shape [1] of GradScaler's scale, which
# GradScaler itself converts when gradients overflow.
paddle.Tensor.__float__ = lambda tensor: float(tensor.item())

# shared endings of running statistics, by Paddle's endings
ENDINGS = {"_mean": "running_mean", "_variance": "running_var"}


class PaddleAdapter(Generation, EagerTraining, Accumulation, CommonCapabilities, Loading):
    MODULE = "paddle"
    OUT_OF_MEMORY = ("ResourceExhausted",)

    def start(self) -> None:
        self._gpu = devices.take(self.rank_context)
        self._amp = is_mixed(self.case.precision)
        if self.case.precision == "tf32":
            devices.allow_tf32(self._gpu)
        has_bfloat16 = not self._gpu or paddle.amp.is_bfloat16_supported()
        where = "PaddlePaddle on this GPU"
        self._dtype = matmul_dtype(self.case.precision, has_bfloat16, where)
        self._compiled = self.case.compiler != "none"
        if self._amp and not self._compiled:
            devices.require_amp(self._dtype)
        self._definition: Any = self.definition()
        self._process_group = (
            devices.join(self.rank_context) if self.rank_context.world_size > 1 else None
        )

    def build(self, batch: Dict[str, Any]) -> None:
        self.feed(batch)
        paddle.seed(self.rank_context.seed)  # the same weights in every rank
        self._model = self._definition.build()
        if self._amp:
            devices.require_amp_of(self._model)
        self._network = devices.Network(self._model, self._dtype)
        self._network.train() if self.trains else self._network.eval()
        paddle.seed(self.rank_context.dropout_seed)
        if self._compiled:
            steps.compile_model(self._network, self._inputs, self._amp)
        if not self.trains:
            return
        self._wrapped = self._network
        if self._process_group:
            self._wrapped = paddle.DataParallel(self._network)  # copies rank 0's weights to all
        trained = {name: v.tensor.name for name, v in self.state().items() if v.trainable}
        self._optimizer = steps.optimizer_of(self._model, self.model_config, trained)
        # bfloat16 has the range of float32: only float16 needs its loss scaled
        self._scaler = paddle.amp.GradScaler(enable=self._dtype == "float16")

    def feed(self, batch: Dict[str, Any]) -> None:
        definition = self._definition
        parts = micro_batches(batch, self.case.accumulation)
        moved = [
            {n: a if isinstance(a, paddle.Tensor) else paddle.to_tensor(a) for n, a in part.items()}
            for part in parts
        ]
        self._micro_batches = [MicroBatch(part, definition.inputs(part)) for part in moved]
        self._inputs = self._micro_batches[0].inputs

    def set_learning_rate(self, rate: float) -> None:
        self._optimizer.set_lr(rate)

    def save_training(self, path: str) -> None:
        parts = {"model": self._model, "optimizer": self._optimizer, "scaler": self._scaler}
        kept: Dict[str, Any] = {name: part.state_dict() for name, part in parts.items()}
        # optimizer states are named by parameters, whose numbers grow with each model of a process
        kept["names"] = [parameter.name for parameter in self._model.parameters()]
        paddle.save(kept, path)

    def load_training(self, path: str) -> None:
        kept = paddle.load(path)
        self._model.set_state_dict(kept["model"])
        own = (parameter.name for parameter in self._model.parameters())
        names = dict(zip(kept["names"], own))
        states = {_renamed(name, names): state for name, state in kept["optimizer"].items()}
        self._optimizer.set_state_dict(states)
        if kept["scaler"]:
            self._scaler.load_state_dict(kept["scaler"])

    def clear_gradients(self) -> None:
        # free gradients, so that the backward pass overwrites instead of adding
        self._optimizer.clear_grad(set_to_zero=False)

    def loss(self, number: int) -> Any:
        batch = self._micro_batches[number]
        outputs = tuple(self._wrapped(batch.inputs))
        return self.share(self._definition.loss(outputs, batch.tensors))

    def backward(self, loss: Any) -> None:
        self._scaler.scale(loss).backward()  # DataParallel averages the gradients in this call

    def unsynchronized(self) -> ContextManager[Any]:
        # also around forward passes, as the reference of DataParallel.no_sync shows
        return self._wrapped.no_sync() if self._process_group else contextlib.nullcontext()

    def update(self) -> None:
        # clips the unscaled gradients if the optimizer is set to
        self._scaler.step(self._optimizer)
        self._scaler.update()

    def infer(self) -> Outputs:
        with paddle.no_grad():
            return self._forward()

    def _forward(self) -> Outputs:
        return tuple(self._network(self._inputs))

    def synchronize(self) -> None:
        # on the CPU, work is complete when a call returns, and Paddle refuses to synchronize
        if self._gpu:
            paddle.device.synchronize()

    def blocking(self) -> bool:
        return not self._gpu

    def mark(self, handle: Outputs) -> Any:
        return paddle.device.current_stream().record_event() if self._gpu else handle

    def wait(self, mark: Any) -> None:
        mark.synchronize()

    def accelerator_name(self) -> str:
        return str(paddle.device.cuda.get_device_name())

    def settings(self) -> Dict[str, Any]:
        settings = devices.settings(self.rank_context, self._gpu)
        settings["amp_dtype"] = self._dtype if self._amp else None
        settings["process_group"] = self._process_group
        settings["programs_in_order"] = self._compiled
        if self.trains:
            settings["multi_tensor_optimizer"] = bool(self._optimizer._use_multi_tensor)
            settings["grad_scaler"] = self._scaler.is_enable()
        return settings

    def state(self) -> Dict[str, Variable]:
        # (channels, height, width), for layers after flattened images
        flattened = {
            f"{name}.weight": layer.flattened
            for name, layer in self._model.named_sublayers()
            if hasattr(layer, "flattened")
        }

        # Paddle's parameters include running statistics; dense layers are (in, out), recurrent ones
        # (out, in)
        def variable(name: str, tensor: Any) -> Variable:
            trained = not tensor.stop_gradient
            if name in flattened:
                return Variable(tensor, DENSE_CHWO, trained, (*flattened[name], tensor.shape[1]))
            # matrices of recurrent layers have names such as weight_ih_l0
            recurrent = name.rpartition(".")[2].startswith("weight_")
            axes = DENSE_OI if recurrent else CONVOLUTION_OIHW if tensor.ndim == 4 else SAME
            return Variable(tensor, axes, trained)

        state: Dict[str, Variable] = {}
        for name, tensor in self._model.named_parameters():
            layer, _, ending = name.rpartition(".")
            shared = f"{layer}.{ENDINGS[ending]}" if ending in ENDINGS else name
            state[shared] = variable(name, tensor)
        return state

    def to_numpy(self, tensor: Any) -> Any:
        return tensor.detach().astype("float32").numpy()

    def assign(self, arrays: Dict[str, Any]) -> None:
        for name, variable in self.state().items():
            variable.tensor.set_value(arrays[name])

    def loss_scale(self) -> float:
        return float(self._scaler._scale) if self._scaler.is_enable() else 1.0

    def logits(self) -> Outputs:
        with paddle.set_grad_enabled(self.trains):
            return self._forward()

    def matmul_dtypes(self) -> Dict[str, int]:
        if self._compiled:
            return steps.matmuls_of(steps.trace(self._network, self._inputs))
        return steps.count_matmuls(self._model, self._forward)

    def compiled(self) -> Dict[str, Any]:
        return steps.proof(self._network)

    def gradient_messages(self) -> List[int]:
        # groups of gradients that DataParallel sends at once, as indices of parameters in the order
        # of the layers; reversed, they are in the order of the backward pass
        layers = self._wrapped.sublayers()
        parameters = [p for layer in layers for p in layer.parameters(include_sublayers=False)]
        once = {id(p): p for p in parameters}.values()
        sizes = [p.size * p.element_size() for p in once if p.trainable]
        groups = reversed(self._wrapped.group_indices)
        return [sum(sizes[index] for index in group) for group in groups]

    def make_cache(self, new_tokens: int) -> None:
        generator = self.to_generate_with(self._definition, "Generator")
        (prompts,) = self._inputs
        self._generator = generator(self._model, prompts, new_tokens)

    def _pass(self, run: Callable[..., Any], *tokens: Any) -> Any:
        mixed: ContextManager[Any] = contextlib.nullcontext()
        if self._amp:
            mixed = paddle.amp.auto_cast(dtype=self._dtype, level="O1")
        with paddle.no_grad(), mixed:
            return run(*map(paddle.to_tensor, tokens))

    def primitives(self) -> Primitives:
        return micro.Primitives(self.rank_context, paddle.get_device(), self._dtype)

    def reset_peak_device_memory(self) -> None:
        if self._gpu:
            paddle.device.cuda.reset_max_memory_allocated()

    def peak_device_memory(self) -> Optional[int]:
        return paddle.device.cuda.max_memory_allocated() if self._gpu else None

    def stop(self) -> None:
        if self._process_group:
            paddle.distributed.destroy_process_group()


def _renamed(state: str, names: Dict[str, str]) -> str:
    """Return the name of an optimizer's state with its parameter renamed by ``names``."""
    for old, new in names.items():
        if state.startswith(f"{old}_"):
            return new + state[len(old) :]
    return state
