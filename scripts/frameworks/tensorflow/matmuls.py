"""Operations that TensorFlow will run, read from the graph of a traced function."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any, Dict, Iterable, Iterator, List, Optional

import tensorflow as tf

MATMULS = frozenset(
    {
        *("MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3", "Einsum", "_FusedMatMul"),
        *("Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter"),
        *("Conv3D", "Conv3DBackpropInputV2", "Conv3DBackpropFilterV2"),
        "DepthwiseConv2dNative",
        "DepthwiseConv2dNativeBackpropInput",
        "DepthwiseConv2dNativeBackpropFilter",
        "CudnnRNNV3",  # all matmuls of a recurrent layer, as Keras compiles an LSTM for a GPU
    }
)
COLLECTIVES = frozenset({"CollectiveReduce", "CollectiveReduceV2", "CollectiveReduceV3"})
TYPES = ("DstT", "T", "dtype")
LOOPS = frozenset({"While", "StatelessWhile"})
CALLS = frozenset({"PartitionedCall", "StatefulPartitionedCall"})


def matmul_dtypes(function: Any) -> Dict[str, int]:
    """Count the matmuls and convolutions in a concrete function and all that it calls, by dtype."""
    graph = function.graph.as_graph_def()
    library = {entry.signature.name: entry.node_def for entry in graph.library.function}
    counts: Dict[str, int] = Counter()

    def visit(nodes: Iterable[Any]) -> None:
        for node in nodes:
            if node.op in MATMULS:
                counts[tf.as_dtype(node.attr["T"].type).name] += 1
            for attribute in node.attr.values():
                visit(library.get(attribute.func.name, ()))

    visit(graph.node)
    return dict(counts)


def result_dtypes(function: Any) -> Dict[str, int]:
    """Count the operations that return floating-point numbers by dtype, in a concrete function
    and all functions of its graph."""
    graph = function.graph.as_graph_def()
    counts: Dict[str, int] = Counter()
    for nodes in (graph.node, *(entry.node_def for entry in graph.library.function)):
        for node in nodes:
            # for a conversion, the dtype of its result
            kind = next((node.attr[key].type for key in TYPES if node.attr[key].type), None)
            if kind and tf.as_dtype(kind).is_floating:
                counts[tf.as_dtype(kind).name] += 1
    return dict(counts)


def multiply_adds(function: Any) -> Optional[int]:
    """Return the multiply-adds of a concrete function of a forward pass, by the shapes in its
    graph; None where they do not show, as in loops."""
    counts = [_multiply_adds(op) for op in function.graph.get_operations() if op.type in MATMULS]
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == sum(matmul_dtypes(function).values()) else None


def _multiply_adds(matmul: tf.Operation) -> Optional[int]:
    """Return the number of output values times the products summed for each; None where a shape or
    the type of operation is unknown."""
    shapes = [tensor.shape for tensor in (*matmul.inputs, *matmul.outputs)]
    if not all(shape.is_fully_defined() for shape in shapes):
        return None
    first, second, *_, values = ([int(extent) for extent in shape] for shape in shapes)
    if matmul.type == "Einsum":
        terms = matmul.get_attr("equation").decode().partition("->")[0].split(",")
        sizes = {axis: n for term, own in zip(terms, (first, second)) for axis, n in zip(term, own)}
        return math.prod(sizes.values()) if len(terms) == 2 and "." not in sizes else None
    # a transposed convolution, if in a forward pass
    if matmul.type in ("Conv2DBackpropInput", "Conv3DBackpropInputV2"):
        return math.prod(shapes[2]) * math.prod(second[:-1])
    if matmul.type in ("Conv2D", "Conv3D"):  # filters (height, width, in, out)
        summed = math.prod(second[:-1])
    # (height, width, input channels, outputs of each channel)
    elif matmul.type == "DepthwiseConv2dNative":
        summed = math.prod(second[:-2])
    elif matmul.type == "MatMul":
        summed = first[0 if matmul.get_attr("transpose_a") else 1]
    elif matmul.type.startswith("BatchMatMul"):
        summed = first[-2 if matmul.get_attr("adj_x") else -1]
    else:
        return None
    return math.prod(values) * summed


def collective_bytes(function: Any) -> List[int]:
    """Return the bytes that each all-reduce in the graph of a concrete function sends; one in a
    loop counts once."""
    sent = [op.inputs[0] for op in _collectives(function.graph)]
    return [tensor.shape.num_elements() * tensor.dtype.size for tensor in sent]


def _collectives(graph: tf.Graph) -> Iterator[tf.Operation]:
    """Yield the all-reduces of a graph and of all functions that it calls."""
    for op in graph.get_operations():
        if op.type in COLLECTIVES:
            yield op
        elif op.type in LOOPS | CALLS:
            name = op.get_attr("body" if op.type in LOOPS else "f").name
            yield from _collectives(graph._get_function(name).graph)


def xla_functions(function: Any) -> int:
    """Count the functions in the graph of a concrete function, itself included, that must be
    compiled with XLA.

    They carry the attribute with which TensorFlow compiles them or fails: there is no fallback."""
    library = function.graph.as_graph_def().library.function
    own = function.function_def.attr
    marks = [own] + [entry.attr for entry in library]
    return sum(attributes["_XlaMustCompile"].b for attributes in marks)
