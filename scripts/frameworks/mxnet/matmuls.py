"""Dtypes of the matmuls and convolutions of a forward pass.

They are observed in imperative mode, and read from the graph that MXNet runs where the model is
compiled. ``operators``: names of the model's matmuls."""

from __future__ import annotations

import contextlib
import json
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


def imperative(
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


def compiled(
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
