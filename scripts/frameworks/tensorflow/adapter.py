"""TensorFlow 2, set up as its guides recommend: Keras models, a custom loop around one
``tf.function``, Keras's mixed precision, MultiWorkerMirroredStrategy with one worker for each
device, XLA by ``jit_compile``."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Dict, Iterator, List, Optional, Sequence

# TensorFlow reads these variables when it is imported.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
# Size of the driver's cache of code compiled from PTX; the default is too small for all the code.
os.environ.setdefault("CUDA_CACHE_MAXSIZE", str(2**32))
if sys.prefix != sys.base_prefix:  # the cache is in the virtual environment and is deleted with it
    os.environ.setdefault("CUDA_CACHE_PATH", os.path.join(sys.prefix, "cuda-cache"))
import tensorflow as tf
from harness.adapter import (
    FLOAT64,
    Accumulation,
    Generation,
    Mismatch,
    OwnModels,
    Variable,
    micro_batches,
)
from harness.capabilities import CommonCapabilities
from harness.loader import Loading
from harness.primitives import Primitives

from . import devices, micro, steps

tf.get_logger().setLevel("ERROR")

# Shared endings of weights by the end of Keras's path, such as ``layer1.0.conv1/kernel``; the names
# of the layers precede it. The layer `decoder_bias` is named for its only weight.
ENDINGS = {
    "kernel": ".weight",
    "embeddings": ".weight",
    "bias": ".bias",
    "gamma": ".weight",
    "scale": ".weight",
    "beta": ".bias",
    "moving_mean": ".running_mean",
    "moving_variance": ".running_var",
    "value": "",
}


class TensorFlowAdapter(Generation, Accumulation, OwnModels, CommonCapabilities, Loading):
    MODULE = "tensorflow"
    GENERATES_WITH = ("none", "xla")
    OUT_OF_MEMORY = ("RESOURCE_EXHAUSTED", "ResourceExhaustedError")

    def start(self) -> None:
        tf.config.threading.set_intra_op_parallelism_threads(self.rank_context.threads)
        # Concurrent operations, each with the threads above, would oversubscribe the cores.
        tf.config.threading.set_inter_op_parallelism_threads(1)
        self._gpu = devices.take(self.rank_context)
        devices.set_tf32(self.case.precision == "tf32", self._gpu)
        self._policy = devices.policy(self.case.precision, self._gpu)
        tf.keras.mixed_precision.set_global_policy(self._policy)
        self._strategy = devices.join(self.rank_context)
        # The full name: with several ranks, "GPU:0" is the first GPU of each of them.
        self._device_name = tf.constant(0.0).device
        self._sum = steps.sum_over_ranks(self._strategy)
        self._definition: Any = self.definition()
        self._thread = ThreadPoolExecutor(1)  # waits for results while the next step is enqueued

    def build(self, batch: Dict[str, Any]) -> None:
        definition = self._definition
        xla = self.case.compiler == "xla"
        batch = definition.batch(batch) if "own" in self.model_config else batch
        self.feed(batch)
        tf.keras.utils.set_random_seed(self.rank_context.seed)
        with self._strategy.scope():  # variables of all ranks get the initial values of rank 0
            self._model = definition.build()
            if self.trains:
                self._optimizer = self._make_optimizer()
        # other dropout masks in each rank: the scope gave all random generators the state of rank 0
        for variable in self._model.non_trainable_variables:
            if variable.path.endswith("seed_generator_state"):
                seed, counter = variable.numpy()
                variable.assign([seed + self.rank_context.rank, counter])
        self._forward = steps.forward(definition, self._model, self.trains, xla)
        function = self._forward
        if self.trains:
            optimizer, strategy, count = self._optimizer, self._strategy, self.case.accumulation
            self._training = steps.training(
                definition, self._model, optimizer, strategy, count, xla
            )
            function = self._training.step
        # Traced here, once: the step is that graph and is never traced again. Other functions are
        # traced only if they are called.
        self._step = function.get_concrete_function(self._step_batch)
        self._proved = self._step

    def feed(self, batch: Dict[str, Any]) -> None:
        count = self.case.accumulation
        tensors = {name: tf.constant(array) for name, array in batch.items()}
        self._batch, self._step_batch = micro_batches(tensors, count)[0], tensors
        if count > 1:  # micro-batches are stacked along a first axis
            self._step_batch = {
                name: tf.reshape(tensor, (count, -1, *tensor.shape[1:]))
                for name, tensor in tensors.items()
            }

    def set_learning_rate(self, rate: float) -> None:
        # a variable that the traced step reads; the loss-scaling optimizer has no rate itself
        self._inner_optimizer.learning_rate = rate

    def _checkpoint(self) -> Any:
        # includes the states of dropout's random numbers
        variables = [*self._model.variables, *self._optimizer.variables]
        return tf.train.Checkpoint(variables=[variable.value for variable in variables])

    def save_training(self, path: str) -> None:
        self._checkpoint().write(os.path.join(path, "training"))

    def load_training(self, path: str) -> None:
        self._checkpoint().read(os.path.join(path, "training")).assert_consumed()

    def _make_optimizer(self) -> Any:
        if "own" in self.model_config:
            optimizer = self._definition.optimizer()
        else:
            optimizer = steps.optimizer_of(self.model_config, self._name)
        self._inner_optimizer = optimizer
        if self._policy == "mixed_float16":  # bfloat16 has float32's range: no loss scale
            optimizer = tf.keras.mixed_precision.LossScaleOptimizer(optimizer)
        optimizer.build(self._model.trainable_variables)
        return optimizer

    def step(self) -> Any:
        return self._step(self._step_batch)

    def read(self, handle: Any) -> float:
        return super().read(tf.nest.flatten(handle))

    def synchronize(self) -> None:
        # test.experimental.sync_devices() would wait for the devices of all ranks.
        if self._gpu:
            with tf.device(self._device_name):
                tf.raw_ops.SyncDevice()

    def blocking(self) -> bool:
        return self._gpu is None  # on the CPU, a function returns when its work is complete

    def mark(self, handle: Any) -> Any:
        if self._gpu is None:
            return handle
        # TensorFlow has no events. A copy to the host waits for the work enqueued before it. So a
        # thread copies one number after the step's work, before the next step is enqueued.
        tensor = tf.reshape(tf.nest.flatten(handle)[0], [-1])[:1]
        begun = threading.Event()

        def copy() -> Any:
            begun.set()
            return tensor.numpy()

        copied = self._thread.submit(copy)
        begun.wait()
        return copied

    def wait(self, mark: Any) -> None:
        mark.result()

    def accelerator_name(self) -> str:
        return str(devices.capability_and_name(self._gpu)[1])

    def settings(self) -> Dict[str, Any]:
        config = tf.config
        several = self.rank_context.world_size > 1
        settings: Dict[str, Any] = {
            "intra_op_threads": config.threading.get_intra_op_parallelism_threads(),
            "inter_op_threads": config.threading.get_inter_op_parallelism_threads(),
            "keras": tf.keras.__version__,
            "policy": self._policy,
            "amp_dtype": self._policy[len("mixed_") :] if "mixed_" in self._policy else None,
            "tf32": config.experimental.tensor_float_32_execution_enabled(),
            "data_format": tf.keras.config.image_data_format(),
            "onednn_built_in": devices.onednn_built_in(),
            "onednn": os.environ.get("TF_ENABLE_ONEDNN_OPTS", "default"),
            "strategy": type(self._strategy).__name__ if several else None,
            "collective": devices.collective(self.rank_context).name if several else None,
        }
        if self._gpu:
            settings["kernels"] = devices.kernels(self._gpu)
        if self.trains:
            settings["fused_optimizer"] = not isinstance(self._inner_optimizer, steps.Lamb)
            settings["loss_scaling"] = self._optimizer is not self._inner_optimizer
        return settings

    def state(self) -> Dict[str, Variable]:
        # includes running statistics, but not the state of dropout
        return {self._name(w): Variable(w, trainable=w.trainable) for w in self._model.weights}

    def _name(self, weight: Any) -> str:
        if "own" in self.model_config:
            return str(self._definition.name(weight))
        layers, _, ending = weight.path.rpartition("/")
        return str(layers.replace("/", ".") + ENDINGS[ending])

    def to_numpy(self, tensor: Any) -> Any:
        array = tensor.numpy()
        return array.astype("float32") if array.dtype.itemsize < 4 else array

    def assign(self, arrays: Dict[str, Any]) -> None:
        for name, variable in self.state().items():
            variable.tensor.assign(arrays[name])

    def raw_gradients(self) -> Dict[str, Any]:
        names = map(self._name, self._model.trainable_variables)
        gradients = self._training.gradients(self._step_batch)
        finite = tf.math.is_finite
        while self.loss_scale() > 1 and not all(finite(g).numpy().all() for g in gradients):
            # as the optimizer does after a step without an update
            self._optimizer.dynamic_scale.assign(self.loss_scale() / 2)
            gradients = self._training.gradients(self._step_batch)
        return dict(zip(names, gradients))

    def loss_scale(self) -> float:
        scaled = self._policy == "mixed_float16"
        return float(self._optimizer.dynamic_scale.numpy()) if scaled else 1.0

    def logits(self) -> Sequence[Any]:
        return tf.nest.flatten(self._forward(self._batch))

    def matmul_dtypes(self) -> Dict[str, int]:
        return steps.matmul_dtypes(self._step)

    @contextlib.contextmanager
    def in_float64(self) -> Iterator[TensorFlowAdapter]:
        alone = self.alone_in_float64()
        alone._policy, alone._strategy = FLOAT64, tf.distribute.get_strategy()
        yield alone

    def result_dtypes(self) -> Dict[str, int]:
        return steps.result_dtypes(self._forward.get_concrete_function(self._batch))

    def multiply_adds(self) -> Optional[int]:
        return steps.multiply_adds(self._forward.get_concrete_function(self._batch))

    def compiled(self) -> Dict[str, Any]:
        functions = steps.xla_functions(self._proved)
        if functions == 0:
            raise Mismatch("the step's graph has no function that XLA must compile")
        return {"xla_functions": functions}

    def all_reduce(self, value: float) -> float:
        return float(self._sum(tf.constant(value, tf.float64)).numpy())

    def gradient_messages(self) -> List[int]:
        return steps.collective_bytes(self._step)

    def matmul_result(self, left: Any, right: Any) -> Any:
        convolve = functools.partial(tf.nn.conv2d, strides=1, padding="VALID")
        matmul = tf.matmul if left.ndim == 2 else convolve
        run = steps.traced(matmul, self.case.compiler == "xla")
        return run(tf.constant(left), tf.constant(right)).numpy()

    def make_cache(self, new_tokens: int) -> None:
        generator = self.to_generate_with(self._definition, "Generator")
        prompts, xla = self._definition.inputs(self._batch), self.case.compiler == "xla"
        self._generator = generator(self._model, self._definition.hyper, prompts, new_tokens, xla)
        self._proved = self._generator.over_one

    def primitives(self) -> Primitives:
        dtype = str(tf.keras.mixed_precision.global_policy().compute_dtype)
        return micro.Primitives(self.rank_context, self._device_name, dtype, self._strategy)

    def reset_peak_device_memory(self) -> None:
        if self._gpu:
            tf.config.experimental.reset_memory_stats(self._device_name)

    def peak_device_memory(self) -> Optional[int]:
        if not self._gpu:
            return None
        return int(tf.config.experimental.get_memory_info(self._device_name)["peak"])
