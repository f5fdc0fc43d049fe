"""What TensorFlow will run, read from the graph of a traced function."""

from __future__ import annotations

from collections import Counter
from typing import Any, Dict, Iterable

import tensorflow as tf

PRODUCTS = frozenset(
    {
        *("MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3", "Einsum", "_FusedMatMul"),
        *("Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter"),
    }
)


def product_dtypes(function: Any) -> Dict[str, int]:
    """Number of matrix products and convolutions in each dtype, in a concrete function and all
    that it calls."""
    graph = function.graph.as_graph_def()
    library = {entry.signature.name: entry.node_def for entry in graph.library.function}
    counts: Counter[str] = Counter()

    def visit(nodes: Iterable[Any]) -> None:
        for node in nodes:
            if node.op in PRODUCTS:
                counts[tf.as_dtype(node.attr["T"].type).name] += 1
            for attribute in node.attr.values():
                visit(library.get(attribute.func.name, ()))

    visit(graph.node)
    return dict(counts)


def multiply_adds(function: Any) -> int:
    """Multiply-adds of all matrix products and convolutions in the graph of a concrete function
    of a forward pass, from the shapes in it."""
    operations = function.graph.get_operations()
    return sum(_multiply_adds(op) for op in operations if op.type in PRODUCTS)


def _multiply_adds(product: tf.Operation) -> int:
    """Values of the output times products summed for each. Raises ValueError where that is not
    known for this type of operation or a shape is not."""
    first, second = (tensor.shape for tensor in product.inputs)
    if product.type == "Conv2D":  # filters (height, width, in, out)
        summed = second[:-1].num_elements()
    elif product.type == "MatMul":
        summed = first[0 if product.get_attr("transpose_a") else 1]
    elif product.type.startswith("BatchMatMul"):
        summed = first[-2 if product.get_attr("adj_x") else -1]
    else:
        raise ValueError(f"multiply-adds of {product.type} are not known")
    values = product.outputs[0].shape.num_elements()
    if values is None or summed is None:
        raise ValueError(f"{product.name} has no shape")
    return values * summed


def xla_functions(function: Any) -> int:
    """How many functions in the graph of a concrete function, itself included, carry the mark
    that makes TensorFlow compile them with XLA or fail: with it there is no falling back."""
    library = function.graph.as_graph_def().library.function
    own = function.function_def.attr
    marks = [own] + [entry.attr for entry in library]
    return sum(attributes["_XlaMustCompile"].b for attributes in marks)
