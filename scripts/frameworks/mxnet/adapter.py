"""MXNet as its guides say: Gluon, hybridized with static allocation where a compiler is asked for,
its AMP, fused optimizer kernels, the parameter server between ranks."""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any, Dict, List

from harness.adapter import Adapter, Exchange, Product, Unsupported
from harness.parts import Part, cut

if TYPE_CHECKING:
    from .steps import Outputs

# MXNet's words for memory that ran out: all its errors are of one type
OUT_OF_MEMORY = (
    "Failed to allocate CPU Memory",
    "bad_alloc",
    "out of memory",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "CUDNN_STATUS_ALLOC_FAILED",
)


class MXNetAdapter(Adapter):
    def start(self) -> None:
        # OpenMP reads it once; also in MXNet's own threads, which no function reaches
        os.environ["OMP_NUM_THREADS"] = str(self.place.threads)
        if self.case.precision == "fp32":
            os.environ["NVIDIA_TF32_OVERRIDE"] = "0"
        from . import parameter_server

        several = self.place.world_size > 1
        children = parameter_server.start_children(self.place) if several else []
        import mxnet as mx

        # all that imports MXNet at its top: from here on it is there
        from . import devices, optimizers, products, steps, weights

        self._mx: Any = mx
        self._devices, self._optimizers, self._products = devices, optimizers, products
        self._steps, self._weights = steps, weights

        devices.put_messages_first()
        self._context = devices.take(self.place)
        # the interface of a model's module is that of resnet50_v1_5.py
        name = self.case.model.replace(".", "_")
        self._definition: Any = importlib.import_module(f".{name}", __package__)
        self._dtype = devices.set_precision(
            self.case.precision, self._context, self._definition.PRODUCTS
        )
        self._hybridize = devices.hybridize(self.case.mode, self._context, self._dtype)
        self._group = parameter_server.Group(self.place, children) if several else None

    def build(self, batch: Dict[str, Any]) -> None:
        mx, definition, steps = self._mx, self._definition, self._steps
        self._inputs = self._arrays(definition.inputs(batch))
        mx.random.seed(self.place.seed)  # the same weights in every rank
        self._model = definition.build(self.facts)
        self._model.initialize(ctx=self._context)
        mx.random.seed(self.place.seed + 1 + self.place.rank)  # dropout differs between ranks
        if self.case.compiler != "none":
            self._model.hybridize(**self._hybridize)
        self._forward = steps.inference(self._model, self._inputs)
        if self.case.mode == "inference":
            self._step = self._forward
            return
        labels = self._arrays(definition.labels(batch))
        found = [parameter.grad() for parameter in steps.trainable(self._model)]
        # kvstore=None: the group sums the gradients before they are clipped
        self._trainer = mx.gluon.Trainer(
            self._model.collect_params(), self._optimizers.from_facts(self.facts), kvstore=None
        )
        if self._dtype == "float16":  # bfloat16 has the range of float32
            mx.contrib.amp.init_trainer(self._trainer)
        self._evaluate = steps.evaluation(
            forward=self._forward,
            loss=lambda outputs: definition.loss(outputs, labels),
            trainer=self._trainer,
        )
        self._differentiate = steps.gradients(
            self._evaluate,
            sum_over_ranks=self._group.sum_gradients if self._group else None,
            found=found,
        )
        self._update = steps.updating(self._trainer, self.place.world_size, found)
        self._step = steps.training(self._differentiate, self._update)

    def _arrays(self, arrays: Any) -> Any:
        try:
            return tuple(self._mx.nd.array(a, ctx=self._context, dtype=a.dtype) for a in arrays)
        except self._mx.MXNetError as error:
            if "USE_INT64_TENSOR_SIZE" in str(error):  # not memory, but how MXNet was built
                raise Unsupported(str(error).splitlines()[0]) from error
            raise

    def step(self) -> Outputs:
        return self._step()

    def read(self, handle: Outputs) -> float:
        arrays = [array.astype("float32").asnumpy() for array in handle]
        total = sum(array.sum(dtype="float64") for array in arrays)
        return float(total / sum(array.size for array in arrays))

    def synchronize(self) -> None:
        self._mx.nd.waitall()

    def version(self) -> str:
        return str(self._mx.__version__)

    def device(self) -> str:
        if self._context.device_type == "cpu":
            return "cpu"
        return f"cuda:{self._context.device_id}"  # MXNet does not tell the name

    def settings(self) -> Dict[str, Any]:
        found = self._devices.settings()
        found["layout"] = self._definition.LAYOUT
        found["amp_dtype"] = self._dtype if self.case.precision == "amp" else None
        found["hybridize"] = self._hybridize if self.case.compiler != "none" else None
        found["process_group"] = self._group.settings() if self._group else None
        if self.case.mode == "train":
            optimizer = self._trainer.optimizer
            found["fused_optimizer"] = True
            found["aggregated_updates"] = optimizer.aggregate_num
            found["loss_scaling"] = self._dtype == "float16"
        return found

    def trainable_parameters(self) -> int:
        return sum(p.data().size for p in self._steps.trainable(self._model))

    def _products_of_a_pass(self) -> List[Any]:
        operators = self._definition.PRODUCTS
        if self.case.compiler != "none":
            return self._products.compiled(self._model, self._inputs, operators)
        train = self.case.mode == "train"
        return self._products.imperative(self._model, self._inputs, train, operators)

    def product_dtypes(self) -> Dict[str, int]:
        counts: Dict[str, int] = {}
        for product in self._products_of_a_pass():
            counts[product.dtype] = counts.get(product.dtype, 0) + 1
        return counts

    def compiled(self) -> Dict[str, Any]:
        if self.case.compiler == "none":
            return {}
        return self._products.proof(self._model)

    def all_reduce(self, value: float) -> float:
        return self._group.total(value) if self._group else value

    def exchange(self, array: Any) -> Exchange:
        return Exchange(*self._group.exchange(array, self._context))

    def weights_checksum(self) -> float:
        parameters = self._steps.trainable(self._model)
        arrays = (parameter.data().asnumpy().astype("float64") for parameter in parameters)
        return float(sum(abs(array).sum() for array in arrays))

    def load_weights(self, weights: Dict[str, Any]) -> None:
        self._weights.load(self._model, weights)
        if self.case.compiler != "none":
            # a fused graph keeps the weights of its first run, so MXNet must make a new one
            self._model.hybridize(**self._hybridize)

    def weights(self) -> Dict[str, Any]:
        return self._weights.arrays(self._model)

    def gradients(self) -> Dict[str, Any]:
        self._differentiate()
        scale = self._steps.gradient_scale(self._trainer, self.place.world_size)
        return self._weights.gradients(self._model, scale)

    def outputs(self) -> List[Any]:
        if self.case.mode == "inference":
            outputs = self._forward()
        else:
            with self._mx.autograd.record():
                outputs = self._forward()
        return [logits.astype("float32").asnumpy() for logits in outputs]

    def forward_multiply_adds(self) -> int:
        return sum(product.multiply_adds for product in self._products_of_a_pass())

    def parts(self) -> List[Part]:
        return cut(
            forward=lambda: self._evaluate()[1],
            backward=lambda loss: loss.backward(),
            averaged=self._differentiate if self._group else None,
            update=self._update,
        )

    def product(self, left: Any, right: Any) -> Product:
        a, b = self._arrays((left, right))
        if self._dtype != "float32":
            dtype = self._devices.DTYPES[self._dtype]
            a, b = (self._mx.nd.amp_cast(array, dtype=dtype) for array in (a, b))

        def multiply() -> None:
            nonlocal b
            # not dot, which has no bfloat16
            b = self._mx.nd.FullyConnected(b, a, num_hidden=len(left), no_bias=True)

        return Product(multiply, self._devices.name_of(b.dtype))

    def out_of_memory(self, error: BaseException) -> bool:
        if not isinstance(error, self._mx.MXNetError):
            return super().out_of_memory(error)
        return any(words in str(error) for words in OUT_OF_MEMORY)

    def stop(self) -> None:
        if self._group:
            self._group.leave()
