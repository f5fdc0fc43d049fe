"""MXNet, set up as its guides recommend: Gluon, hybridized with static allocation where a compiler
is requested, its AMP, fused optimizer kernels, the parameter server between ranks."""

from __future__ import annotations

import os
from collections import Counter
from typing import Any, Dict, List, Sequence, Tuple

import mxnet as mx
from harness.adapter import (
    CONVOLUTION_OHWI,
    CONVOLUTION_OIHW,
    Accumulation,
    EagerTraining,
    Variable,
    is_mixed,
    micro_batches,
    variable_of,
)
from harness.capabilities import CommonCapabilities
from harness.loader import Loading
from harness.optimizers import update_rules
from harness.primitives import Primitives

from . import devices, micro, steps
from .models import layers

Outputs = Tuple[Any, ...]

LOSS_SCALE = "loss scale"  # key in a checkpoint


class MXNetAdapter(EagerTraining, Accumulation, CommonCapabilities, Loading):
    MODULE = "mxnet"
    OUT_OF_MEMORY = ("Failed to allocate CPU Memory",)

    def start(self) -> None:
        several = self.rank_context.world_size > 1
        children = devices.start_children(self.rank_context) if several else []
        devices.put_messages_first()
        self._context = devices.take(self.rank_context)
        self._definition: Any = self.definition()
        of_micro_benchmarks = ("FullyConnected", "batch_dot")
        operators = self._definition.MATMULS if self._definition else of_micro_benchmarks
        # Dtype of matmuls, and for each of the model's matmul operators the reason why mixed
        # precision leaves it out.
        self._dtype, self._operators = devices.set_precision(
            self.case.precision, self._context, operators
        )
        self._group: Any = devices.Group(self.rank_context, children) if several else None

    def build(self, batch: Dict[str, Any]) -> None:
        self._hybridize = devices.hybridize(self.case.mode, self._context, self._dtype)
        self._parts = [
            (self._arrays(inputs), dict(zip(labels, self._arrays(labels.values()))))
            for inputs, labels in self._split_batch(batch)
        ]
        self._inputs = self._parts[0][0]
        mx.random.seed(self.rank_context.seed)  # draws the same weights in every rank
        with self._context:
            self._model = self._definition.build()
        self._model.initialize(ctx=self._context)
        mx.random.seed(self.rank_context.dropout_seed)
        if self.case.compiler != "none":
            self._model.hybridize(**self._hybridize)
        if not self.trains:
            return
        parameters = list(self._model.collect_params().values())
        self._first = parameters[0]
        self._trained = [p for p in parameters if p.grad_req != "null"]
        if len(self._parts) > 1:
            for parameter in self._trained:
                parameter.grad_req = "add"
        self._gradients = [parameter.grad() for parameter in self._trained]
        named = {name: parameter for parameter, (name, *_) in self._named().items()}
        rules = update_rules(named, self.model_config["hyperparameters"])
        for name, parameter in named.items():
            parameter.wd_mult = float(rules[name].weight_decay != 0.0)
        # kvstore=None: the group sums the gradients before they are clipped
        self._trainer = mx.gluon.Trainer(
            self._model.collect_params(),
            steps.optimizer_of(self.model_config),
            kvstore=None,
        )
        if self._dtype == "float16":  # bfloat16 has float32's range: no loss scale
            mx.contrib.amp.init_trainer(self._trainer)

    def _split_batch(self, batch: Dict[str, Any]) -> List[Tuple[Any, Dict[str, Any]]]:
        """Return each micro-batch as numpy arrays: the model's inputs, and labels in training."""
        parts = micro_batches(batch, self.case.accumulation)
        with self._context:
            return [
                (self._definition.inputs(part), layers.labels(part) if self.trains else {})
                for part in parts
            ]

    def feed(self, batch: Dict[str, Any]) -> None:
        # Copy into the step's arrays, once the enqueued operations have read them.
        for (inputs, labels), (new, new_labels) in zip(self._parts, self._split_batch(batch)):
            pairs = [*zip(inputs, new), *((labels[name], new_labels[name]) for name in labels)]
            for array, values in pairs:
                array[:] = devices.staged(values, self._context)

    def set_learning_rate(self, rate: float) -> None:
        before = self._trainer.learning_rate
        self._trainer.set_learning_rate(rate)
        if before and rate != before and isinstance(self._trainer.optimizer, mx.optimizer.SGD):
            # MXNet's momentum accumulates steps, which include the rate. So it is scaled with the
            # rate, which makes it equal PyTorch's momentum of gradients ("momentum correction",
            # Goyal et al. 2017, arXiv:1706.02677, section 2.1).
            for updater in self._trainer._updaters:
                for momentum in updater.states.values():
                    momentum *= rate / before

    def save_training(self, path: str) -> None:
        os.makedirs(path)
        arrays = {name: variable.tensor for name, variable in self.state().items()}
        scaler = getattr(self._trainer, "_amp_loss_scaler", None)
        if scaler:  # the loss scale, and the number of steps since it last changed
            arrays[LOSS_SCALE] = mx.nd.array([scaler.loss_scale, scaler._unskipped])
        mx.nd.save(os.path.join(path, "model"), arrays)
        self._trainer.save_states(os.path.join(path, "trainer"))

    def load_training(self, path: str) -> None:
        kept = mx.nd.load(os.path.join(path, "model"))
        for name, variable in self.state().items():
            kept[name].copyto(variable.tensor)
        self._trainer.load_states(os.path.join(path, "trainer"))
        if LOSS_SCALE in kept:
            scaler = self._trainer._amp_loss_scaler
            scaler.loss_scale, scaler._unskipped = kept[LOSS_SCALE].asnumpy().tolist()
        self._forget_fused_weights()

    def clear_gradients(self) -> None:
        if len(self._parts) > 1:  # with one micro-step the backward pass overwrites gradients
            for parameter in self._trained:
                parameter.zero_grad()

    def loss(self, number: int) -> Tuple[Any, Any]:
        """Return the loss, an array (1,), and the value to differentiate: the loss, scaled under
        float16."""
        inputs, labels = self._parts[number]
        with mx.autograd.record():
            loss = self._definition.loss(self._forward(inputs), labels)
            value = self.share(loss)
            if not hasattr(self._trainer, "_amp_loss_scaler"):
                return value, value
            with mx.contrib.amp.scale_loss(value, self._trainer) as scaled:
                return value, scaled

    def backward(self, loss: Tuple[Any, Any]) -> None:
        loss[1].backward()

    def handle_of(self, loss: Tuple[Any, Any]) -> Outputs:
        return loss[:1]

    def differentiate(self) -> Sequence[Any]:
        """Compute gradients that are summed over all ranks and scaled by :meth:`loss_scale`."""
        handle = super().differentiate()
        if self._group:
            self._group.sum_gradients(self._gradients)
        return handle

    def update(self) -> None:
        ranks, optimizer = self.rank_context.world_size, self._trainer.optimizer
        if isinstance(optimizer, steps.AdamW):
            optimizer.clip(self._gradients, self._trainer._scale / ranks)
        self._trainer.update(ranks)  # no update where a float16 gradient overflowed

    def infer(self) -> Outputs:
        return self._forward(self._inputs)

    def _forward(self, inputs: Tuple[Any, ...]) -> Outputs:
        outputs = self._model(*inputs)
        return tuple(outputs) if isinstance(outputs, (list, tuple)) else (outputs,)

    def _arrays(self, arrays: Any) -> Any:
        return tuple(mx.nd.array(a, ctx=self._context, dtype=a.dtype) for a in arrays)

    def synchronize(self) -> None:
        mx.nd.waitall()

    def mark(self, handle: Outputs) -> Any:
        # The gradient of the first parameter is complete last. It is copied, because the next step
        # writes the array, too, and waiting for it would wait for that step.
        array = self._first.data() if self.case.mode == "train" else handle[0]
        return array.reshape(-1)[:1].copy()

    def wait(self, mark: Any) -> None:
        mark.wait_to_read()

    def settings(self) -> Dict[str, Any]:
        settings = devices.settings()
        layouts = getattr(self._definition, "LAYOUTS", {})
        settings["layout"] = layouts.get(self._context.device_type)
        settings["amp_dtype"] = self._dtype if is_mixed(self.case.precision) else None
        settings["hybridize"] = self._hybridize if self.case.compiler != "none" else None
        settings["process_group"] = self._group.settings() if self._group else None
        if self.trains:
            settings["aggregated_updates"] = self._trainer.optimizer.aggregate_num
        return settings

    def _named(self) -> Dict[Any, Tuple[str, Variable]]:
        """Return the shared name and the variable of each parameter."""
        named: Dict[Any, Tuple[str, Variable]] = {}
        kernels = CONVOLUTION_OIHW if self._context.device_type == "cpu" else CONVOLUTION_OHWI
        for name, block, parameter in layers.named_parameters(self._model):
            dense = isinstance(block, mx.gluon.nn.Dense) and name.endswith(".weight")
            trained = parameter.grad_req != "null"
            entry = variable_of(parameter.data(), trained, dense, block, kernels)
            named[parameter] = name, entry
        return named

    def state(self) -> Dict[str, Variable]:
        # MXNet's engine does not know that a hybridized backward pass writes running statistics, so
        # readers would not wait for it.
        mx.nd.waitall()
        return dict(self._named().values())

    def to_numpy(self, tensor: Any) -> Any:
        return tensor.astype("float32", copy=False).asnumpy()

    def assign(self, arrays: Dict[str, Any]) -> None:
        for name, variable in self.state().items():
            variable.tensor[:] = mx.nd.array(arrays[name], dtype="float32")
        self._forget_fused_weights()

    def _forget_fused_weights(self) -> None:
        if self.case.compiler != "none":
            # a fused graph keeps the weights of its first run, so MXNet must make a new one
            self._model.hybridize(**self._hybridize)

    def loss_scale(self) -> float:
        # gradients are multiplied by AMP's loss scale, 1 / _scale, and summed over the ranks
        return self.rank_context.world_size / float(self._trainer._scale)

    def logits(self) -> Outputs:
        if self.case.mode == "inference":
            return self.infer()
        with mx.autograd.record():
            return self.infer()

    def _matmuls(self) -> steps.Observed:
        observe = steps.eager_matmuls if self.case.compiler == "none" else steps.graph_matmuls
        return observe(self._model, self._inputs, self.trains, self._operators)

    def matmul_dtypes(self) -> Dict[str, int]:
        return dict(Counter(dtype for _, dtype in self._matmuls()))

    def lacking_matmuls(self) -> Dict[str, int]:
        reasons = (self._operators[operator] for operator, _ in self._matmuls())
        return dict(Counter(reason for reason in reasons if reason))

    def compiled(self) -> Dict[str, Any]:
        return steps.proof(self._model)

    def all_reduce(self, value: float) -> float:
        return self._group.total(value) if self._group else value

    def gradient_messages(self) -> List[int]:
        # one message per array; the kvstore splits large arrays here as in training
        return [4 * array.size for array in self._gradients]

    def primitives(self) -> Primitives:
        return micro.Primitives(self.rank_context, self._context, self._dtype, self._group)

    def stop(self) -> None:
        if self._group:
            self._group.leave()
