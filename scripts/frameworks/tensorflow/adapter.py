"""TensorFlow 2 as its guides say: Keras models, a custom loop around one ``tf.function``, Keras's
mixed precision, MultiWorkerMirroredStrategy with one worker for each device, XLA by
``jit_compile``."""

from __future__ import annotations

import importlib
import json
import os
from typing import Any, Dict, List, Optional

from harness.adapter import Adapter, Exchange, Mismatch, Product
from harness.parts import Part, nested

# The words of an error that is not a ResourceExhaustedError but means memory.
OUT_OF_MEMORY = ("RESOURCE_EXHAUSTED", "out of memory", "bad_alloc", "cannot allocate memory")


class TensorFlowAdapter(Adapter):
    def start(self) -> None:
        # TensorFlow reads these when it is imported.
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
        os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
        if self.place.world_size > 1:
            task = {"type": "worker", "index": self.place.rank}
            cluster = {"worker": list(self.place.addresses)}
            os.environ["TF_CONFIG"] = json.dumps({"cluster": cluster, "task": task})
        import tensorflow as tf

        # All that imports TensorFlow at its top: from here on it is there.
        from . import devices, graphs, optimizers, steps, weights

        self._tf: Any = tf
        self._devices, self._graphs, self._optimizers = devices, graphs, optimizers
        self._steps, self._weights = steps, weights
        tf.get_logger().setLevel("ERROR")
        tf.config.threading.set_intra_op_parallelism_threads(self.place.threads)
        # Operations that run side by side, each with the threads above, would oversubscribe.
        tf.config.threading.set_inter_op_parallelism_threads(1)
        tf.config.experimental.enable_tensor_float_32_execution(False)
        self._gpu = devices.take(self.place)
        self._policy = devices.policy(self.case.precision, self._gpu)
        tf.keras.mixed_precision.set_global_policy(self._policy)
        self._strategy = devices.join(self.place)
        self._sum = steps.sum_over_ranks(self._strategy)
        # The interface of a model's module is that of resnet50_v1_5.py.
        name = self.case.model.replace(".", "_")
        self._definition: Any = importlib.import_module(f".{name}", __package__)

    def build(self, batch: Dict[str, Any]) -> None:
        tf, definition, steps = self._tf, self._definition, self._steps
        train = self.case.mode == "train"
        xla = self.case.compiler == "xla"
        self._batch = {name: tf.constant(array) for name, array in batch.items()}
        # The full name: with several ranks, "GPU:0" is the first GPU of each of them.
        self._device_name = next(iter(self._batch.values())).device
        tf.keras.utils.set_random_seed(self.place.seed)
        with self._strategy.scope():  # the variables of all ranks start as those of rank 0
            self._model = definition.build(self.facts)
            if train:
                self._optimizer = self._make_optimizer()
        self._draw_other_dropout_masks()
        self._forward = steps.forward(definition, self._model, train, xla)
        function = self._forward
        if train:
            function, self._differentiate, self._differentiate_alone = steps.training(
                definition, self._model, self._optimizer, self._strategy, xla
            )
        # Traced here, once: the step is that graph and nothing can make it trace again. The other
        # functions are not traced unless they are called.
        self._step = function.get_concrete_function(self._batch)

    def _make_optimizer(self) -> Any:
        optimizer = self._optimizers.from_facts(self.facts)
        if self._policy == "mixed_float16":  # bfloat16 has the range of float32
            optimizer = self._tf.keras.mixed_precision.LossScaleOptimizer(optimizer)
        optimizer.build(self._model.trainable_variables)
        return optimizer

    def _draw_other_dropout_masks(self) -> None:
        """The scope gave the random generators of all ranks the state of rank 0."""
        for variable in self._model.non_trainable_variables:
            if variable.path.endswith("seed_generator_state"):
                seed, counter = variable.numpy()
                variable.assign([seed + self.place.rank, counter])

    def step(self) -> Any:
        return self._step(self._batch)

    def read(self, handle: Any) -> float:
        arrays = [tensor.numpy().astype("float64") for tensor in self._tf.nest.flatten(handle)]
        return float(sum(array.sum() for array in arrays) / sum(array.size for array in arrays))

    def synchronize(self) -> None:
        # On the CPU a function returns when it is complete. Not test.experimental.sync_devices(),
        # which waits for the devices of all ranks.
        if self._gpu:
            with self._tf.device(self._device_name):
                self._tf.raw_ops.SyncDevice()

    def version(self) -> str:
        return str(self._tf.__version__)

    def device(self) -> str:
        if not self._gpu:
            return "cpu"
        return f"cuda:{self.place.local_rank} {self._devices.capability_and_name(self._gpu)[1]}"

    def settings(self) -> Dict[str, Any]:
        config = self._tf.config
        several = self.place.world_size > 1
        found: Dict[str, Any] = {
            "intra_op_threads": config.threading.get_intra_op_parallelism_threads(),
            "inter_op_threads": config.threading.get_inter_op_parallelism_threads(),
            "keras": self._tf.keras.__version__,
            "policy": self._policy,
            "amp_dtype": self._policy[len("mixed_") :] if self.case.precision == "amp" else None,
            "tf32": config.experimental.tensor_float_32_execution_enabled(),
            "data_format": self._tf.keras.config.image_data_format(),
            "onednn_built_in": self._devices.onednn_built_in(),
            "onednn": os.environ.get("TF_ENABLE_ONEDNN_OPTS", "default"),
            "strategy": type(self._strategy).__name__ if several else None,
            "collective": self._devices.collective(self.place).name if several else None,
        }
        if self.case.compiler == "xla":
            train_together = several and self.case.mode == "train"
            found["xla_scope"] = "forward and backward pass" if train_together else "step"
        if self.case.mode == "train":
            found["fused_optimizer"] = True
            found["loss_scaling"] = self._policy == "mixed_float16"
        return found

    def trainable_parameters(self) -> int:
        return sum(variable.shape.num_elements() for variable in self._model.trainable_variables)

    def product_dtypes(self) -> Dict[str, int]:
        return self._graphs.product_dtypes(self._step)

    def compiled(self) -> Dict[str, Any]:
        if self.case.compiler == "none":
            return {}
        functions = self._graphs.xla_functions(self._step)
        if functions == 0:
            raise Mismatch("the step's graph has no function that XLA must compile")
        return {"xla_functions": functions}

    def all_reduce(self, value: float) -> float:
        return float(self._sum(self._tf.constant(value, self._tf.float64)).numpy())

    def exchange(self, array: Any) -> Exchange:
        held = [self._tf.constant(array)]

        def run() -> None:
            held[0] = self._sum(held[0])

        return Exchange(run, lambda: held[0].numpy())

    def weights_checksum(self) -> float:
        arrays = (variable.numpy() for variable in self._model.trainable_variables)
        return float(sum(abs(array.astype("float64")).sum() for array in arrays))

    def load_weights(self, weights: Dict[str, Any]) -> None:
        self._weights.load(self._model, weights)

    def weights(self) -> Dict[str, Any]:
        return self._weights.arrays(self._model)

    def gradients(self) -> Dict[str, Any]:
        scale = 1.0
        if self._policy == "mixed_float16":
            scale = float(self._optimizer.dynamic_scale.numpy())
        return self._weights.gradients(self._model, self._differentiate(self._batch), scale)

    def outputs(self) -> List[Any]:
        return [logits.numpy() for logits in self._tf.nest.flatten(self._forward(self._batch))]

    def forward_multiply_adds(self) -> int:
        return self._graphs.multiply_adds(self._forward.get_concrete_function(self._batch))

    def parts(self) -> List[Part]:
        functions = {"forward": self._forward, "backward": self._differentiate_alone}
        if self.place.world_size > 1:
            functions["all_reduce"] = self._differentiate
        programs = [function.get_concrete_function(self._batch) for function in functions.values()]
        for program in programs:
            program(self._batch)
        runs = (lambda program=program: program(self._batch) for program in programs)
        return nested({**dict(zip(functions, runs)), "optimizer": self.step})

    def product(self, left: Any, right: Any) -> Product:
        tf = self._tf
        dtype = tf.keras.mixed_precision.global_policy().compute_dtype
        a, b = (tf.cast(tf.constant(array), dtype) for array in (left, right))
        self._device_name = b.device
        run = self._steps.traced(tf.matmul).get_concrete_function(a, b)

        def multiply() -> None:
            nonlocal b
            b = run(a, b)

        return Product(multiply, b.dtype.name)

    def reset_peak_device_memory(self) -> None:
        if self._gpu:
            self._tf.config.experimental.reset_memory_stats(self._device_name)

    def peak_device_memory(self) -> Optional[int]:
        if not self._gpu:
            return None
        return int(self._tf.config.experimental.get_memory_info(self._device_name)["peak"])

    def out_of_memory(self, error: BaseException) -> bool:
        if isinstance(error, (MemoryError, self._tf.errors.ResourceExhaustedError)):
            return True
        message = str(error).lower()
        return any(words.lower() in message for words in OUT_OF_MEMORY)
