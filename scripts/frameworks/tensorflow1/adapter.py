"""TensorFlow 1, set up as its guides recommend: one graph, built once and run by a session that
Grappler optimizes, data in variables on the device, fused kernels, the graph rewrite for mixed
precision, collective operations between one server for each rank, XLA by scopes."""

from __future__ import annotations

import re
from typing import Any, Callable, Dict, List, Sequence

import tensorflow as tf
from harness.adapter import Unsupported, Variable, in_shared_layout, is_mixed, zeros
from harness.capabilities import CommonCapabilities, load_arrays, save_arrays
from harness.loader import Loading
from harness.primitives import Primitives
from tensorflow.python import pywrap_tensorflow
from tensorflow.python.client import device_lib

from . import devices, micro, steps

tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.ERROR)


class TensorFlow1Adapter(CommonCapabilities, Loading):
    MODULE = "tensorflow"
    OUT_OF_MEMORY = ("RESOURCE_EXHAUSTED", "ResourceExhaustedError")

    def start(self) -> None:
        self._config = tf.ConfigProto()
        devices.take(self.rank_context, self._config)
        steps.configure(self.case.compiler, self._config)
        devices.set_precision(self.case.precision, self._config)
        self._definition: Any = self.definition()
        self._server = devices.join(self.rank_context, self._config)
        self._sum = self._sum_over_ranks()

    def _session(self, graph: Any) -> Any:
        target = self._server.target if self._server else ""
        graph.finalize()  # a finalized graph cannot grow and be optimized again
        return tf.Session(target, graph, self._config)

    def _sum_over_ranks(self) -> Any:
        if self.rank_context.world_size == 1:
            return lambda value: value
        graph = tf.Graph()
        with graph.as_default(), tf.device(devices.device_name(self.rank_context)):
            value = tf.placeholder(tf.float64, ())
            total = devices.all_reduce(tf.identity(value), self.rank_context, 1, mean=False)
        return self._session(graph).make_callable(total, [value])

    def build(self, batch: Dict[str, Any]) -> None:
        model_config, graph = self.model_config, tf.Graph()
        scope = steps.scope(self.case.compiler)
        with graph.as_default(), tf.device(devices.device_name(self.rank_context)):
            tf.set_random_seed(self.rank_context.seed)  # draws the same weights in every rank
            self._model = self._definition.variables()
            resident = self._resident = steps.resident(batch)
            tf.set_random_seed(self.rank_context.dropout_seed)
            parts = (self._definition, self._model, resident)
            if self.trains:
                rate = model_config["hyperparameters"]["learning_rate"]
                self._rate = steps.variable(tf.fill((), rate), trainable=False)
                trained = {name: v.name for name, v in self._model.items() if v.trainable}
                optimizer = steps.optimizer_of(model_config, self._rate, trained)
                if is_mixed(self.case.precision):
                    scaled = tf.train.experimental.MixedPrecisionLossScaleOptimizer
                    optimizer = scaled(optimizer, "dynamic")
                average = devices.averaging(self.rank_context)
                self._training = steps.training(*parts, optimizer, scope, average)
                self._logits = self._training.logits
                self._fetches = [self._training.loss, self._training.update]
            else:
                self._logits, self._outputs, update = steps.inference(*parts, scope)
                self._fetches = [update]
            data = {id(variable) for variable in resident.values()}
            self._lasting = [v for v in tf.global_variables() if id(v) not in data]
            initialize = tf.global_variables_initializer()
        self._run = self._session(graph)
        self._run.run(initialize)
        self.feed(batch)
        self._step: Any = self._first_step
        if is_mixed(self.case.precision):
            devices.require_halves(self.matmul_dtypes())

    def feed(self, batch: Dict[str, Any]) -> None:
        # copy arrays: a session gives a variable the memory of the array that it is fed, if aligned
        arrays = {name: array.copy() for name, array in batch.items()}
        steps.load(self._resident, arrays, self._run)

    def set_learning_rate(self, rate: float) -> None:
        self._rate.load(rate, self._run)

    # tf.train.Saver would add its own operations to the graph of a step.
    def save_training(self, path: str) -> None:
        save_arrays(path, self._run.run(self._lasting))

    def load_training(self, path: str) -> None:
        for variable, array in zip(self._lasting, load_arrays(path, len(self._lasting))):
            variable.load(array, self._run)

    def inference_adapter(self) -> Any:
        if self._server:
            raise Unsupported(
                "a server finds variables by name, so two models in a process would share them"
            )
        return super().inference_adapter()

    def _first_step(self) -> List[Any]:
        """Run the first step, and record the nodes that later steps execute.

        The session optimizes, and XLA compiles, once for the same fetches."""
        values, self._executed = steps.run_and_observe(self._run, self._fetches)
        self._step = self._run.make_callable(self._fetches)
        return values

    def step(self) -> Any:
        values = self._step()
        return values[:1] if self.case.mode == "train" else self._outputs

    def read(self, handle: Any) -> float:
        return super().read(handle if self.trains else self._run.run(handle))

    def synchronize(self) -> None:
        pass  # there is nothing to wait for: see blocking

    def blocking(self) -> bool:
        return True  # a session returns when all its work is complete

    def accelerator_name(self) -> str:
        local = device_lib.list_local_devices(self._config)
        text = next(each.physical_device_desc for each in local if each.device_type == "GPU")
        return re.sub(r".*name: ([^,]*),.*", r"\1", text)

    def settings(self) -> Dict[str, Any]:
        several = self.rank_context.world_size > 1
        rewriting = self._config.graph_options.rewrite_options
        return {
            "intra_op_threads": self._config.intra_op_parallelism_threads,
            "inter_op_threads": self._config.inter_op_parallelism_threads,
            "amp_dtype": "float16" if is_mixed(self.case.precision) else None,
            "onednn_built_in": bool(pywrap_tensorflow.IsMklEnabled()),
            "grappler_remapping": rewriting.remapping != rewriting.OFF,
            "collective": devices.collective(self.rank_context) if several else None,
        }

    def state(self) -> Dict[str, Variable]:
        return {name: Variable(v, trainable=v.trainable) for name, v in self._model.items()}

    def to_numpy(self, tensor: Any) -> Any:
        return tensor  # a session returns numpy arrays

    def _copied(self, trainable: bool) -> Dict[str, Any]:
        # all in one run, because the session optimizes the graph again for each set of fetches
        chosen = {n: entry for n, entry in self.state().items() if entry.trainable == trainable}
        arrays = self._run.run({name: entry.tensor for name, entry in chosen.items()})
        return {name: in_shared_layout(arrays[name], entry) for name, entry in chosen.items()}

    def assign(self, arrays: Dict[str, Any]) -> None:
        steps.load(self._model, arrays, self._run)

    def raw_gradients(self) -> Dict[str, Any]:
        return self._evaluate()[1]

    def logits(self) -> Sequence[Any]:
        if self.trains:
            return self._evaluate()[0]
        return self._run.run(self.step())

    def _evaluate(self) -> Any:
        """Return logits and gradients together, because XLA would compile again for each alone."""
        return self._run.run((self._logits, self._training.gradients))

    def matmul_dtypes(self) -> Dict[str, int]:
        # All matmuls of a step, but none of its updates.
        tensors = self._training.gradients.values() if self.trains else self._logits
        operations = [tensor.op for tensor in tensors]
        if self.case.compiler == "none":
            _, nodes = steps.run_and_observe(self._run, operations)
        else:
            nodes = steps.optimized(self._config, operations)
        return steps.matmul_dtypes(nodes)

    def compiled(self) -> Dict[str, Any]:
        return steps.proof(self._executed)

    def all_reduce(self, value: float) -> float:
        return float(self._sum(value))

    def gradient_messages(self) -> List[int]:
        sent = self._training.gradients.values()  # each gradient has its own collective
        return [tensor.shape.num_elements() * tensor.dtype.size for tensor in sent]

    def gradient_all_reduce(self, messages: Sequence[int]) -> Callable[[], Any]:
        sizes, primitives = sorted(set(messages)), self._primitives("float32")

        def make(*tensors: Any) -> Sequence[Any]:
            held = dict(zip(sizes, tensors))
            return [[primitives.all_reduced(held[size]).op for size in messages]]

        (run,) = primitives.callables(make, [zeros(size) for size in sizes])
        return run  # one session call, like a training step

    def primitives(self) -> Primitives:
        # the dtype of the graph rewrite, without its conversions around a single operation
        return self._primitives("float16" if is_mixed(self.case.precision) else "float32")

    def _primitives(self, dtype: str) -> Any:
        return micro.Primitives(self.rank_context, dtype, self._session)

    def stop(self) -> None:
        # Freed here, because the server's destructor fails once Python has ended.
        self._server = self._sum = self._run = self._step = None
