"""Operations that TensorFlow will run, read from the graph of a traced function."""

from __future__ import annotations

import math
from typing import Any, Dict, Iterable, Iterator, List, Set

import tensorflow as tf
from harness.adapter import ExecutedMatmul

MATMULS = frozenset(
    {
        *("MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3", "Einsum", "_FusedMatMul"),
        *("Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter"),
        *("Conv3D", "Conv3DBackpropInputV2", "Conv3DBackpropFilterV2"),
        "DepthwiseConv2dNative",
        "DepthwiseConv2dNativeBackpropInput",
        "DepthwiseConv2dNativeBackpropFilter",
        "CudnnRNNV3",  # all matmuls of a recurrent layer, which Keras makes an LSTM's on a GPU
    }
)
COLLECTIVES = frozenset({"CollectiveReduce", "CollectiveReduceV2", "CollectiveReduceV3"})
TYPES = ("DstT", "T", "dtype")
LOOPS = frozenset({"While", "StatelessWhile"})
CALLS = frozenset({"PartitionedCall", "StatefulPartitionedCall"})


def matmuls(function: Any) -> List[ExecutedMatmul]:
    """Return the matmuls and convolutions in a concrete function and all that it calls, by their
    dtypes alone."""
    graph = function.graph.as_graph_def()
    library = {entry.signature.name: entry.node_def for entry in graph.library.function}
    matmuls: List[ExecutedMatmul] = []

    def visit(nodes: Iterable[Any]) -> None:
        for node in nodes:
            if node.op in MATMULS:
                matmuls.append(ExecutedMatmul(tf.as_dtype(node.attr["T"].type).name))
            for attribute in node.attr.values():
                visit(library.get(attribute.func.name, ()))

    visit(graph.node)
    return matmuls


def result_dtypes(function: Any) -> Dict[str, int]:
    """Count the operations that return floating-point numbers by dtype, in a concrete function
    and all functions of its graph."""
    graph = function.graph.as_graph_def()
    counts: Dict[str, int] = {}
    for nodes in (graph.node, *(entry.node_def for entry in graph.library.function)):
        for node in nodes:
            # of a conversion that of its result
            kind = next((node.attr[key].type for key in TYPES if node.attr[key].type), None)
            if kind and tf.as_dtype(kind).is_floating:
                name = tf.as_dtype(kind).name
                counts[name] = counts.get(name, 0) + 1
    return counts


def sized_matmuls(function: Any) -> List[ExecutedMatmul]:
    """Return the matmuls in the graph of a concrete function of a forward pass.

    Multiply-adds follow from the shapes in the graph; those in a loop are of all its iterations
    together."""
    return list(_sized(function.graph))


def _sized(graph: tf.Graph, times: int = 1) -> Iterator[ExecutedMatmul]:
    for op in _behind(graph.outputs):
        if op.type in MATMULS:
            yield ExecutedMatmul(op.inputs[0].dtype.name, times * _multiply_adds(op))
        elif op.type in LOOPS:
            # as traced: in that of its definition, what the loop reads has no shape
            body = graph._get_function(op.get_attr("body").name).graph
            yield from _sized(body, times * _steps(op))


def _behind(outputs: Iterable[tf.Tensor]) -> Set[tf.Operation]:
    """Return all operations that ``outputs`` need: TensorFlow drops the others before it runs a
    graph. (Keras traces the first step of a recurrent layer in front of its loop, for its shape
    alone.)"""
    needed: Set[tf.Operation] = set()
    waiting = [output.op for output in outputs]
    while waiting:
        operation = waiting.pop()
        if operation not in needed:
            needed.add(operation)
            waiting.extend(tensor.op for tensor in operation.inputs)
    return needed


def _steps(loop: tf.Operation) -> int:
    """Return the number of steps of a loop. Raises ValueError where it is not in the graph."""
    _, limit, *_ = loop.inputs  # behind its counter
    if limit.op.type == "Max":  # Keras has that of the one length of all sequences
        limit = limit.op.inputs[0]
    steps = tf.get_static_value(limit)
    if steps is None or steps.size != 1:
        raise ValueError(f"the steps of {loop.name} are not known")
    return int(steps)


def _multiply_adds(matmul: tf.Operation) -> int:
    """Return values of the output times products summed for each. Raises ValueError where that is
    not known for this type of operation or a shape is not."""
    if matmul.type == "CudnnRNNV3":
        inputs, state = (tensor.shape for tensor in matmul.inputs[:2])
        gates = 4 * state[-1]
        return inputs[:-1].num_elements() * gates * (inputs[-1] + state[-1])
    shapes = [tensor.shape for tensor in matmul.inputs]
    if matmul.type in ("Conv2DBackpropInput", "Conv3DBackpropInputV2"):  # transposed, if forward
        _, filters, values = (shape.num_elements() for shape in shapes)
        if None in (filters, values):
            raise ValueError(f"{matmul.name} has no shape")
        return values * filters // shapes[1][-1]
    if matmul.type == "Einsum":
        return _einsum_multiply_adds(matmul.get_attr("equation").decode(), shapes)
    first, second = shapes
    if matmul.type in ("Conv2D", "Conv3D"):  # filters (height, width, in, out)
        summed = second[:-1].num_elements()
    elif matmul.type == "DepthwiseConv2dNative":  # (height, width, in, out of each)
        summed = second[:-2].num_elements()
    elif matmul.type == "MatMul":
        summed = first[0 if matmul.get_attr("transpose_a") else 1]
    elif matmul.type.startswith("BatchMatMul"):
        summed = first[-2 if matmul.get_attr("adj_x") else -1]
    else:
        raise ValueError(f"multiply-adds of {matmul.type} are not known")
    values = matmul.outputs[0].shape.num_elements()
    if values is None or summed is None:
        raise ValueError(f"{matmul.name} has no shape")
    return values * summed


def _einsum_multiply_adds(equation: str, shapes: List[Any]) -> int:
    """Return the product of all axes. Raises ValueError for more than two operands, axes without
    names or sizes."""
    terms = equation.partition("->")[0].split(",")
    sizes = {axis: size for term, shape in zip(terms, shapes) for axis, size in zip(term, shape)}
    if len(terms) != 2 or "." in sizes or None in sizes.values():
        raise ValueError(f"multiply-adds of {equation} are not known")
    return math.prod(sizes.values())


def collective_bytes(function: Any) -> List[int]:
    """Return the bytes that each all-reduce in the graph of a concrete function sends; one in a
    loop counts once."""
    sent = [op.inputs[0] for op in _collectives(function.graph)]
    return [tensor.shape.num_elements() * tensor.dtype.size for tensor in sent]


def _collectives(graph: tf.Graph) -> Iterator[tf.Operation]:
    """Yield the all-reduces of a graph and of all that it calls."""
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
