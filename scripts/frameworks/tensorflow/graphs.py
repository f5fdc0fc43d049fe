"""What TensorFlow will run, read from the graph of a traced function."""

from __future__ import annotations

from typing import Any, Iterable, List

import tensorflow as tf
from harness.adapter import Product

PRODUCTS = frozenset(
    {
        *("MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3", "Einsum", "_FusedMatMul"),
        *("Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter"),
        "DepthwiseConv2dNative",
        "DepthwiseConv2dNativeBackpropInput",
        "DepthwiseConv2dNativeBackpropFilter",
    }
)


def products(function: Any) -> List[Product]:
    """Matrix products and convolutions in a concrete function and all that it calls, by their
    dtypes alone."""
    graph = function.graph.as_graph_def()
    library = {entry.signature.name: entry.node_def for entry in graph.library.function}
    products: List[Product] = []

    def visit(nodes: Iterable[Any]) -> None:
        for node in nodes:
            if node.op in PRODUCTS:
                products.append(Product(tf.as_dtype(node.attr["T"].type).name))
            for attribute in node.attr.values():
                visit(library.get(attribute.func.name, ()))

    visit(graph.node)
    return products


def sized_products(function: Any) -> List[Product]:
    """Those in the graph of a concrete function of a forward pass, with their multiply-adds from
    the shapes in it."""
    operations = (op for op in function.graph.get_operations() if op.type in PRODUCTS)
    return [Product(op.inputs[0].dtype.name, _multiply_adds(op)) for op in operations]


def _multiply_adds(product: tf.Operation) -> int:
    """Values of the output times products summed for each. Raises ValueError where that is not
    known for this type of operation or a shape is not."""
    first, second = (tensor.shape for tensor in product.inputs)
    if product.type == "Conv2D":  # filters (height, width, in, out)
        summed = second[:-1].num_elements()
    elif product.type == "DepthwiseConv2dNative":  # (height, width, in, out of each)
        summed = second[:-2].num_elements()
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
