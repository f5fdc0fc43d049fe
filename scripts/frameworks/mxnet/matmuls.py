"""Dtypes and sizes of the matmuls and convolutions of a forward pass.

They are observed in imperative mode, and read from the graph that MXNet runs where the model is
compiled. ``operators``: names of the model's matmuls, each with the reason why mixed precision
leaves it out, or ""."""

from __future__ import annotations

import contextlib
import json
from typing import Any, Dict, Iterator, List, Mapping, Sequence, Tuple

import mxnet as mx
from harness.adapter import ExecutedMatmul, Mismatch
from mxnet import autograd

from .devices import name_of

Shape = Tuple[int, ...]

GATES = 4  # of an LSTM

# what oneDNN's fusion makes of a matmul and the operators behind it
FUSED = {
    "_sg_mkldnn_conv": "Convolution",
    "_sg_mkldnn_fully_connected": "FullyConnected",
}


def telling(operator: str) -> int:
    """Return the index of the operand that gives the size of a matmul.

    It is the weight, for recurrent layers one vector of all weights, or the first of two
    matrices."""
    return 0 if operator == "batch_dot" else 1


def multiply_adds(
    operator: str, operand: Shape, result: Shape, attributes: Mapping[str, Any]
) -> int:
    """Return the multiply-adds of one matmul.

    ``operand``: shape of the operand that gives the size; ``attributes``: the operator's, as
    values or as text."""
    if operator == "RNN":
        length, rows, hidden = result
        biases = 2 * GATES * hidden * int(attributes["num_layers"])
        return length * rows * (operand[0] - biases)
    size = 1
    for extent in result:
        size *= extent
    if operator == "batch_dot":
        return size * operand[-2 if str(attributes.get("transpose_a")) in ("True", "1") else -1]
    for extent in operand[1:]:  # the first axis of a weight is that of the outputs
        size *= extent
    return size


@contextlib.contextmanager
def _watched(operators: Mapping[str, str], matmuls: List[ExecutedMatmul]) -> Iterator[None]:
    """Note each call of ``operators`` in imperative mode in ``matmuls``, until the context ends."""
    originals = {name: getattr(mx.nd, name) for name in operators}

    def watching(name: str) -> Any:
        def call(*arguments: Any, **options: Any) -> Any:
            result = originals[name](*arguments, **options)
            operand = arguments[telling(name)]
            output = result[0] if name == "RNN" else result  # with its states behind it
            size = multiply_adds(name, operand.shape, output.shape, options)
            matmuls.append(ExecutedMatmul(name_of(output.dtype), size, operators[name]))
            return result

        return call

    for name in operators:
        setattr(mx.nd, name, watching(name))
    try:
        yield
    finally:
        for name, original in originals.items():
            setattr(mx.nd, name, original)


def _mode(train: bool) -> Any:
    return autograd.train_mode() if train else autograd.predict_mode()


def imperative(
    model: Any, inputs: Sequence[Any], train: bool, operators: Mapping[str, str]
) -> List[ExecutedMatmul]:
    """Return the matmuls of one forward pass, which leaves the running statistics unchanged.

    ``train``: run in training mode, as for a training step; inference would lay out the weights
    anew."""
    matmuls: List[ExecutedMatmul] = []
    statistics = [p for p in model.collect_params().values() if p.grad_req == "null"]
    kept = [parameter.data().copy() for parameter in statistics]
    with _mode(train), _watched(operators, matmuls):
        model(*inputs)
    for parameter, before in zip(statistics, kept):
        parameter.set_data(before)
    return matmuls


def compiled(
    model: Any, inputs: Sequence[Any], train: bool, operators: Mapping[str, str]
) -> List[ExecutedMatmul]:
    """Return the matmuls in the graph that a hybridized model runs, by MXNet's own inference of
    types and shapes."""
    if model._cached_op is None:
        # as the first call of the model does; a model may have more layers in training
        with _mode(train):
            model._build_cache(*inputs)
    data, graph = model._cached_graph
    known = {p.name: p.data() for p in model.collect_params().values()}
    known.update({symbol.name: array for symbol, array in zip(data, inputs)})
    known = {name: known[name] for name in graph.list_inputs()}
    internals = graph.get_internals()
    names = internals.list_outputs()
    shapes = dict(zip(names, internals.infer_shape(**{n: a.shape for n, a in known.items()})[1]))
    dtypes = dict(zip(names, internals.infer_type(**{n: a.dtype for n, a in known.items()})[1]))
    nodes = json.loads(internals.tojson(remove_amp_cast=False))["nodes"]
    matmuls = []
    for node in nodes:
        operator = FUSED.get(node["op"], node["op"])
        if operator not in operators:
            continue
        operand = nodes[node["inputs"][telling(operator)][0]]
        size = multiply_adds(
            operator,
            shapes[_output(operand)],
            shapes[_output(node)],
            node.get("attrs", {}),
        )
        dtype = name_of(dtypes[_output(node)])
        matmuls.append(ExecutedMatmul(dtype, size, operators[operator]))
    return matmuls


def _output(node: Dict[str, Any]) -> str:
    """Return the name of the first output of a graph's node."""
    return str(node["name"]) if node["op"] == "null" else f"{node['name']}_output"


def proof(model: Any) -> Dict[str, Any]:
    """Return counts of what was compiled. Raises Mismatch unless the whole model became one
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
