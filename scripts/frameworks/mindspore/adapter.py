"""MindSpore on CPUs: PyNative mode runs each operation when Python calls it; with ``jit``, forward
pass and gradients are graphs."""

from __future__ import annotations

import os
from typing import Any, Dict, List, Sequence

import mindspore
import numpy as np
from harness.adapter import Accumulation, Unsupported, Variable, micro_batches, variable_of
from harness.capabilities import CommonCapabilities, load_arrays, save_arrays
from harness.loader import Loading
from harness.primitives import Primitives
from mindspore import nn, ops
from mindspore.graph.api import _pynative_executor

from . import devices, micro, steps

#: Endings of parameters' shared names, by MindSpore's endings where they differ.
ENDINGS = {
    "gamma": "weight",
    "beta": "bias",
    "moving_mean": "running_mean",
    "moving_variance": "running_var",
    "embedding_table": "weight",
}
STATISTICS = ("moving_mean", "moving_variance")


class MindSporeAdapter(Accumulation, CommonCapabilities, Loading):
    MODULE = "mindspore"
    OUT_OF_MEMORY = ("Allocate output memory failed",)

    def start(self) -> None:
        if self.rank_context.accelerator != "cpu":
            raise Unsupported(
                f"the package index has MindSpore {mindspore.__version__} for CPUs only"
            )
        mindspore.set_device("CPU")
        devices.set_once(self.rank_context.threads)
        if self.case.precision != "fp32":
            steps.refuse_halves()
        self._group = devices.Group(self.rank_context)
        self._definition: Any = self.definition()

    def build(self, batch: Dict[str, Any]) -> None:
        mindspore.set_seed(self.rank_context.seed)  # draws the same weights in every rank
        self._network = self._definition.build(self.trains)
        self._network.set_train(self.trains)
        for name, parameter in self._network.parameters_and_names():
            parameter.name = name  # optimizers need parameters with different names
        self.feed(batch)
        seed = self.rank_context.dropout_seed
        mindspore.set_seed(seed)
        # dropout layers took the weights' seed, which is the same in every rank
        cells = (cell for _, cell in self._network.cells_and_names())
        drops = (cell for cell in cells if isinstance(cell, nn.Dropout))
        for number, cell in enumerate(drops):
            cell.dropout = ops.Dropout(1.0 - cell.p, seed, number)
        parameters = self._trainable() if self.trains else {}
        parts = (self._definition, self._network, [*parameters.values()])
        self._programs = steps.Programs(*parts, self.case.compiler == "jit")
        if self.trains:
            self._optimizer = steps.optimizer_of(parameters, self.model_config["hyperparameters"])
            self._gradients: Sequence[Any] = ()

    def feed(self, batch: Dict[str, Any]) -> None:
        # mutable: otherwise a graph holds the values of its first batch, and each batch needs a new
        # one
        self._batches = [
            mindspore.mutable({name: mindspore.Tensor(array) for name, array in part.items()})
            for part in micro_batches(_own_layout(batch), self.case.accumulation)
        ]

    def set_learning_rate(self, rate: float) -> None:
        if isinstance(self._optimizer, steps.AdamW):
            self._optimizer.learning_rate = rate
        else:
            ops.assign(self._optimizer.learning_rate, mindspore.Tensor(rate))

    def _trainable(self) -> Dict[str, Any]:
        return {name: entry.tensor for name, entry in self.state().items() if entry.trainable}

    def logits(self) -> Sequence[Any]:
        return tuple(self._programs.forward(self._batches[0]))

    def _average(self) -> Any:
        """Leave the gradients averaged over the ranks and return the loss."""
        loss, gradients = self._programs.differentiate(self._batches)
        self._gradients = self._group.average(gradients)
        return loss

    def step(self) -> Any:
        if not self.trains:
            outputs = self.logits()
            _pynative_executor.sync()
            return outputs
        loss = self._average()
        self._optimizer(tuple(self._gradients))
        _pynative_executor.sync()
        return (loss,)

    def synchronize(self) -> None:
        # runtime.synchronize() is refused on CPUs
        _pynative_executor.sync()

    def blocking(self) -> bool:
        # On CPUs there are no events, and reading a tensor waits for all enqueued work: with a step
        # enqueued ahead, two steps would end at once.
        return True

    def settings(self) -> Dict[str, Any]:
        return {
            "threads": self.rank_context.threads,
            "onednn_max_cpu_isa": os.environ["ONEDNN_MAX_CPU_ISA"],
            "process_group": self._group.backend,
        }

    def state(self) -> Dict[str, Variable]:
        layers = dict(self._network.cells_and_names())
        results = {}
        for name, parameter in self._network.parameters_and_names():
            holder, _, ending = name.rpartition(".")
            shared = ".".join(filter(None, (holder, ENDINGS.get(ending, ending))))
            trained = ending not in STATISTICS
            is_matrix = isinstance(layers.get(holder), nn.Dense) and ending == "weight"
            is_matrix |= ending.startswith("weight_")  # matrices of recurrent layers
            results[shared] = variable_of(parameter, trained, is_matrix, layers.get(holder))
        return results

    def to_numpy(self, tensor: Any) -> Any:
        return tensor.asnumpy()

    def assign(self, arrays: Dict[str, Any]) -> None:
        for name, variable in self.state().items():
            ops.assign(variable.tensor, mindspore.Tensor(arrays[name]))
        self.synchronize()

    def raw_gradients(self) -> Dict[str, Any]:
        self._average()
        return dict(zip(self._trainable(), self._gradients))

    def matmul_dtypes(self) -> Dict[str, int]:
        # graphs compile the same code, and only fp32 is supported
        forward = self._programs.uncompiled_forward
        return steps.count_matmuls(self._network, lambda: forward(self._batches[0]))

    def compiled(self) -> Dict[str, Any]:
        return steps.proof()

    def save_training(self, path: str) -> None:
        save_arrays(path, [parameter.asnumpy() for parameter in self._checkpointed()])

    def load_training(self, path: str) -> None:
        parameters = self._checkpointed()
        for parameter, array in zip(parameters, load_arrays(path, len(parameters))):
            ops.assign(parameter, mindspore.Tensor(array))

    def _checkpointed(self) -> List[Any]:
        """Return each parameter once: the optimizer may list the model's parameters, too."""
        every = [*self._network.get_parameters(), *self._optimizer.get_parameters()]
        return list({id(parameter): parameter for parameter in every}.values())

    def gradient_messages(self) -> List[int]:
        return [4 * int(gradient.size) for gradient in self._gradients]

    def primitives(self) -> Primitives:
        return micro.Primitives(self.rank_context, "CPU", "float32")

    def stop(self) -> None:
        self._group.leave()


def _own_layout(batch: Dict[str, Any]) -> Dict[str, Any]:
    """Return arrays with images (batch, channels, height, width) and whole numbers as int32."""
    arrays = {n: a.transpose(0, 3, 1, 2) if a.ndim == 4 else a for n, a in batch.items()}
    return {
        name: np.ascontiguousarray(a, np.int32 if a.dtype == np.int64 else a.dtype)
        for name, a in arrays.items()
    }
