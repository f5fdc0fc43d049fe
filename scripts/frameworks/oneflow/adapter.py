"""OneFlow, set up as its documentation recommends: eager mode with DistributedDataParallel, or
nn.Graph with the optimizer in it and, for several ranks, global tensors."""

from __future__ import annotations

import os
from typing import Any, Dict, List, Sequence

import oneflow
from harness.adapter import (
    CONVOLUTION_OHWI,
    CONVOLUTION_OIHW,
    EagerTraining,
    Unsupported,
    Variable,
    is_mixed,
    state_of_modules,
)
from harness.capabilities import CommonCapabilities
from harness.loader import Loading
from harness.primitives import Primitives

from . import devices, micro, steps


class OneFlowAdapter(EagerTraining, CommonCapabilities, Loading):
    MODULE = "oneflow"
    OUT_OF_MEMORY = ("out_of_memory", "allocate failed")  # on a CPU the error ends the process

    def start(self) -> None:
        # OneFlow's layers read this variable when they are created. Tensor Cores take channels last
        # without conversions; DLPerf's and OneFlow's own ResNet-50 use it.
        os.environ["ONEFLOW_ENABLE_NHWC"] = str(int(self.rank_context.accelerator == "cuda"))
        self._device = devices.take(self.rank_context)
        self._channels_last = devices.channels_last()
        self._graph_mode = self.case.compiler == "graph"
        self._amp = None
        if is_mixed(self.case.precision):
            self._amp = devices.amp_dtype(
                self.case.precision, self._device, self._graph_mode, self.trains
            )
        self._definition: Any = self.definition()

    def build(self, batch: Dict[str, Any]) -> None:
        oneflow.manual_seed(self.rank_context.seed)  # draws the same weights in every rank
        self._model = self._definition.build().to(self._device).train(self.trains)
        self._batch = self._moved(batch)
        oneflow.manual_seed(self.rank_context.dropout_seed)
        if self._graph_mode:
            self._build_graph()
        elif self.trains:
            self._wrapped = self._model
            if self.rank_context.world_size > 1:
                # each rank keeps its own running statistics: a training step does not read them,
                # and other frameworks do not send them either
                parallel = oneflow.nn.parallel.DistributedDataParallel
                self._wrapped = parallel(self._model, broadcast_buffers=False)
            self._optimizer = self._make_optimizer()

    def _moved(self, batch: Dict[str, Any]) -> Dict[str, Any]:
        arrays = batch
        if not self._channels_last:  # batches have channels last
            arrays = {n: a.transpose((0, 3, 1, 2)) if a.ndim == 4 else a for n, a in batch.items()}
        return {name: devices.copied(array, self._device) for name, array in arrays.items()}

    def feed(self, batch: Dict[str, Any]) -> None:
        moved = self._moved(batch)
        if self._graph_mode and self.rank_context.world_size > 1:
            moved = devices.join(moved, self._device)
        self._batch = moved

    def set_learning_rate(self, rate: float) -> None:
        groups = self._optimizer.param_groups
        if self._graph_mode and any(group["lr"] != rate for group in groups):
            raise Unsupported("nn.Graph has compiled the learning rate into the step")
        for group in groups:
            group["lr"] = rate

    # OneFlow 0.9 has functions for the random state, but they do not restore it.
    def save_training(self, path: str) -> None:
        parts = {"model": self._model, "optimizer": self._optimizer}
        oneflow.save({name: part.state_dict() for name, part in parts.items()}, path)

    def load_training(self, path: str) -> None:
        kept = oneflow.load(path)
        # not load_state_dict, which does not find layers with dots in their names
        with oneflow.no_grad():
            for name, tensor in self._model.state_dict().items():
                tensor.copy_(kept["model"][name])
        self._optimizer.load_state_dict(kept["optimizer"])

    def require_resumable(self) -> None:
        if self._graph_mode:
            raise Unsupported(
                "nn.Graph does not expose its optimizer's state: checkpoints need eager mode"
            )

    def clear_gradients(self) -> None:
        # With several ranks, gradients are views of DistributedDataParallel's buckets, to which
        # backward passes add. In this case gradients must be zeroed; otherwise they are dropped, as
        # OneFlow recommends.
        self._optimizer.zero_grad(set_to_none=self.rank_context.world_size == 1)

    def loss(self, number: int) -> Any:
        outputs = self._forward(self._wrapped)
        losses = self._definition.losses(outputs, self._batch)
        return sum(vector.mean() for vector in losses)

    def backward(self, loss: Any) -> None:
        loss.backward()

    def update(self) -> None:
        limit = self.model_config["hyperparameters"].get("clip_global_norm")
        if limit is not None:
            groups = self._optimizer.param_groups
            gradients = [p.grad for group in groups for p in group.parameters]
            steps.clip_global_norm(gradients, limit)
        self._optimizer.step()

    def infer(self) -> Sequence[Any]:
        return self.logits()

    def _build_graph(self) -> None:
        self._side_graphs: Dict[Any, Any] = {}
        if self.rank_context.world_size > 1:
            self._model = devices.replicate(self._model, self._device)
            self._batch = devices.join(self._batch, self._device)
        self._source = steps.Source(self._definition, self._model, self._amp)
        if self.trains:
            self._optimizer = self._make_optimizer()
            self._graph = steps.Training(self._source, self._optimizer)
            steps.compile_graph(self._graph, self._batch)
        else:
            self._graph = self._compiled(steps.Forward)

    def _compiled(self, kind: Any) -> Any:
        """Return the graph of this ``kind``, which is separate from the step's and compiled at its
        first use."""
        if kind not in self._side_graphs:
            graph = kind(self._source)
            steps.compile_graph(graph, self._batch)
            self._side_graphs[kind] = graph
        return self._side_graphs[kind]

    def _make_optimizer(self) -> Any:
        fused = self._device.type == "cuda"
        return steps.optimizer_of(self._model, self.model_config, fused, clips=self._graph_mode)

    def _forward(self, model: Any) -> Any:
        inputs = self._definition.inputs(self._batch)
        if self._amp is None:
            return model(*inputs)
        with oneflow.autocast(self._device.type, dtype=self._amp):
            return model(*inputs)

    def step(self) -> Sequence[Any]:
        return self._graph(self._batch) if self._graph_mode else super().step()

    def read(self, handle: Any) -> float:
        if not self.trains:
            return super().read(handle)
        return float(sum(self.to_numpy(losses).mean(dtype="float64") for losses in handle))

    def synchronize(self) -> None:
        # OneFlow's virtual machine lags behind Python on a CPU too, and oneflow.cuda.synchronize()
        # only waits for a GPU.
        oneflow._oneflow_internal.eager.Sync()
        if self._device.type == "cuda":
            oneflow.cuda.synchronize(self._device)

    def mark(self, handle: Any) -> Any:
        # One number, computed after all enqueued work and copied to the host before the next step
        # is enqueued.
        return handle[0].reshape(-1)[:1].clone().to("cpu")

    def wait(self, mark: Any) -> None:
        mark.numpy()

    def accelerator_name(self) -> str:
        return str(oneflow.cuda.get_device_name(self._device))

    def settings(self) -> Dict[str, Any]:
        settings: Dict[str, Any] = {
            "threads": self.rank_context.threads,
            "tf32": os.environ["ONEFLOW_EP_CUDA_ENABLE_TF32_EXECUTION"] != "0",
            "onednn": os.environ.get("ONEFLOW_ENABLE_ONEDNN_OPTS", "default"),
            "memory_format": "channels_last" if self._channels_last else "channels_first",
            "amp_dtype": None if self._amp is None else str(self._amp).replace("oneflow.", ""),
        }
        if self._graph_mode:
            settings["graph"] = steps.OPTIONS
        if self.rank_context.world_size > 1:
            settings["data_parallel"] = "global tensors" if self._graph_mode else "DDP"
        if self.trains:
            settings["fused_optimizer"] = self._optimizer.param_groups[0]["fused"]
            settings["grad_scaler"] = self._graph_mode and self._graph._grad_scaler is not None
        return settings

    def state(self) -> Dict[str, Variable]:
        kernels = CONVOLUTION_OHWI if self._channels_last else CONVOLUTION_OIHW
        return state_of_modules(self._model, oneflow.nn.Linear, kernels)

    def to_numpy(self, tensor: Any) -> Any:
        return devices.local(tensor.detach()).float().numpy()

    def assign(self, arrays: Dict[str, Any]) -> None:
        with oneflow.no_grad():
            for name, variable in self.state().items():
                local = devices.local(variable.tensor)
                local.copy_(oneflow.tensor(arrays[name], device=local.device))

    def raw_gradients(self) -> Dict[str, Any]:
        if not self._graph_mode:
            return super().raw_gradients()
        gradients = self._compiled(steps.Gradients)(self._batch)
        return {name: g for (name, _), g in zip(self._model.named_parameters(), gradients)}

    def logits(self) -> Sequence[Any]:
        if self._graph_mode:
            return self._compiled(steps.Forward)(self._batch)
        with oneflow.no_grad():
            return self._forward(self._model)

    def matmul_dtypes(self) -> Dict[str, int]:
        if self._graph_mode:
            return steps.matmuls_of(self._graph)
        # the model's own forward, without the hooks of DistributedDataParallel
        forward = self._model.forward
        return steps.count_matmuls(self._model, lambda: self._forward(forward))

    def compiled(self) -> Dict[str, Any]:
        return steps.proof(self._graph)

    def gradient_messages(self) -> List[int]:
        if self._graph_mode:
            raise Unsupported("nn.Graph does not report the sizes of gradient messages")
        # buckets that DistributedDataParallel sends, padding included, last layers first
        buckets = self._model._bucket_tensors
        return [bucket.numel() * bucket.element_size() for bucket in buckets]

    def primitives(self) -> Primitives:
        dtype = self._amp or oneflow.float32
        return micro.Primitives(self.rank_context, self._device, dtype)
