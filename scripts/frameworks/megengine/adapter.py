"""MegEngine, set up as its documentation recommends: dynamic graph, GradManager and MegEngine's
optimizers."""

from __future__ import annotations

import os
from typing import Any, Dict, Tuple

import megengine
import megengine.module as M
from harness.adapter import (
    CONVOLUTION_OIHW,
    EagerTraining,
    MatmulTrace,
    Unsupported,
    Variable,
    variable_of,
)
from harness.capabilities import Checkpointing, SingleOperations
from harness.primitives import Primitives

from . import micro, steps


class MegEngineAdapter(EagerTraining, MatmulTrace, SingleOperations, Checkpointing):
    MODULE = "megengine"
    OUT_OF_MEMORY = ("failed to malloc",)

    def start(self) -> None:
        if self.rank_context.accelerator != "cpu":
            raise Unsupported("MegEngine has been tried on CPUs only")
        if self.case.precision != "fp32":
            raise Unsupported(
                "MegEngine's CPU kernels compute in float32: float16 runs a naive loop, and "
                "bfloat16 fails with an error"
            )
        # "cpu0" computes in one thread, "multithreadN:0" in N
        threads = self.rank_context.threads
        self._device = "cpu0" if threads == 1 else f"multithread{threads}:0"
        megengine.set_default_device(self._device)
        self._definition: Any = self.definition()

    def build(self, batch: Dict[str, Any]) -> None:
        megengine.random.seed(self.rank_context.seed)
        self._model = self._definition.build()
        self._model.train(self.trains)
        self.feed(batch)
        if self.trains:
            self._parameters = dict(self._model.named_parameters())
            self._manager = megengine.autodiff.GradManager().attach(self._parameters.values())
            self._optimizer = steps.optimizer_of(self._parameters, self.model_config)
        megengine.random.seed(self.rank_context.dropout_seed)

    def feed(self, batch: Dict[str, Any]) -> None:
        self._batch = {name: self._tensor(array) for name, array in batch.items()}

    def _tensor(self, array: Any) -> Any:
        if array.ndim == 4:  # images come as (batch, height, width, channels)
            array = array.transpose(0, 3, 1, 2)
        # indices are int32 in MegEngine
        return megengine.tensor(array.astype("int32" if array.dtype.kind == "i" else "f4"))

    def set_learning_rate(self, rate: float) -> None:
        for group in self._optimizer.param_groups:
            group["lr"] = rate

    def save_training(self, path: str) -> None:
        state = {"model": self._model.state_dict(), "optimizer": self._optimizer.state_dict()}
        megengine.save(state, path)

    def load_training(self, path: str) -> None:
        state = megengine.load(path)
        self._model.load_state_dict(state["model"])
        self._optimizer.load_state_dict(state["optimizer"])

    def out_of_memory(self, error: BaseException) -> bool:
        # After an operation failed asynchronously, the next one on its result only raises an
        # assertion. Waiting raises the failure itself.
        try:
            megengine._full_sync()
        except RuntimeError as failure:
            return super().out_of_memory(error) or super().out_of_memory(failure)
        return super().out_of_memory(error)

    def logits(self) -> Tuple[Any, ...]:
        outputs: Tuple[Any, ...] = self._model(*self._definition.inputs(self._batch))
        return outputs

    def clear_gradients(self) -> None:
        self._optimizer.clear_grad()

    def loss(self, number: int) -> Any:
        self._manager.record()
        return self._definition.loss(self.logits(), self._batch)

    def backward(self, loss: Any) -> None:
        self._manager.backward(loss)

    def update(self) -> None:
        limit = self.model_config["hyperparameters"].get("clip_global_norm")
        if limit is not None:
            megengine.optimizer.clip_grad_norm(self._parameters.values(), limit)
        self._optimizer.step()

    def infer(self) -> Tuple[Any, ...]:
        return self.logits()

    def synchronize(self) -> None:
        megengine._full_sync()

    def mark(self, handle: Any) -> Any:
        return handle[0].flatten()[:1] + 0.0  # computed after all earlier work

    def wait(self, mark: Any) -> None:
        mark.numpy()

    def settings(self) -> Dict[str, Any]:
        return {
            "device": self._device,
            "threads": self.rank_context.threads,
            "async_level": megengine.config.async_level,
            "inplace_update": os.environ.get("MEGENGINE_INPLACE_UPDATE", "0"),
        }

    def state(self) -> Dict[str, Variable]:
        blocks = dict(self._model.named_modules())

        def variable(name: str, tensor: Any) -> Variable:
            prefix, _, ending = name.rpartition(".")
            block, trained = blocks[prefix], isinstance(tensor, megengine.Parameter)
            if isinstance(block, M.Conv2d) and ending == "weight":  # groups add an axis
                merged = (block.out_channels, *tensor.shape[-3:])
                return Variable(tensor, CONVOLUTION_OIHW, trained, merged=merged)
            if isinstance(block, (M.Conv2d, M.BatchNorm2d)):  # (1, channels, 1, 1)
                return Variable(tensor, trainable=trained, merged=(tensor.shape[1],))
            is_matrix = isinstance(block, M.Linear) and ending == "weight"
            return variable_of(tensor, trained, is_matrix, block)

        return {name: variable(name, tensor) for name, tensor in self._model.named_tensors()}

    def to_numpy(self, tensor: Any) -> Any:
        return tensor.numpy()

    def assign(self, arrays: Dict[str, Any]) -> None:
        for name, variable in self.state().items():
            variable.tensor[...] = megengine.tensor(arrays[name])

    def matmul_dtypes(self) -> Dict[str, int]:
        return steps.count_matmuls(self._model, self.logits)

    def primitives(self) -> Primitives:
        return micro.Primitives(self.rank_context, self._device, "float32")
