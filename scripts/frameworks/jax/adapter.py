"""JAX, set up as its documentation recommends: pure functions under ``jax.jit``, the state donated
to the step, Optax, bfloat16 activations over float32 parameters for mixed precision, one process
per device and ``jax.shard_map`` over them."""

from __future__ import annotations

import contextlib
import functools
from dataclasses import replace
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence

import jax
import numpy as np
from core.parallelism import DATA
from harness.adapter import (
    Accumulation,
    Generation,
    OwnModels,
    Variable,
    is_mixed,
    micro_batches,
    zeros,
)
from harness.adapter.layout import own_layout
from harness.capabilities import CommonCapabilities, Sharded, load_arrays, save_arrays
from harness.loader import Loading
from harness.primitives import Primitives

from . import devices, micro, sharded, steps
from .models.layers import SHARING


class JaxAdapter(Generation, Accumulation, OwnModels, CommonCapabilities, Loading, Sharded):
    MODULE = "jax"
    GENERATES_WITH = ("none", "jit")
    OUT_OF_MEMORY = ("RESOURCE_EXHAUSTED",)

    def start(self) -> None:
        devices.configure(self.rank_context, self.case.precision)
        several = self.rank_context.world_size > 1
        if several:
            devices.join(self.rank_context)
        self._device = devices.take(self.rank_context)
        self._ranks: Any = devices.Ranks() if several else None
        forms = devices.forms_of(self.case, "own" in self.model_config)
        self._dtype = devices.compute_dtype(self.case.precision, self._device, forms)
        self._shared: Any = ()
        self._own: Any = ()
        self._drawn = 0  # number of draws of dropout masks outside of steps
        self._latest: Any = ()  # result of the step that may still be running
        self._definition: Any = self.definition()
        self._sharding: Any = None
        if self.case.parallelism != DATA:
            self._sharding = sharded.Sharding(self.case, self._definition)
            self._definition.hyper = {**self._definition.hyper, SHARING: self._sharding}

    def build(self, batch: Dict[str, Any]) -> None:
        definition = self._definition
        compile_it = self.case.compiler == "jit"
        own_model = "own" in self.model_config
        batch = definition.batch(batch) if own_model else batch
        arrays = self._sharding or sharded.Arrangement(self._device, self._ranks)
        if self._ranks and not self._sharding and self.trains and compile_it:
            arrays = sharded.Together(self._ranks.mesh)
        self._arrays = arrays
        # a program over all ranks draws the masks of all ranks from one key
        rank_context = replace(self.rank_context, rank=0) if self._sharding else self.rank_context
        key = np.asarray(jax.random.PRNGKey(rank_context.dropout_seed))
        # the same in every rank; a user's model has its statistics only after its parameters
        drawn = definition.parameters(np.random.default_rng(rank_context.seed))
        parameters = {
            name: own_layout(array, Variable(array, heads=arrays.heads(name)))
            for name, array in self._stored(drawn).items()
        }
        self._own = arrays.own(steps.Own(definition.statistics(), key))
        self.feed(batch)
        forward = arrays.gathering(steps.forward(definition, self._dtype, self.trains))
        self._logits: Any = lambda *given: forward(*given)[0]
        self._compiled_logits: Any = None
        self._compiled_gradients: Any = None
        if not self.trains:
            self._shared = steps.Shared(arrays.share(parameters), ())
            self._observed = self._logits
            self._step = self._ready(self._logits, self._shared.parameters, devices.OWN)
            self._proved = self._step
            return
        optimizer = definition.optimizer() if own_model else steps.optimizer_of(self.model_config)
        shared = arrays.share(parameters)
        self._shared = steps.Shared(shared, arrays.moments(optimizer.init, parameters, shared))
        self._observed = arrays.sharing(steps.differentiation(forward, definition.loss))
        differentiate = self._observed
        if self.case.accumulation > 1:
            in_loop = self.case.compiler == "jit"
            differentiate = steps.accumulated(self._observed, arrays.vary, in_loop)
        self._differentiate = steps.averaged(differentiate, arrays)
        self._step = self._ready(
            steps.training(self._differentiate, optimizer),
            self._shared,
            (devices.SHARED, devices.OWN, devices.OWN),
            donated=(0, 1),
            batch=self._step_batch,
        )
        self._proved = self._step

    def feed(self, batch: Dict[str, Any]) -> None:
        parts = micro_batches(_narrow(batch), self.case.accumulation)
        self._batch = self._step_batch = self._arrays.batch(parts[0])
        if len(parts) > 1:
            self._step_batch = self._arrays.batch(sharded.stack_parts(parts), is_stacked=True)

    def set_learning_rate(self, rate: float) -> None:
        # with sharding, `share` is for parameters; each rank has everything else whole
        common = self._sharding.own if self._sharding else self._arrays.share
        moments = self._shared.moments
        moments = steps.with_rate(moments, common(steps.Rate(np.float32(rate))))
        self._shared = self._shared._replace(moments=moments)

    def save_training(self, path: str) -> None:
        state = devices.local((self._shared, self._own))  # each rank keeps its own part
        save_arrays(path, [np.asarray(leaf) for leaf in jax.tree.leaves(state)])

    def load_training(self, path: str) -> None:
        leaves, tree = jax.tree.flatten((self._shared, self._own))
        restored = map(devices.like, leaves, load_arrays(path, len(leaves)))
        self._shared, self._own = jax.tree.unflatten(tree, restored)

    def _stored(self, parameters: Dict[str, Any]) -> Dict[str, Any]:
        """Convert parameters to the dtype in which the precision stores them."""
        if self.case.precision in ("fp32", "tf32") or is_mixed(self.case.precision):
            return parameters
        return {name: array.astype(self._dtype) for name, array in parameters.items()}

    def _ready(
        self, function: Any, first: Any, results: Any, donated: Any = (), batch: Any = None
    ) -> Any:
        """Return ``function(first, own, batch)`` as the case's compiler runs it, by default for the
        first micro-batch."""
        if self.case.compiler == "none":
            return function
        arrays, arguments = self._arrays, (first, self._own, batch or self._batch)
        whole, shardings = arrays.whole(function, results), arrays.results(function, arguments)
        return steps.compiled(whole, arguments, donated, arrays.options, shardings)

    def step(self) -> Any:
        if self.case.mode == "train":
            self._shared, self._own, self._latest = self._step(
                self._shared, self._own, self._step_batch
            )
        else:
            self._latest = self._step(self._shared.parameters, self._own, self._batch)
        return self._latest

    def read(self, handle: Any) -> float:
        return super().read(jax.tree.leaves(handle))

    def synchronize(self) -> None:
        jax.block_until_ready((self._shared, self._own, self._latest))

    def mark(self, handle: Any) -> Any:
        # A program returns all results at once, and the state is donated to the next step. Without
        # a compiler the loss is complete first, and the last updated parameter last.
        if self.case.mode == "inference" or self.case.compiler == "jit":
            return handle
        return handle, list(self._shared.parameters.values())[-1]

    def wait(self, mark: Any) -> None:
        jax.block_until_ready(mark)

    def accelerator_name(self) -> str:
        return str(self._device.device_kind)

    def settings(self) -> Dict[str, Any]:
        settings = devices.settings(self._device, bool(self._ranks))
        settings["amp_dtype"] = self._dtype.__name__ if is_mixed(self.case.precision) else None
        settings["compiler_options"] = self._arrays.options
        if self.trains:
            settings["state_donated"] = self.case.compiler == "jit"
            settings["sharded"] = self._sharding.settings if self._sharding else None
        return settings

    def state(self) -> Dict[str, Variable]:
        statistics, heads = devices.local(self._own.statistics), self._arrays.heads
        return {
            **{n: Variable(a, heads=heads(n)) for n, a in self._shared.parameters.items()},
            **{n: Variable(a, trainable=False) for n, a in statistics.items()},
        }

    def to_numpy(self, tensor: Any) -> Any:
        if self._sharding and not tensor.is_fully_replicated:
            tensor = self._sharding.gather(tensor)
        # copied, because the memory is donated to the next step, which would change a view
        array = np.array(devices.local(tensor))
        return array.astype(np.float32) if array.dtype.itemsize < 4 else array

    def assign(self, arrays: Dict[str, Any]) -> None:
        parameters = self._stored({name: arrays[name] for name in self._shared.parameters})
        statistics = {name: arrays[name] for name in self._own.statistics}
        self._shared = self._shared._replace(parameters=self._arrays.share(parameters))
        self._own = self._own._replace(statistics=self._arrays.own(statistics))

    def raw_gradients(self) -> Dict[str, Any]:
        parameters, batch = self._shared.parameters, self._step_batch
        if self._compiled_gradients is None:
            results = (devices.OWN, devices.SHARED)
            self._compiled_gradients = self._ready(
                lambda *given: self._differentiate(*given)[1:], parameters, results, batch=batch
            )
        own, gradients = self._compiled_gradients(parameters, self._own, batch)
        self._own = self._own._replace(key=own.key)  # the next gradients need other masks
        return dict(gradients)

    def logits(self) -> Sequence[Any]:
        if self.case.mode == "inference":
            return tuple(self.step())
        parameters, state, batch = self._local_arguments()
        self._drawn += 1
        masks = state._replace(key=jax.random.fold_in(state.key, self._drawn))  # new masks
        arguments = (parameters, masks, batch)
        if self.case.compiler == "jit" and self._compiled_logits is None:
            shardings = self._sharding.output_sharding if self._sharding else None
            compiled = steps.compiled(self._logits, arguments, shardings=shardings)
            self._compiled_logits = compiled
        outputs = (self._compiled_logits or self._logits)(*arguments)
        return tuple(map(devices.local, outputs))

    def matmul_dtypes(self) -> Dict[str, int]:
        return steps.operations(self._observed, self._local_arguments()).matmuls

    def held_parameters(self) -> int:
        return sum(part.size for part in devices.local(self._shared.parameters).values())

    def collective_counts(self) -> Dict[str, int]:
        return dict(steps.collectives(self._step))

    def _local_arguments(self) -> Any:
        """Return this rank's arguments of a step, or all ranks' arguments for a sharded model."""
        arguments = self._shared.parameters, self._own, self._batch
        return arguments if self._sharding else devices.local(arguments)

    @contextlib.contextmanager
    def in_float64(self) -> Iterator[JaxAdapter]:
        with jax.enable_x64(True):
            alone = self.alone_in_float64()
            alone._dtype, alone._ranks = jax.numpy.float64, None
            yield alone

    def result_dtypes(self) -> Dict[str, int]:
        return steps.operations(self._logits, self._local_arguments()).results

    def multiply_adds(self) -> int:
        return steps.operations(self._logits, self._local_arguments()).multiply_adds

    def compiled(self) -> Dict[str, Any]:
        return dict(steps.proof(self._proved))

    def all_reduce(self, value: float) -> float:
        return float(self._ranks.total(value)) if self._ranks else value  # summed in float64

    def gradient_messages(self) -> List[int]:
        if self.case.compiler == "none":
            program = self._ranks.averaging(self._shared.parameters)
        else:
            program = self._step
        return list(steps.all_reduced_bytes(program))

    def gradient_all_reduce(self, messages: Sequence[int]) -> Callable[[], Any]:
        arrays = [jax.device_put(zeros(size), self._device) for size in messages]
        together = self._ranks.summing(arrays)  # one program, like a step

        def run() -> None:
            self._latest = together()

        return run

    def make_cache(self, new_tokens: int) -> None:
        generator = self.to_generate_with(self._definition, "Generator")
        self._generator = generator(
            self._definition.hyper,
            self._dtype,
            self._shared.parameters,
            self._batch["token_ids"],
            new_tokens,
            self.case.compiler == "jit",
        )
        self._proved = self._generator.decoding

    def _pass(self, run: Callable[..., Any], *tokens: Any) -> Any:
        self._latest = run(*tokens)
        return self._latest

    def primitives(self) -> Primitives:
        arguments = (self.rank_context, self._device, self._dtype, self._ranks)
        # synchronize() waits for the latest result
        return micro.Primitives(*arguments, functools.partial(setattr, self, "_latest"))

    # JAX cannot reset a peak: it reports the peak since the process started.
    def peak_device_memory(self) -> Optional[int]:
        stats = self._device.memory_stats()  # None on a CPU
        return int(stats["peak_bytes_in_use"]) if stats else None

    def stop(self) -> None:
        if self._ranks:
            jax.distributed.shutdown()


def _narrow(batch: Dict[str, Any]) -> Dict[str, Any]:
    """Return copies with integers of 32 bits, which JAX would otherwise narrow with a warning. On a
    CPU, JAX may use the memory of a given array, so every array is copied."""
    return {
        name: array.astype("int32" if array.dtype.kind == "i" else array.dtype)
        for name, array in batch.items()
    }
