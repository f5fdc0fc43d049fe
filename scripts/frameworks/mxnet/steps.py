"""Dtypes of the matmuls and convolutions of a forward pass, and optimizers by the rules of
``torch.optim``, on MXNet's fused update kernels.

Matmuls are observed in imperative mode, and read from the graph that MXNet runs where the model is
compiled. ``operators``: names of the model's matmuls."""

from __future__ import annotations

import contextlib
import json
import math
import os
from typing import Any, Collection, Dict, Iterator, List, Sequence, Tuple

import mxnet as mx
from harness.adapter import Mismatch
from mxnet import autograd

from .devices import name_of

# operators into which oneDNN fuses a matmul and the operators after it
FUSED = {
    "_sg_mkldnn_conv": "Convolution",
    "_sg_mkldnn_fully_connected": "FullyConnected",
}

#: Name of an operator, and the dtype of its result.
Observed = List[Tuple[str, str]]
# How many parameters one kernel updates: MXNet's own default for SGD, from the documentation of its
# environment variables
AGGREGATION = int(os.environ.get("MXNET_OPTIMIZER_AGGREGATION_SIZE", "4"))
# Elements summed at a time: float32 loses 0.1% in a sum of 23 million squares by `dot`, 5% by
# `norm` and `multi_sum_sq`
CHUNK = 1 << 18


@contextlib.contextmanager
def _watched(operators: Collection[str]) -> Iterator[Observed]:
    """Yield a list that records each call of ``operators`` in imperative mode."""
    originals = {name: getattr(mx.nd, name) for name in operators}
    matmuls: Observed = []

    def watching(name: str) -> Any:
        def call(*arguments: Any, **options: Any) -> Any:
            result = originals[name](*arguments, **options)
            matmuls.append((name, name_of(result.dtype)))
            return result

        return call

    for name in operators:
        setattr(mx.nd, name, watching(name))
    try:
        yield matmuls
    finally:
        for name, original in originals.items():
            setattr(mx.nd, name, original)


def _mode(train: bool) -> Any:
    return autograd.train_mode() if train else autograd.predict_mode()


def eager_matmuls(
    model: Any, inputs: Sequence[Any], train: bool, operators: Collection[str]
) -> Observed:
    """Return the matmuls of one forward pass, which leaves the running statistics unchanged.

    ``train``: run in training mode, as for a training step; inference would lay out the weights
    anew."""
    statistics = [p for p in model.collect_params().values() if p.grad_req == "null"]
    kept = [parameter.data().copy() for parameter in statistics]
    with _mode(train), _watched(operators) as matmuls:
        model(*inputs)
    for parameter, before in zip(statistics, kept):
        parameter.set_data(before)
    return matmuls


def graph_matmuls(
    model: Any, inputs: Sequence[Any], train: bool, operators: Collection[str]
) -> Observed:
    """Return the matmuls in the graph that a hybridized model runs, by MXNet's own inference of
    types."""
    if model._cached_op is None:
        # in the mode of the model's first call: a model may have more layers in training
        with _mode(train):
            model._build_cache(*inputs)
    data, graph = model._cached_graph
    known = {p.name: p.data() for p in model.collect_params().values()}
    known.update({symbol.name: array for symbol, array in zip(data, inputs)})
    internals = graph.get_internals()
    inferred = internals.infer_type(**{name: known[name].dtype for name in graph.list_inputs()})
    dtypes = dict(zip(internals.list_outputs(), inferred[1]))
    nodes = json.loads(internals.tojson(remove_amp_cast=False))["nodes"]
    named = [(FUSED.get(node["op"], node["op"]), node["name"]) for node in nodes]
    return [
        (operator, name_of(dtypes[f"{name}_output"]))
        for operator, name in named
        if operator in operators
    ]


def proof(model: Any) -> Dict[str, Any]:
    """Return counts of compiled operators. Raises Mismatch unless the whole model became one
    graph."""

    def blocks(block: Any) -> Iterator[Any]:
        yield block
        for child in block._children.values():
            yield from blocks(child)

    graphs = sum(block._cached_op is not None for block in blocks(model))
    if model._cached_op is None or graphs != 1:
        raise Mismatch(f"the model was not compiled as one graph, but as {graphs}")
    nodes = json.loads(model._cached_graph[1].tojson(remove_amp_cast=False))["nodes"]
    return {"graphs": graphs, "operators": sum(node["op"] != "null" for node in nodes)}


class AdamW(mx.optimizer.Optimizer):
    """AdamW as ``torch.optim.AdamW``; MXNet has kernels for it, but no class.

    A kernel does ``w -= eta * (lr * m / (sqrt(v) + epsilon) + wd * w)``, so both corrections of
    the bias and the learning rate of the decay go into its arguments."""

    def __init__(self, hyper: Dict[str, Any], **arguments: Any) -> None:
        super().__init__(**arguments)
        self.beta1, self.beta2, self.epsilon = hyper["beta1"], hyper["beta2"], hyper["epsilon"]
        self.clip_global_norm = hyper.get("clip_global_norm")
        self.aggregate_num = AGGREGATION

    def clip(self, gradients: List[Any], scale: float) -> None:
        """Limit the global norm of the next update's ``gradients``, if there is a limit: the update
        kernels multiply them by the factor. ``scale``: factor from these arrays to the true
        gradients. Does not wait.

        The norm is computed by ``dot``, as in ``gluon.utils.clip_global_norm``."""
        if self.clip_global_norm is None:
            self.factor = mx.nd.ones((1,), ctx=gradients[0].context)
            return
        flat = [gradient.reshape((-1,)) for gradient in gradients]
        chunks = [x[start : start + CHUNK] for x in flat for start in range(0, x.size, CHUNK)]
        norm = mx.nd.sqrt(mx.nd.add_n(*[mx.nd.dot(x, x) for x in chunks])) * scale
        self.factor = mx.nd.minimum(self.clip_global_norm / (norm + 1e-6), 1.0)

    def create_state(self, index: int, weight: mx.nd.NDArray) -> Tuple[Any, Any]:
        return mx.nd.zeros_like(weight), mx.nd.zeros_like(weight)

    def update(
        self,
        index: Sequence[int],
        weight: Sequence[Any],
        grad: Sequence[Any],
        state: Sequence[Tuple[Any, Any]],
    ) -> None:
        self._update_count(index)
        step = self._index_update_count[index[0]]
        correction = math.sqrt(1 - self.beta2**step)
        means, variances = zip(*state)
        mx.nd.contrib.multi_adamw_update(
            weight,
            grad,
            means,
            variances,
            self.factor * self.rescale_grad,
            lrs=[rate * correction / (1 - self.beta1**step) for rate in self._get_lrs(index)],
            wds=[r * d for r, d in zip(self._get_lrs(index), self._get_wds(index))],
            etas=[1.0] * len(weight),
            beta1=self.beta1,
            beta2=self.beta2,
            epsilon=self.epsilon * correction,
            out=weight,
        )


def optimizer_of(model_config: Dict[str, Any]) -> mx.optimizer.Optimizer:
    """Return the optimizer that the model's hyper-parameters name."""
    hyper = model_config["hyperparameters"]
    common = {"learning_rate": hyper["learning_rate"], "wd": hyper["weight_decay"]}
    if hyper["optimizer"] == "sgd":  # SGD's weight decay is part of the gradient, as in PyTorch
        return mx.optimizer.SGD(momentum=hyper["momentum"], **common)
    return AdamW(hyper, **common)
