"""OneFlow, set up as its documentation recommends: eager mode with DistributedDataParallel, or
nn.Graph with the optimizer in it and, for several ranks, global tensors."""

from __future__ import annotations

import os
from typing import Any, Dict, List, Sequence, Tuple

from harness.adapter import (
    CONVOLUTION_OHWI,
    CONVOLUTION_OIHW,
    ExecutedMatmul,
    Unsupported,
    Variable,
    is_mixed,
    state_of_modules,
)
from harness.common_capabilities import CommonCapabilities
from harness.loader import DeviceArray, Loading
from harness.primitives import Primitives
from harness.step_breakdown import StepPart, eager_parts, program_parts


class OneFlowAdapter(CommonCapabilities, Loading):
    MODULE = "oneflow"
    OUT_OF_MEMORY = ("out_of_memory", "allocate failed")  # on a CPU it ends the process
    KEEPS_RANDOM = False  # behind set_rng_state it draws other numbers than behind get_rng_state

    def start(self) -> None:
        # OneFlow reads these when it is imported.
        os.environ["ONEFLOW_EP_CUDA_ENABLE_TF32_EXECUTION"] = "0"
        # OneFlow's layers read it when they are made. Channels last: Tensor Cores take it without
        # conversions, and DLPerf's and OneFlow's own ResNet-50 have it.
        os.environ["ONEFLOW_ENABLE_NHWC"] = str(int(self.rank_context.accelerator == "cuda"))
        os.environ.setdefault("GLOG_minloglevel", "3")  # the build says at length: no GPU
        if self.rank_context.rank > 0:
            from .parallel import rendezvous

            rendezvous.wait_for_listener(self.rank_context.addresses[0])
        import oneflow

        # All that imports OneFlow at its top: from here on it is there.
        from . import devices, graphs, matmuls, mixed_precision, optimizers, steps
        from .parallel import data_parallel

        self._oneflow: Any = oneflow
        self._steps, self._graphs, self._optimizers = steps, graphs, optimizers
        self._matmuls, self._data_parallel = matmuls, data_parallel
        self._devices = devices
        self._device = devices.take(self.rank_context)
        self._channels_last = devices.channels_last()
        self._graph_mode = self.case.compiler == "graph"
        self._amp = None
        if is_mixed(self.case.precision):
            self._amp = mixed_precision.amp_dtype(
                self.case.precision, self._device, self._graph_mode, self.trains
            )
        self._definition: Any = self.definition()

    def build(self, batch: Dict[str, Any]) -> None:
        oneflow, definition = self._oneflow, self._definition
        oneflow.manual_seed(self.rank_context.seed)  # the same weights in every rank
        self._model = definition.build(self.model_config).to(self._device).train(self.trains)
        self.note_form(batch)
        self._batch = self._moved(batch)
        oneflow.manual_seed(self.rank_context.dropout_seed)
        if self._graph_mode:
            self._build_graph()
        else:
            self._build_eager()

    def _moved(self, batch: Dict[str, Any]) -> Dict[str, Any]:
        arrays = batch
        if not self._channels_last:  # as images come
            arrays = {n: a.transpose((0, 3, 1, 2)) if a.ndim == 4 else a for n, a in batch.items()}
        return {name: self._devices.copied(array, self._device) for name, array in arrays.items()}

    def put(self, batch: Dict[str, Any]) -> None:
        moved = self._moved(batch)
        if self._graph_mode and self.rank_context.world_size > 1:
            moved = self._data_parallel.join(moved, self._device)
        self._batch = moved

    def device_tensor(self, array: DeviceArray) -> Any:
        return self._from_dlpack()(array.__dlpack__())

    def set_learning_rate(self, rate: float) -> None:
        groups = self._optimizer.param_groups
        if self._graph_mode and any(group["lr"] != rate for group in groups):
            raise Unsupported("nn.Graph has compiled the learning rate into the step")
        for group in groups:
            group["lr"] = rate

    def training_parts(self) -> Sequence[Any]:
        return self._model, self._optimizer

    def require_resumable(self) -> None:
        super().require_resumable()
        if self._graph_mode:
            raise Unsupported(
                "nn.Graph does not expose its optimizer's state: checkpoints need eager mode"
            )

    def _build_eager(self) -> None:
        if not self.trains:
            self._step = self._steps.inference(lambda: self._forward(self._model))
            return
        several = self.rank_context.world_size > 1
        model = self._data_parallel.wrap(self._model) if several else self._model
        self._optimizer = self._make_optimizer()

        def evaluation(batch: Any) -> Any:
            return self._steps.evaluation(
                forward=lambda: self._forward(batch),
                losses=lambda outputs: self._definition.losses(
                    outputs, self._batch, self.model_config
                ),
                optimizer=self._optimizer,
                views=several,
            )

        # without DistributedDataParallel's hook, which stands behind the whole model
        self._evaluate_alone = evaluation(self._model.forward)
        self._differentiate = self._steps.gradients(evaluation(model))
        self._update = self._steps.updating(self._optimizer, self._clip_global_norm)
        self._step = self._steps.training(self._differentiate, self._update)

    def _build_graph(self) -> None:
        self._side_graphs: Dict[Any, Any] = {}
        if self.rank_context.world_size > 1:
            self._model = self._data_parallel.replicate(self._model, self._device)
            self._batch = self._data_parallel.join(self._batch, self._device)
        if self.trains:
            self._optimizer = self._make_optimizer()
            self._graph = self._graphs.Training(*self._graph_parts(), self._optimizer)
            self._graphs.compile_graph(self._graph, self._batch)
        else:
            self._graph = self._compiled(self._graphs.Forward)
        self._step = lambda: self._graph(self._batch)

    def _graph_parts(self) -> Tuple[Any, Any, Any, Any]:
        return self._definition, self._model, self.model_config, self._amp

    def _compiled(self, kind: Any) -> Any:
        """Return the graph of this ``kind`` beside the step's, compiled when it is first wanted."""
        if kind not in self._side_graphs:
            graph = kind(*self._graph_parts())
            self._graphs.compile_graph(graph, self._batch)
            self._side_graphs[kind] = graph
        return self._side_graphs[kind]

    def _make_optimizer(self) -> Any:
        fused = self._device.type == "cuda"
        return self._optimizers.from_model_config(
            self._model, self.model_config, fused, clips=self._graph_mode
        )

    @property
    def _clip_global_norm(self) -> Any:
        return self.model_config["hyperparameters"].get("clip_global_norm")

    def _forward(self, model: Any) -> Any:
        inputs = self._definition.inputs(self._batch)
        if self._amp is None:
            return model(*inputs)
        with self._oneflow.autocast(self._device.type, dtype=self._amp):
            return model(*inputs)

    def step(self) -> Any:
        return self._step()

    def read(self, handle: Any) -> float:
        if not self.trains:
            return super().read(handle)
        return float(sum(self.to_numpy(losses).mean(dtype="float64") for losses in handle))

    def synchronize(self) -> None:
        # OneFlow's virtual machine runs behind Python on a CPU too. oneflow.cuda.synchronize()
        # would wait for a GPU alone.
        self._oneflow._oneflow_internal.eager.Sync()
        if self._device.type == "cuda":
            self._oneflow.cuda.synchronize(self._device)

    def mark(self, handle: Any) -> Any:
        # One number, computed behind all that is enqueued on the device, and on its way to the host
        # before the next step is.
        return handle[0].flatten()[:1].clone().to("cpu")

    def wait(self, mark: Any) -> None:
        mark.numpy()

    def accelerator_name(self) -> str:
        return str(self._oneflow.cuda.get_device_name(self._device))

    def settings(self) -> Dict[str, Any]:
        several = self.rank_context.world_size > 1
        settings: Dict[str, Any] = {
            "threads": self.rank_context.threads,
            "tf32": os.environ["ONEFLOW_EP_CUDA_ENABLE_TF32_EXECUTION"] != "0",
            "onednn": os.environ.get("ONEFLOW_ENABLE_ONEDNN_OPTS", "default"),
            "memory_format": "channels_last" if self._channels_last else "channels_first",
            "amp_dtype": None if self._amp is None else str(self._amp).replace("oneflow.", ""),
        }
        if self._graph_mode:
            settings["graph"] = self._graphs.OPTIONS
            settings["dropout_has_seeds"] = self._graphs.dropout_has_seeds(self._graph)
        if several:
            settings["data_parallel"] = "global tensors" if self._graph_mode else "DDP"
        if self.trains:
            settings["fused_optimizer"] = self._optimizer.param_groups[0]["fused"]
            settings["grad_scaler"] = self._graph_mode and self._amp == self._oneflow.float16
        return settings

    def state(self) -> Dict[str, Variable]:
        kernels = CONVOLUTION_OHWI if self._channels_last else CONVOLUTION_OIHW
        return state_of_modules(self._model, self._oneflow.nn.Linear, kernels)

    def to_numpy(self, tensor: Any) -> Any:
        return self._data_parallel.local(tensor.detach()).float().numpy()

    def assign(self, arrays: Dict[str, Any]) -> None:
        with self._oneflow.no_grad():
            for name, variable in self.state().items():
                local = self._data_parallel.local(variable.tensor)
                local.copy_(self._oneflow.tensor(arrays[name], device=local.device))

    def raw_gradients(self) -> Dict[str, Any]:
        if self._graph_mode:
            gradients = self._compiled(self._graphs.Gradients)(self._batch)
        else:
            self._differentiate()
            gradients = [parameter.grad for parameter in self._model.parameters()]
        return {name: g for (name, _), g in zip(self._model.named_parameters(), gradients)}

    def logits(self) -> Sequence[Any]:
        if self._graph_mode:
            return self._compiled(self._graphs.Forward)(self._batch)
        with self._oneflow.no_grad():
            return self._forward(self._model)

    def matmuls(self, forward_only: bool) -> List[ExecutedMatmul]:
        if self._graph_mode:
            graph = self._compiled(self._graphs.Forward) if forward_only else self._graph
            return self._matmuls.compiled(graph, self.rank_context.world_size)
        forward = self._model.forward  # without the hooks of DistributedDataParallel
        return self._matmuls.watched(self._model, lambda: self._forward(forward))

    def compiled(self) -> Dict[str, Any]:
        return self._graphs.proof(self._graph)

    def gradient_messages(self) -> List[int]:
        if self._graph_mode:
            raise Unsupported("nn.Graph does not tell in which messages gradients go")
        return self._data_parallel.bucket_bytes(self._model)

    def step_parts(self) -> List[StepPart]:
        several = self.rank_context.world_size > 1
        if self._graph_mode:
            forward, gradients = map(self._compiled, (self._graphs.Forward, self._graphs.Gradients))
            programs = {
                "forward": lambda: forward(self._batch),
                "backward+all_reduce" if several else "backward": lambda: gradients(self._batch),
            }
            return program_parts(programs, self._step)
        # Buckets that were reduced once are not reduced again before DistributedDataParallel's
        # next forward pass: gradients of passes without it stay this rank's.
        return eager_parts(
            forward=self._evaluate_alone,
            backward=self._steps.backward,
            averaged=self._differentiate if several else None,
            update=self._update,
        )

    def primitives(self) -> Primitives:
        from . import micro

        dtype = self._amp or self._oneflow.float32
        return micro.Primitives(self.rank_context, self._device, dtype)
