"""TensorFlow 2: Keras models, a ``tf.function`` step, one worker process for each device."""

from __future__ import annotations

import importlib
import json
import os
from typing import Any, Dict, Optional

from harness.adapter import Adapter, Mismatch, Unsupported

MEMORY_MESSAGES = ("RESOURCE_EXHAUSTED", "out of memory", "bad_alloc", "Cannot allocate memory")


class TensorFlowAdapter(Adapter):
    def start(self) -> None:
        # TensorFlow reads these at its import.
        os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
        os.environ["GRPC_VERBOSITY"] = "ERROR"
        if self.place.world_size > 1:
            os.environ["TF_CONFIG"] = json.dumps(
                {
                    "cluster": {"worker": list(self.place.addresses)},
                    "task": {"type": "worker", "index": self.place.rank},
                }
            )
        import tensorflow

        self.tf: Any = tensorflow
        tf = self.tf
        tf.get_logger().setLevel("ERROR")
        tf.config.threading.set_intra_op_parallelism_threads(self.place.threads)
        tf.config.threading.set_inter_op_parallelism_threads(1)
        self._take_device()
        tf.config.experimental.enable_tensor_float_32_execution(False)
        tf.keras.mixed_precision.set_global_policy(self._policy())
        self.strategy = self._join()
        tf.keras.utils.set_random_seed(self.place.seed)

    def build(self, batch: Dict[str, Any]) -> None:
        tf = self.tf
        from . import graphs, optimizers, steps

        self.graphs = graphs
        name = self.case.model.replace(".", "_")
        self.definition = importlib.import_module(f".{name}", __package__)
        self.batch = {key: tf.constant(value) for key, value in batch.items()}
        self.training = self.case.mode == "train"
        xla = self.case.compiler == "xla"
        # Variables made in the scope start from the values of rank 0.
        with self.strategy.scope():
            self.model = self.definition.build(self.facts)
            optimizer = optimizers.from_facts(self.facts)
            if self._policy() == "mixed_float16":
                optimizer = tf.keras.mixed_precision.LossScaleOptimizer(optimizer)
            if self.training:
                optimizer.build(self.model.trainable_variables)
        self.forward = steps.forward(self.definition, self.model, self.training, xla)
        self.function = self.forward
        if self.training:
            self.function = steps.training(
                self.definition, self.model, optimizer, self.strategy, xla
            )
        self.sum_over_ranks = steps.sum_over_ranks(self.strategy)

    def step(self) -> Any:
        return self.function(self.batch)

    def read(self, handle: Any) -> float:
        values = [value.numpy().astype("float64") for value in self.tf.nest.flatten(handle)]
        return float(sum(value.sum() for value in values) / sum(value.size for value in values))

    def synchronize(self) -> None:
        self.tf.test.experimental.sync_devices()

    def version(self) -> str:
        return str(self.tf.__version__)

    def device(self) -> str:
        if self.place.accelerator == "cpu":
            return "cpu"
        gpu = self.tf.config.get_visible_devices("GPU")[0]
        details = self.tf.config.experimental.get_device_details(gpu)
        return f"cuda:{self.place.local_rank} {details.get('device_name', '')}".strip()

    def settings(self) -> Dict[str, Any]:
        threading = self.tf.config.threading
        return {
            "intra_op_threads": threading.get_intra_op_parallelism_threads(),
            "inter_op_threads": threading.get_inter_op_parallelism_threads(),
        }

    def trainable_parameters(self) -> int:
        return sum(int(variable.shape.num_elements()) for variable in self.model.trainable_variables)

    def product_dtypes(self) -> Dict[str, int]:
        return self.graphs.product_dtypes(self.forward.get_concrete_function(self.batch))

    def compiled(self) -> Dict[str, Any]:
        if self.case.compiler == "none":
            return {}
        functions = self.graphs.xla_functions(self.function.get_concrete_function(self.batch))
        return {"xla_functions": functions}

    def all_reduce(self, value: float) -> float:
        return float(self.sum_over_ranks(self.tf.constant(value, self.tf.float64)).numpy())

    def weights_checksum(self) -> float:
        return float(
            sum(
                abs(variable.numpy().astype("float64")).sum()
                for variable in self.model.trainable_variables
            )
        )

    def _take_device(self) -> None:
        tf = self.tf
        gpus = tf.config.list_physical_devices("GPU")
        if self.place.accelerator == "cpu":
            tf.config.set_visible_devices([], "GPU")
            return
        if self.place.local_rank >= len(gpus):
            raise Unsupported(
                f"TensorFlow sees {len(gpus)} GPUs, rank {self.place.rank} needs number "
                f"{self.place.local_rank}"
            )
        gpu = gpus[self.place.local_rank]
        tf.config.set_visible_devices(gpu, "GPU")
        tf.config.experimental.set_memory_growth(gpu, True)

    def _policy(self) -> str:
        if self.case.precision == "fp32":
            return "float32"
        if self.place.accelerator == "cpu":
            return "mixed_bfloat16"
        gpu = self.tf.config.get_visible_devices("GPU")[0]
        details = self.tf.config.experimental.get_device_details(gpu)
        return (
            "mixed_bfloat16" if details["compute_capability"] >= (8, 0) else "mixed_float16"
        )

    def _join(self) -> Any:
        distribute = self.tf.distribute
        if self.place.world_size == 1:
            return distribute.get_strategy()
        kinds = distribute.experimental.CommunicationImplementation
        kind = kinds.RING if self.place.accelerator == "cpu" else kinds.NCCL
        options = distribute.experimental.CommunicationOptions(implementation=kind)
        return distribute.MultiWorkerMirroredStrategy(communication_options=options)
