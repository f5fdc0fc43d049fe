"""Operations that TensorFlow runs, read from its graphs after Grappler's optimization and after
execution."""

from __future__ import annotations

from collections import Counter
from typing import Any, Dict, Iterable, List, Sequence, Tuple

import tensorflow as tf
from tensorflow.python.grappler import tf_optimizer

MATMULS = {
    *("MatMul", "_FusedMatMul", "BatchMatMul", "BatchMatMulV2"),
    *("Conv2D", "_FusedConv2D", "DepthwiseConv2dNative"),
    *("Conv2DBackpropInput", "Conv2DBackpropFilter"),
    *("DepthwiseConv2dNativeBackpropInput", "DepthwiseConv2dNativeBackpropFilter"),
}


def run_and_observe(session: tf.Session, fetches: Sequence[Any]) -> Tuple[List[Any], List[Any]]:
    """Return the values of ``fetches``, and the nodes that were executed for them on all
    devices."""
    metadata = tf.RunMetadata()
    options = tf.RunOptions(output_partition_graphs=True)
    values = session.run(list(fetches), options=options, run_metadata=metadata)
    return values, [node for part in metadata.partition_graphs for node in part.node]


def optimized(config: tf.ConfigProto, operations: Iterable[tf.Operation]) -> List[Any]:
    """Return the nodes into which Grappler optimizes ``operations`` and all their inputs. Executed
    nodes do not show the parts that XLA compiles."""
    operations = list(operations)
    meta_graph = tf.train.export_meta_graph(graph=operations[0].graph)
    fetches = meta_graph.collection_def["train_op"].node_list.value
    del fetches[:]
    fetches.extend(operation.name for operation in operations)
    return list(tf_optimizer.OptimizeGraph(config, meta_graph).node)


def matmul_dtypes(nodes: Iterable[Any]) -> Dict[str, int]:
    """Count the matmuls and convolutions among ``nodes`` by dtype."""
    dtypes = (node.attr["T"].type for node in nodes if node.op in MATMULS)
    return dict(Counter(tf.as_dtype(dtype).name for dtype in dtypes))
