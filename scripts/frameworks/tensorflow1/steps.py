"""The parts of the graph that a session runs: variables, a training step or a forward pass, and
optimizers; what XLA compiles of it (``tf.xla.experimental.jit_scope``); the operations that ran.

Variables have the names and layouts that all frameworks share.

``tf.xla.experimental.compile`` and the session's global JIT are not used: both make one LLVM
function of a forward or backward pass, and the time that LLVM needs to unroll its loops grows with
the square of the function's size: many minutes for the training of ResNet-50. Separate scopes
around residual blocks or layers of a transformer, and around their gradients, give LLVM small
functions. Operations between scopes, such as the optimizer's arithmetic, join a neighbour.

Optimizers follow the rules of ``torch.optim``, on TensorFlow's fused update kernels.
``tf.train.MomentumOptimizer`` knows no weight decay. ``tf.train.AdamOptimizer`` adds epsilon to
sqrt(v) before the bias is corrected: at the first step that epsilon is sqrt(1 / (1 - beta2)), about
30 times, too large. ``tf.contrib.opt.AdamWOptimizer`` inherits that, and its decay does not follow
the learning rate."""

from __future__ import annotations

import contextlib
from collections import Counter
from dataclasses import dataclass
from typing import Any, Callable, ContextManager, Dict, FrozenSet, Iterable, List, Sequence, Tuple

import tensorflow as tf
from harness.adapter import Mismatch
from harness.optimizers import update_rules
from tensorflow.python.grappler import tf_optimizer

Tensors = List[tf.Tensor]
Variables = Dict[str, Any]
#: A context for operations that are compiled together.
Scope = Callable[[], ContextManager[Any]]
MATMULS = {
    *("MatMul", "_FusedMatMul", "BatchMatMul", "BatchMatMulV2"),
    *("Conv2D", "_FusedConv2D", "DepthwiseConv2dNative"),
    *("Conv2DBackpropInput", "Conv2DBackpropFilter"),
    *("DepthwiseConv2dNativeBackpropInput", "DepthwiseConv2dNativeBackpropFilter"),
}


def variable(initial: tf.Tensor, trainable: bool) -> tf.Variable:
    # Resource variables, which XLA needs; TensorFlow 1's default are reference variables.
    return tf.Variable(initial, trainable=trainable, use_resource=True)


def empty(shape: Sequence[int], dtype: Any) -> tf.Variable:
    """Return a variable of zeros on the device, for values that are assigned later."""
    return variable(tf.zeros(shape, dtype), trainable=False)


def resident(batch: Dict[str, Any]) -> Dict[str, tf.Variable]:
    """Return a variable on the device for each array of ``batch``, still empty. Fed data would be
    copied in every step, and a constant is part of the graph, which is limited to 2 GiB."""
    return {name: empty(array.shape, array.dtype) for name, array in batch.items()}


def load(variables: Variables, arrays: Dict[str, Any], session: tf.Session) -> None:
    """Load arrays into the ``variables`` of the same names."""
    for name, variable in variables.items():
        variable.load(arrays[name], session)


@dataclass(frozen=True)
class Training:
    """Training step. ``gradients``, by name, are averaged over the ranks, not clipped and without
    decay. Only ``update`` changes variables. ``logits`` and ``gradients`` come from the operations
    of ``loss`` and ``update``, not from copies of them."""

    loss: tf.Tensor
    logits: Tensors
    gradients: Dict[str, tf.Tensor]
    update: tf.Operation


def training(
    definition: Any,
    variables: Variables,
    batch: Dict[str, tf.Variable],
    optimizer: tf.train.Optimizer,
    scope: Scope,
    average: Callable[[Tensors], Tensors],
) -> Training:
    """Return the training step. ``average``: averages over the ranks."""
    logits, statistics = definition.forward(variables, batch, True, scope)
    with scope():
        loss = definition.loss(logits, batch)
    parameters = {name: entry for name, entry in variables.items() if entry.trainable}
    pairs = optimizer.compute_gradients(loss, list(parameters.values()))
    # An embedding's gradient consists of slices, but all rows decay and have moments.
    gradients = average([tf.convert_to_tensor(gradient) for gradient, _ in pairs])
    limit = definition.hyper.get("clip_global_norm")
    applied = gradients if limit is None else tf.clip_by_global_norm(gradients, limit)[0]
    updates = [optimizer.apply_gradients(zip(applied, parameters.values()))]
    for name, pairs in statistics.items():
        share = definition.hyper["batch_norm_momentum"]  # share of the new statistics
        old = variables[name]
        updates.append(old.assign_sub(share * (old - pairs), read_value=False))
    return Training(loss, logits, dict(zip(parameters, gradients)), tf.group(*updates))


def inference(
    definition: Any, variables: Variables, batch: Dict[str, tf.Variable], scope: Scope
) -> Tuple[Tensors, List[tf.Variable], tf.Operation]:
    """Return logits, variables on the device, and an operation that computes the logits and leaves
    them in these variables: a session copies all fetched values to the host."""
    logits = list(definition.forward(variables, batch, False, scope)[0])
    outputs = [empty(tensor.shape, tensor.dtype) for tensor in logits]
    updates = [held.assign(tensor, read_value=False) for held, tensor in zip(outputs, logits)]
    return logits, outputs, tf.group(*updates)


def scope(compiler: str) -> Scope:
    if compiler == "none":
        return contextlib.nullcontext
    return lambda: tf.xla.experimental.jit_scope(separate_compiled_gradients=True)


def configure(compiler: str, config: tf.ConfigProto) -> None:
    """Keep Grappler from making fused operations, which XLA does not know; XLA fuses by itself."""
    if compiler != "none":
        rewriting = config.graph_options.rewrite_options
        rewriting.remapping = rewriting.OFF


def proof(executed: Iterable[Any]) -> Dict[str, Any]:
    """Return counts in the nodes that a session executed. Raises :class:`Mismatch` where nothing
    was compiled, or a matmul was left to TensorFlow's own kernels."""
    operations = Counter(node.op for node in executed)
    clusters = operations["_XlaRun"]
    outside = sorted(MATMULS.intersection(operations))
    if not clusters or outside:
        raise Mismatch(f"XLA compiled {clusters} clusters; left out: {outside or 'no matmul'}")
    return {"clusters": clusters}


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


def optimizer_of(
    model_config: Dict[str, Any], rate: tf.Variable, names: Dict[str, str]
) -> tf.train.Optimizer:
    """Return the optimizer that the model's hyper-parameters name, with this learning ``rate``, a
    scalar; it does not clip. ``names``: TensorFlow's names of trained parameters, by the names that
    frameworks share."""
    hyper = model_config["hyperparameters"]
    rules = update_rules(names, hyper)
    undecayed = frozenset(names[n] for n, rule in rules.items() if not rule.weight_decay)
    return {"sgd": CoupledMomentum, "adamw": AdamW}[hyper["optimizer"]](hyper, rate, undecayed)


class CoupledMomentum(tf.train.MomentumOptimizer):
    """SGD as ``torch.optim.SGD``: the weight decay is part of the gradient, so momentum sees it."""

    def __init__(self, hyper: Dict[str, Any], rate: tf.Variable, undecayed: FrozenSet[str]) -> None:
        super().__init__(rate, hyper["momentum"])
        self._weight_decay, self._undecayed = hyper["weight_decay"], undecayed

    def _resource_apply_dense(self, grad: tf.Tensor, var: tf.Variable) -> tf.Operation:
        if var.name in self._undecayed:
            return super()._resource_apply_dense(grad, var)
        return super()._resource_apply_dense(grad + self._weight_decay * var, var)


class AdamW(tf.train.AdamOptimizer):
    """``torch.optim.AdamW``: epsilon is added to sqrt(v / (1 - beta2^t)), and every parameter that
    decays loses ``learning_rate * weight_decay`` of itself before its update."""

    def __init__(self, hyper: Dict[str, Any], rate: tf.Variable, undecayed: FrozenSet[str]) -> None:
        super().__init__(rate, hyper["beta1"], hyper["beta2"], hyper["epsilon"])
        self._kept, self._undecayed = 1.0 - rate * hyper["weight_decay"], undecayed

    def _resource_apply_dense(self, grad: tf.Tensor, var: tf.Variable) -> tf.Operation:
        beta1_power, beta2_power = self._get_beta_accumulators()
        before = [grad]
        if var.name not in self._undecayed:
            # Decays after the gradient is computed; otherwise the forward pass would read decayed
            # weights.
            with tf.control_dependencies(before):
                before = [var.assign(var * self._kept, read_value=False)]
        with tf.control_dependencies(before):
            return tf.raw_ops.ResourceApplyAdam(
                var=var.handle,
                m=self.get_slot(var, "m").handle,
                v=self.get_slot(var, "v").handle,
                beta1_power=beta1_power,
                beta2_power=beta2_power,
                lr=self._lr_t,
                beta1=self._beta1_t,
                beta2=self._beta2_t,
                # The kernel divides by sqrt(v) + epsilon and multiplies by sqrt(1 - beta2^t).
                epsilon=self._epsilon * tf.sqrt(1.0 - beta2_power),
                grad=grad,
            )
