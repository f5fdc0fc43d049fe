"""What TensorFlow runs, read from its graphs: as built, as Grappler leaves them, as executed."""

from __future__ import annotations

from collections import Counter
from typing import Any, Dict, Iterable, List, Sequence, Set, Tuple

import tensorflow as tf
from tensorflow.python.grappler import tf_optimizer

CONVOLUTIONS = frozenset({"Conv2D", "_FusedConv2D"})
MATRIX_PRODUCTS = frozenset({"MatMul", "_FusedMatMul", "BatchMatMul", "BatchMatMulV2"})
BACKWARD_CONVOLUTIONS = frozenset({"Conv2DBackpropInput", "Conv2DBackpropFilter"})
PRODUCTS = CONVOLUTIONS | MATRIX_PRODUCTS | BACKWARD_CONVOLUTIONS


def run_and_observe(session: tf.Session, fetches: Sequence[Any]) -> Tuple[List[Any], List[Any]]:
    """The values of ``fetches``, and the nodes that were executed for them on all devices."""
    metadata = tf.RunMetadata()
    options = tf.RunOptions(output_partition_graphs=True)
    values = session.run(list(fetches), options=options, run_metadata=metadata)
    return values, [node for part in metadata.partition_graphs for node in part.node]


def optimized(config: tf.ConfigProto, operations: Iterable[tf.Operation]) -> List[Any]:
    """The nodes that Grappler makes of ``operations`` and all that they need. What XLA compiles of
    them is no longer seen among executed nodes."""
    operations = list(operations)
    meta_graph = tf.train.export_meta_graph(graph=operations[0].graph)
    fetches = meta_graph.collection_def["train_op"].node_list.value
    del fetches[:]
    fetches.extend(operation.name for operation in operations)
    return list(tf_optimizer.OptimizeGraph(config, meta_graph).node)


def product_dtypes(nodes: Iterable[Any]) -> Dict[str, int]:
    """Number of matrix products and convolutions in each dtype."""
    dtypes = (node.attr["T"].type for node in nodes if node.op in PRODUCTS)
    return dict(Counter(tf.as_dtype(dtype).name for dtype in dtypes))


def multiply_adds(outputs: Iterable[tf.Tensor]) -> int:
    """Of all products and convolutions behind ``outputs``, by the shapes in the graph as built."""
    total = 0
    for operation in _behind(outputs):
        if operation.type in CONVOLUTIONS:
            height, width, inner, _ = operation.inputs[1].shape.as_list()
            total += operation.outputs[0].shape.num_elements() * height * width * inner
        elif operation.type in MATRIX_PRODUCTS:
            transposed = "transpose_a" if operation.type == "MatMul" else "adj_x"
            inner = operation.inputs[0].shape[-2 if operation.get_attr(transposed) else -1].value
            total += operation.outputs[0].shape.num_elements() * inner
    return total


def _behind(outputs: Iterable[tf.Tensor]) -> Set[tf.Operation]:
    """All operations that ``outputs`` need."""
    found: Set[tf.Operation] = set()
    waiting = [output.op for output in outputs]
    while waiting:
        operation = waiting.pop()
        if operation not in found:
            found.add(operation)
            waiting.extend(tensor.op for tensor in operation.inputs)
            waiting.extend(operation.control_inputs)
    return found
