"""PyTorch, set up as its performance tuning guide recommends: channels_last for convolutions, fused
optimizers, autocast for mixed precision, DistributedDataParallel, TorchInductor."""

from __future__ import annotations

import contextlib
from typing import Any, Callable, ContextManager, Dict, Iterator, List, Optional, Sequence, Tuple

import torch
from core.parallelism import DATA
from harness.adapter import (
    FLOAT64,
    Accumulation,
    EagerTraining,
    Generation,
    MicroBatch,
    Mismatch,
    OwnModels,
    Unsupported,
    Variable,
    is_mixed,
    micro_batches,
    state_of_modules,
    zeros,
)
from harness.capabilities import CommonCapabilities, PairTransfers, Sharded, Transfers
from harness.loader import Loading
from harness.operations import Operation
from harness.primitives import Primitives

from . import devices, micro, steps

Outputs = Tuple[torch.Tensor, ...]


class PyTorchAdapter(
    Generation,
    EagerTraining,
    Accumulation,
    OwnModels,
    CommonCapabilities,
    Transfers,
    PairTransfers,
    Sharded,
    Loading,
):
    MODULE = "torch"
    OUT_OF_MEMORY = ("can't allocate memory", "not enough memory", "OutOfMemoryError")

    def start(self) -> None:
        torch.set_num_threads(self.rank_context.threads)
        if torch.get_num_interop_threads() != 1:  # a process may set the number only once
            torch.set_num_interop_threads(1)
        self._device = devices.take(self.rank_context)
        self._cuda = self._device.type == "cuda"
        self._copies = devices.Copies(self._device)
        self._in_float8 = self.case.precision in devices.RECIPES
        if self._in_float8:
            devices.require_float8(self.case.precision, self._device)
        self._amp = self._in_float8 or is_mixed(self.case.precision)
        self._dtype = devices.set_precision(self.case.precision, self._device)
        if self.case.compiler != "none":
            steps.require_compiler(
                self.case.compiler, self._device, self.trains, self.case.accumulation
            )
        self._definition: Any = self.definition()
        several = self.rank_context.world_size > 1
        self._process_group = devices.join(self._device, self.rank_context) if several else None
        self._sharding: Any = None
        self._in_stages = self.case.layout.pipeline > 1
        if self.case.parallelism != DATA:
            self._sharding = self._make_sharding()

    def _make_sharding(self) -> Any:
        """Return the sharding of the model over the ranks."""
        case, name = self.case, self.case.parallelism
        if case.compiler != "none":
            raise Unsupported(f"with {name} a step runs without a compiler")
        if self._in_float8:
            raise Unsupported(f"with {name} no layer multiplies in float8")
        if self._amp and self._dtype == torch.float16:
            raise Unsupported(f"with {name} the loss is not scaled, which float16 needs")
        # imported here, because PyTorch takes a second to import their modules
        if self._in_stages:
            from .pipeline import Pipeline

            return Pipeline(case.layout, self._device, case.accumulation)
        from .sharded import Sharding

        return Sharding(case.layout, self._device)

    def build(self, batch: Dict[str, Any]) -> None:
        definition = self._definition
        self.feed(batch)
        torch.manual_seed(self.rank_context.seed)  # the same weights in every rank
        self._model = definition.build().train(self.trains)
        if not self._amp and self._dtype != torch.float32:
            devices.narrow(self._model, self._dtype)
        if self._in_float8:
            devices.convert_to_float8(self._model, self.case.precision, self._dtype)
        if self._sharding:  # make the model on the host, so that no device must hold all of it
            self._sharding.apply(self._model, definition, self.case.sequence_length)
        else:
            self._model.to(self._device)
        # dropout differs between ranks with different samples or layers
        group = self.rank_context.rank // self.case.layout.tensor
        torch.manual_seed(self.rank_context.seed + 1 + group)
        if self.case.compiler != "none":
            steps.compile_module(self._model, self.case.compiler, self._device, self._whole_graph)
        if not self.trains:
            return
        self._wrapped = self._model
        if self._process_group and not self._sharding:
            options = self._data_parallel_options
            self._wrapped = devices.wrap(self._model, self._device, options)
        if "own" in self.model_config:
            self._optimizer = definition.optimizer(self._model)
        else:
            self._optimizer = steps.optimizer_of(self._model, self.model_config)
        # bfloat16 has the range of float32. Only float16 needs loss scaling, and only where the
        # parameters, for which gradients are unscaled, have a wider range.
        scaled = self._amp and self._dtype == torch.float16
        self._scaler = torch.amp.GradScaler(self._device.type, enabled=scaled)
        self._clip = steps.clipping(self._model, self._sharding, self.model_config)
        if self._in_stages:
            self._sharding.prepare(self._micro_batches, self._loss_of, self._autocast)

    def feed(self, batch: Dict[str, Any]) -> None:
        self._micro_batches = []
        for part in micro_batches(batch, self.case.accumulation):
            tensors = self._copies(part)
            inputs = self._definition.inputs(tensors)
            if not self._amp and self._dtype != torch.float32:
                inputs = devices.narrow_inputs(inputs, self._dtype)
            self._micro_batches.append(MicroBatch(tensors, inputs))

    def _loss_of(self, outputs: Outputs, batch: MicroBatch) -> Any:
        return self._definition.loss(self._checked(outputs), batch.tensors)

    def clear_gradients(self) -> None:
        self._optimizer.zero_grad(set_to_none=True)

    def loss(self, number: int) -> Any:
        batch = self._micro_batches[number]
        outputs = self._forward(self._wrapped, batch)
        return self.share(self._definition.loss(outputs, batch.tensors))

    def backward(self, loss: Any) -> None:
        # DistributedDataParallel averages gradients in this call
        self._scaler.scale(loss).backward()

    def unsynchronized(self) -> ContextManager[Any]:
        # also around forward passes, as the reference of DistributedDataParallel.no_sync says
        if self._sharding:
            return self._sharding.unsynchronized()
        return self._wrapped.no_sync() if self._process_group else contextlib.nullcontext()

    def differentiate(self) -> Sequence[Any]:
        if self._in_stages:
            self.clear_gradients()
            handle: Sequence[Any] = (self._sharding.differentiate(),)
        else:
            handle = super().differentiate()
        if self._sharding:
            self._sharding.add_up()
        return handle

    def update(self) -> None:
        if self._clip is not None:
            self._scaler.unscale_(self._optimizer)  # clipping uses the norm of unscaled gradients
            self._clip()
        self._scaler.step(self._optimizer)
        self._scaler.update()

    def infer(self) -> Outputs:
        with self._without_gradients():
            return self._forward(self._model)

    def _forward(self, model: Any, batch: Optional[MicroBatch] = None) -> Outputs:
        """Return the logits of ``model``, by default for the first micro-batch."""
        with self._autocast():
            outputs = model(*(batch or self._micro_batches[0]).inputs)
        return self._checked(outputs)

    def _checked(self, outputs: Outputs) -> Outputs:
        """Return ``outputs``. Raises :class:`Mismatch` where they have another precision."""
        if "own" in self.model_config:
            flat: Outputs = self._definition.flat(outputs)  # users' models choose their own dtypes
            return flat
        for logits in outputs:
            if logits.dtype != self._dtype:
                raise Mismatch(f"the model's outputs are {logits.dtype}, not {self._dtype}")
        return outputs

    def _autocast(self) -> Any:
        """Return the context of a forward pass, which decides in what precision it computes."""
        if self.case.precision == FLOAT64:
            return devices.Widening()
        dtype = self._dtype if self._amp else None
        return torch.autocast(self._device.type, dtype=dtype, enabled=self._amp)

    def set_learning_rate(self, rate: float) -> None:
        for group in self._optimizer.param_groups:
            group["lr"] = rate * group.get(steps.FACTOR, 1.0)

    def _checkpointed(self) -> Dict[str, Any]:
        """Return the parts of a training whose states a checkpoint holds."""
        return {"model": self._model, "optimizer": self._optimizer, "scaler": self._scaler}

    def save_training(self, path: str) -> None:
        kept = {name: part.state_dict() for name, part in self._checkpointed().items()}
        kept["random"] = torch.get_rng_state()
        if self._cuda:
            kept["random_cuda"] = torch.cuda.get_rng_state(self._device)
        torch.save(kept, path)

    def load_training(self, path: str) -> None:
        kept = torch.load(path, map_location=self._device, weights_only=True)
        for name, part in self._checkpointed().items():
            part.load_state_dict(kept[name])
        torch.set_rng_state(kept["random"].cpu())
        if self._cuda:
            torch.cuda.set_rng_state(kept["random_cuda"].cpu(), self._device)

    def read(self, handle: Outputs) -> float:
        # summed in float64 without a float64 copy, which would count as the step's memory
        total = sum(tensor.sum(dtype=torch.float64) for tensor in handle)
        return total.item() / sum(tensor.numel() for tensor in handle)

    def synchronize(self) -> None:
        if self._cuda:
            torch.cuda.synchronize(self._device)

    def blocking(self) -> bool:
        return not self._cuda  # on the CPU, work is complete when a call returns

    def mark(self, handle: Outputs) -> Any:
        return torch.cuda.current_stream().record_event() if self._cuda else handle

    def wait(self, mark: Any) -> None:
        mark.synchronize()

    def device_seconds(self, run: Callable[[], Any], count: int) -> Optional[float]:
        if not self._cuda:
            return None
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        first.record()
        for _ in range(count):
            run()
        last.record()
        last.synchronize()
        return float(first.elapsed_time(last)) / 1e3

    def accelerator_name(self) -> str:
        return str(torch.cuda.get_device_name(self._device))

    def settings(self) -> Dict[str, Any]:
        settings = devices.settings(self._device)
        settings["memory_format"] = _name(self._definition.MEMORY_FORMAT)
        settings["amp_dtype"] = _name(self._dtype) if self._amp else None
        settings["process_group"] = self._process_group
        if self.trains:
            settings["fused_optimizer"] = self._optimizer.defaults.get("fused")
            settings["grad_scaler"] = self._scaler.is_enabled()
            replicated = self._process_group and not self._sharding
            settings["data_parallel"] = self._data_parallel_options if replicated else None
            settings["sharded"] = self._sharding.settings if self._sharding else None
        return settings

    def state(self) -> Dict[str, Variable]:
        if "own" in self.model_config:
            return self._definition.state(self._model)
        state = state_of_modules(self._model, torch.nn.Linear)
        return self._sharding.shared_state(state) if self._sharding else state

    def to_numpy(self, tensor: Any) -> Any:
        if self._sharding:
            tensor = self._sharding.gather(tensor)
        tensor = tensor.detach().to_dense()  # gradients of embeddings may be sparse
        return devices.real(tensor).float().cpu().numpy()

    def assign(self, arrays: Dict[str, Any]) -> None:
        with torch.no_grad():
            for name, variable in self.state().items():
                array = torch.from_numpy(arrays[name])
                if self._sharding:
                    self._sharding.assign(variable.tensor, array.to(self._device))
                else:
                    variable.tensor.copy_(array)

    def loss_scale(self) -> float:
        return self._scaler.get_scale() if self._scaler.is_enabled() else 1.0

    def logits(self) -> Outputs:
        with torch.set_grad_enabled(self.trains):  # the mode in which the step was compiled
            return self._forward(self._sharding.forward if self._sharding else self._model)

    def _watch(self) -> steps.Watch:
        # forward of the uncompiled model, which runs single matmuls
        eager = (self._sharding or self._model).forward
        return steps.watch(self._model, lambda: self._forward(eager), self._device)

    def matmul_dtypes(self) -> Dict[str, int]:
        return self._watch().matmuls

    def multiply_adds(self) -> Optional[int]:
        return self._watch().multiply_adds

    @contextlib.contextmanager
    def in_float64(self) -> Iterator[PyTorchAdapter]:
        alone = self.alone_in_float64()
        alone._amp, alone._in_float8, alone._process_group = False, False, None
        alone._dtype = torch.float64
        yield alone

    def result_dtypes(self) -> Dict[str, int]:
        return self._watch().results

    def held_parameters(self) -> int:
        from .sharded import held_parameters

        return held_parameters(self._model)

    def collective_counts(self) -> Dict[str, int]:
        return devices.count_collectives(self.step)

    def compiled(self) -> Dict[str, Any]:
        return steps.proof(self.case.compiler, self._whole_graph, self.step)

    def compiled_by_model(self) -> Dict[str, Any]:
        return steps.compiled_by_model()

    def recompilations(self) -> List[str]:
        return steps.recompilations()

    @property
    def _whole_graph(self) -> bool:
        """Return whether a graph break is a failure. In a user's model, graph breaks are counted
        instead."""
        return "own" not in self.model_config

    @property
    def _data_parallel_options(self) -> Dict[str, Any]:
        # Some passes of a user's model may leave out parameters; in our models each parameter has
        # one gradient.
        own = "own" in self.model_config
        # DistributedDataParallel learns a static graph from its first pass, which must average
        # gradients.
        static = not own and self.case.accumulation == 1
        return {**devices.DATA_PARALLEL, "static_graph": static, "find_unused_parameters": own}

    def gradient_messages(self) -> List[int]:
        return devices.bucket_bytes(self._wrapped)

    def gradient_all_reduce(self, messages: Sequence[int]) -> Callable[[], Any]:
        tensors = [torch.from_numpy(zeros(size)).to(self._device) for size in messages]
        return lambda: devices.all_reduce_together(tensors)

    def primitives(self) -> Primitives:
        memory_format = getattr(self._definition, "MEMORY_FORMAT", torch.channels_last)
        arguments = (self.rank_context, self._device, self._dtype)
        return micro.Primitives(*arguments, memory_format, self._in_float8)

    def transfer(self, direction: str, array: Any, pinned: bool) -> Operation:
        return micro.transfer(direction, array, pinned, self._device)

    def transfer_between(self, sender: int, receiver: int, array: Any) -> Operation:
        first, second = (torch.device("cuda", number) for number in (sender, receiver))
        return micro.transfer_between(first, second, array, self._device)

    def make_cache(self, new_tokens: int) -> None:
        generator = self.to_generate_with(self._definition, "Generator")
        (prompts,) = self._micro_batches[0].inputs
        self._generator = generator(self._model, prompts, new_tokens)

    @property
    def _without_gradients(self) -> Any:
        """Return the mode for inference. In inference mode PyTorch passes composite operations to
        wrapper tensors, which torchao's float8 tensors do not support."""
        return torch.no_grad if self._in_float8 else torch.inference_mode

    def _pass(self, run: Callable[..., Any], *tokens: Any) -> Any:
        with self._without_gradients(), self._autocast():
            return run(*(torch.from_numpy(array).to(self._device) for array in tokens))

    def reset_peak_device_memory(self) -> None:
        if self._cuda:
            torch.cuda.reset_peak_memory_stats(self._device)

    def peak_device_memory(self) -> Optional[int]:
        return torch.cuda.max_memory_allocated(self._device) if self._cuda else None

    def stop(self) -> None:
        if torch.distributed.is_initialized():
            # Free the model before its process group; otherwise DistributedDataParallel sometimes
            # waits for ever (2.13).
            self._wrapped = None
            torch.distributed.destroy_process_group()


def _name(torch_constant: Any) -> str:
    return str(torch_constant).replace("torch.", "")
