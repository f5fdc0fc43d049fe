"""Operations that TensorFlow runs, read from its graphs: as built, as Grappler leaves them, as
executed."""

from __future__ import annotations

from typing import Any, Iterable, List, Sequence, Set, Tuple

import tensorflow as tf
from harness.adapter import ExecutedMatmul
from tensorflow.python.grappler import tf_optimizer

CONVOLUTIONS = frozenset({"Conv2D", "_FusedConv2D"})
DEPTHWISE = frozenset({"DepthwiseConv2dNative"})
MATRIX_MATMULS = frozenset({"MatMul", "_FusedMatMul", "BatchMatMul", "BatchMatMulV2"})
BACKWARD_CONVOLUTIONS = frozenset(
    f"{convolution}Backprop{operand}"
    for convolution in ("Conv2D", "DepthwiseConv2dNative")
    for operand in ("Input", "Filter")
)
#: All matmuls of a recurrent layer, and of its backward pass.
RECURRENT, BACKWARD_RECURRENT = frozenset({"BlockLSTM"}), frozenset({"BlockLSTMGrad"})
FORWARD = CONVOLUTIONS | DEPTHWISE | MATRIX_MATMULS | RECURRENT
MATMULS = FORWARD | BACKWARD_CONVOLUTIONS | BACKWARD_RECURRENT


def run_and_observe(session: tf.Session, fetches: Sequence[Any]) -> Tuple[List[Any], List[Any]]:
    """Return the values of ``fetches``, and the nodes that were executed for them on all
    devices."""
    metadata = tf.RunMetadata()
    options = tf.RunOptions(output_partition_graphs=True)
    values = session.run(list(fetches), options=options, run_metadata=metadata)
    return values, [node for part in metadata.partition_graphs for node in part.node]


def optimized(config: tf.ConfigProto, operations: Iterable[tf.Operation]) -> List[Any]:
    """Return the nodes that Grappler makes of ``operations`` and all that they need. What XLA
    compiles of them is no longer seen among executed nodes."""
    operations = list(operations)
    meta_graph = tf.train.export_meta_graph(graph=operations[0].graph)
    fetches = meta_graph.collection_def["train_op"].node_list.value
    del fetches[:]
    fetches.extend(operation.name for operation in operations)
    return list(tf_optimizer.OptimizeGraph(config, meta_graph).node)


def matmuls(nodes: Iterable[Any]) -> List[ExecutedMatmul]:
    """Return the matmuls and convolutions among ``nodes``, with their dtypes but not their
    sizes."""
    dtypes = (node.attr["T"].type for node in nodes if node.op in MATMULS)
    return [ExecutedMatmul(tf.as_dtype(dtype).name) for dtype in dtypes]


def sized_matmuls(outputs: Iterable[tf.Tensor]) -> List[ExecutedMatmul]:
    """Return the matmuls of a forward pass that ``outputs`` depend on, with multiply-adds by the
    shapes in the graph as built."""
    matmuls = (op for op in _behind(outputs) if op.type in FORWARD)
    return [
        ExecutedMatmul(tf.as_dtype(op.get_attr("T")).name, _multiply_adds(op)) for op in matmuls
    ]


def _multiply_adds(matmul: tf.Operation) -> int:
    if matmul.type in RECURRENT:  # every row of every step by one matrix
        steps, rows, _ = matmul.inputs[1].shape.as_list()
        return steps * rows * matmul.inputs[4].shape.num_elements()
    values = matmul.outputs[0].shape.num_elements()
    if matmul.type in CONVOLUTIONS:
        height, width, inner, _ = matmul.inputs[1].shape.as_list()
        return values * height * width * inner
    if matmul.type in DEPTHWISE:
        height, width, _, _ = matmul.inputs[1].shape.as_list()
        return values * height * width
    transposed = "transpose_a" if matmul.type == "MatMul" else "adj_x"
    return values * matmul.inputs[0].shape[-2 if matmul.get_attr(transposed) else -1].value


def _behind(outputs: Iterable[tf.Tensor]) -> Set[tf.Operation]:
    """Return all operations that ``outputs`` need."""
    operations: Set[tf.Operation] = set()
    waiting = [output.op for output in outputs]
    while waiting:
        operation = waiting.pop()
        if operation not in operations:
            operations.add(operation)
            waiting.extend(tensor.op for tensor in operation.inputs)
            waiting.extend(operation.control_inputs)
    return operations
