"""JAX as its documentation says: pure functions under ``jax.jit``, the state donated to the step,
Optax, bfloat16 activations over float32 parameters for mixed precision, one process per device and
``jax.shard_map`` over them."""

from __future__ import annotations

import importlib
from typing import Any, Dict, List, Optional

from harness.adapter import Adapter, Exchange, Product
from harness.parts import Part, nested

# The words of an error that means memory; JAX raises it as a RuntimeError.
OUT_OF_MEMORY = ("RESOURCE_EXHAUSTED", "out of memory", "bad_alloc", "cannot allocate memory")


class JaxAdapter(Adapter):
    def start(self) -> None:
        import jax

        # all that imports JAX at its top: from here on it is there
        from . import devices, optimizers, parallel, programs, steps, weights

        self._jax: Any = jax
        self._devices, self._optimizers, self._parallel = devices, optimizers, parallel
        self._programs, self._steps, self._weights = programs, steps, weights

        devices.configure(self.place)
        several = self.place.world_size > 1
        if several:
            parallel.join(self.place)
        self._device = devices.take(self.place)
        self._ranks = parallel.Ranks() if several else None
        self._dtype = devices.compute_dtype(self.case.precision, self._device)
        self._shared: Any = ()
        self._own: Any = ()
        self._latest: Any = ()  # the result of the step that is still under way
        # the interface of a model's module is that of resnet50_v1_5.py
        name = self.case.model.replace(".", "_")
        self._definition: Any = importlib.import_module(f".{name}", __package__)

    def build(self, batch: Dict[str, Any]) -> None:
        definition, parallel, steps = self._definition, self._parallel, self._steps
        train, compile_it = self.case.mode == "train", self.case.compiler == "jit"
        self._arrays = arrays = parallel.choose(self._device, self._ranks, train and compile_it)
        parameters, statistics, key = self._weights.initial(definition, self.facts, self.place)
        own = steps.Own(statistics, key)
        self._own, self._batch = arrays.own(own), arrays.own(_narrow(batch))
        hyper = self.facts["hyperparameters"]
        forward = steps.forward(definition, hyper, self._dtype, train)
        self._logits = steps.logits(forward)
        if not train:
            self._shared = steps.Shared(arrays.share(parameters), ())
            self._observed = self._logits
            self._step = self._ready(self._logits, self._shared.parameters, parallel.OWN)
            return
        optimizer = self._optimizers.from_facts(self.facts)
        moments = arrays.share(optimizer.init(parameters))
        self._shared = steps.Shared(arrays.share(parameters), moments)
        self._observed = steps.differentiation(forward, definition.loss)
        self._differentiate = steps.averaged(self._observed, arrays)
        self._step = self._ready(
            steps.training(self._differentiate, optimizer),
            self._shared,
            (parallel.SHARED, parallel.OWN, parallel.OWN),
            donated=(0, 1),
        )

    def _ready(self, function: Any, first: Any, results: Any, donated: Any = ()) -> Any:
        """``function(first, own, batch)`` as the case's compiler has it run."""
        if self.case.compiler == "none":
            return function
        whole = self._arrays.whole(function, results)
        arguments = (first, self._own, self._batch)
        return self._programs.compiled(whole, arguments, donated, self._arrays.options)

    def step(self) -> Any:
        if self.case.mode == "train":
            self._shared, self._own, self._latest = self._step(self._shared, self._own, self._batch)
        else:
            self._latest = self._step(self._shared.parameters, self._own, self._batch)
        return self._latest

    def read(self, handle: Any) -> float:
        arrays = [array.astype("float64") for array in self._weights.copies(handle)]
        return float(sum(array.sum() for array in arrays) / sum(array.size for array in arrays))

    def synchronize(self) -> None:
        self._jax.block_until_ready((self._shared, self._own, self._latest))

    def version(self) -> str:
        return str(self._jax.__version__)

    def device(self) -> str:
        return str(self._devices.name_of(self._device, self.place))

    def settings(self) -> Dict[str, Any]:
        found = self._devices.settings(self._device)
        found["layout"] = "NHWC, HWIO"
        found["amp_dtype"] = self._dtype.__name__ if self.case.precision == "amp" else None
        found["collectives"] = self._parallel.collectives(self._device) if self._ranks else None
        found["compiler_options"] = self._arrays.options
        if self.case.mode == "train":
            found["state_donated"] = self.case.compiler == "jit"
        return found

    def trainable_parameters(self) -> int:
        return sum(array.size for array in self._shared.parameters.values())

    def product_dtypes(self) -> Dict[str, int]:
        return dict(self._programs.product_dtypes(self._trace(self._observed)))

    def _trace(self, function: Any) -> Any:
        """The operations of ``function(parameters, own, batch)`` on this rank's own arrays."""
        return self._programs.trace(function, self._local())

    def _local(self) -> Any:
        return self._parallel.local((self._shared.parameters, self._own, self._batch))

    def compiled(self) -> Dict[str, Any]:
        if self.case.compiler == "none":
            return {}
        return dict(self._programs.proof(self._step))

    def all_reduce(self, value: float) -> float:
        return float(self._ranks.total(value)) if self._ranks else value

    def exchange(self, array: Any) -> Exchange:
        self._latest = self._jax.device_put(array, self._device)

        def run() -> None:
            self._latest = self._ranks.sum(self._latest)

        return Exchange(run, lambda: self._weights.copies([self._latest])[0])

    def weights_checksum(self) -> float:
        arrays = self._weights.copies(self._shared.parameters)
        return float(sum(abs(array.astype("float64")).sum() for array in arrays))

    def load_weights(self, weights: Dict[str, Any]) -> None:
        parameters, statistics = self._weights.divided(
            weights, self._shared.parameters, self._parallel.local(self._own.statistics)
        )
        self._shared = self._shared._replace(parameters=self._arrays.share(parameters))
        self._own = self._own._replace(statistics=self._arrays.own(statistics))

    def weights(self) -> Dict[str, Any]:
        return dict(self._weights.named_copies(self._shared.parameters))

    def gradients(self) -> Dict[str, Any]:
        run = self._ready(
            self._steps.gradients(self._differentiate),
            self._shared.parameters,
            self._parallel.SHARED,
        )
        gradients = run(self._shared.parameters, self._own, self._batch)
        return dict(self._weights.named_copies(gradients))

    def outputs(self) -> List[Any]:
        run, arguments = self._logits, self._local()
        if self.case.compiler == "jit":
            run = self._programs.compiled(run, arguments)
        copies = self._weights.copies(run(*arguments))
        return [logits.astype("float32") for logits in copies]

    def forward_multiply_adds(self) -> int:
        return int(self._programs.multiply_adds(self._trace(self._logits)))

    def parts(self) -> List[Part]:
        steps, shared, own = self._steps, self._parallel.SHARED, self._parallel.OWN
        functions = {
            "forward": (self._logits, own),
            "backward": (steps.gradients(steps.alone(self._observed, self._arrays)), own),
        }
        if self._ranks:
            functions["all_reduce"] = (steps.gradients(self._differentiate), shared)
        found = {name: self._part(*function) for name, function in functions.items()}
        for run in found.values():
            run()
        return nested({**found, "optimizer": self.step})

    def _part(self, function: Any, results: Any) -> Any:
        program = self._ready(function, self._shared.parameters, results)

        def run() -> None:
            self._latest = program(self._shared.parameters, self._own, self._batch)

        return run

    def product(self, left: Any, right: Any) -> Product:
        jax = self._jax
        a, b = (jax.device_put(x.astype(self._dtype), self._device) for x in (left, right))
        run, self._latest = self._programs.compiled(jax.numpy.matmul, (a, b)), b

        def multiply() -> None:
            self._latest = run(a, self._latest)

        return Product(multiply, str(b.dtype))

    # JAX cannot forget a peak: the one it reports is that since the process started.
    def peak_device_memory(self) -> Optional[int]:
        found = self._device.memory_stats()  # None on a CPU
        return int(found["peak_bytes_in_use"]) if found else None

    def out_of_memory(self, error: BaseException) -> bool:
        if not isinstance(error, self._jax.errors.JaxRuntimeError):
            return super().out_of_memory(error)
        message = str(error).lower()
        return any(words.lower() in message for words in OUT_OF_MEMORY)

    def stop(self) -> None:
        if self._ranks:
            self._jax.distributed.shutdown()


def _narrow(batch: Dict[str, Any]) -> Dict[str, Any]:
    """JAX's integers have 32 bits unless told otherwise; converted here, it need not warn."""
    return {
        name: array.astype("int32") if array.dtype.kind == "i" else array
        for name, array in batch.items()
    }
