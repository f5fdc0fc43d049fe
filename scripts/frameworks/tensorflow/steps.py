"""The functions that TensorFlow traces (a training step, a forward pass, a sum over the ranks), the
operations in their graphs, and optimizers.

Optimizers follow the rules of ``torch.optim``, on TensorFlow's fused update kernels; LAMB has no
such kernel. Keras's own SGD knows decoupled weight decay only, and its Adam adds epsilon to sqrt(v)
before the bias is corrected: at the first step that epsilon is sqrt(1 / (1 - beta2)), about 30
times, too large. Keras's Lamb decays outside the ratio of norms, and cannot exclude parameters from
the ratio."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any, Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional, Sequence

import keras
import tensorflow as tf
from harness.optimizers import UpdateRule, update_rules

Batch = Dict[str, tf.Tensor]
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
NameOf = Callable[[tf.Variable], str]


def traced(function: Callable[..., Any], xla: bool = False) -> Any:
    """Return ``function`` as a tf.function without AutoGraph. Nothing here or in the models
    branches on a tensor, and AutoGraph would take most of the time of tracing."""
    return tf.function(function, jit_compile=xla, autograph=False)


class Training(NamedTuple):
    """Functions of a training step; each is traced at its first call or when its graph is read."""

    step: Any  # batch -> this rank's mean loss; updates the model
    gradients: Any  # batch -> arguments of the optimizer


def training(
    definition: Any,
    model: keras.Model,
    optimizer: keras.optimizers.Optimizer,
    strategy: tf.distribute.Strategy,
    accumulation: int,
    xla: bool,
) -> Training:
    """Return a training step and its first part: forward pass, backward pass, all-reduce.
    Micro-batches are stacked along the first axis of a batch.

    XLA cannot compile the collective, so it compiles the parts before and after it as two programs.
    A single rank uses the same two programs: as one program, its step would not be a baseline for
    scaling."""
    variables = model.trainable_variables
    ranks = strategy.num_replicas_in_sync

    def differentiate(batch: Batch) -> Any:
        with tf.GradientTape() as tape:
            outputs = model(definition.inputs(batch), training=True)
            loss = definition.loss(outputs, batch)
            # This rank's share of the global mean, so that the ranks' gradients add up to the
            # mean's gradient.
            share = optimizer.scale_loss(loss / ranks)
        gradients = tape.gradient(share, variables)
        # An embedding's gradient consists of slices, but all rows decay and have moments.
        # Parameters that the loss of a user's model does not use get a gradient of zero.
        return loss, [
            tf.zeros(variable.shape, variable.dtype)
            if gradient is None
            else tf.convert_to_tensor(gradient)
            for gradient, variable in zip(gradients, variables)
        ]

    def update(gradients: List[tf.Tensor]) -> None:
        # Outside the replica context, so that Keras does not reduce a second time and clips the
        # sum.
        optimizer.apply(gradients, variables)

    whole: Callable[[Batch], Any] = differentiate
    if accumulation > 1:
        whole = _accumulated(differentiate, variables, accumulation)
    local = traced(whole, xla=True) if xla else whole
    apply = traced(update, xla=True) if xla else update

    def replica(batch: Batch) -> Any:
        loss, gradients = local(batch)
        context = tf.distribute.get_replica_context()
        return loss, context.all_reduce(tf.distribute.ReduceOp.SUM, gradients)

    def gradients(batch: Batch) -> List[tf.Tensor]:
        return strategy.run(replica, args=(batch,))[1]

    def step(batch: Batch) -> tf.Tensor:
        loss, gradients = strategy.run(replica, args=(batch,))
        apply(gradients)
        return loss

    return Training(traced(step), traced(gradients))


def _accumulated(
    differentiate: Callable[[Batch], Any], variables: List[Any], count: int
) -> Callable[[Batch], Any]:
    """Apply ``differentiate`` to ``count`` micro-batches in turn, and return the means of their
    losses and gradients. They run in a loop of the graph: unrolled, TensorFlow could start all at
    once and hold the activations of all."""

    def add(number: tf.Tensor, loss: tf.Tensor, total: List[tf.Tensor], batches: Batch) -> Any:
        value, gradients = differentiate({name: array[number] for name, array in batches.items()})
        return (
            number + 1,
            loss + value,
            [so_far + gradient for so_far, gradient in zip(total, gradients)],
        )

    def run(batches: Batch) -> Any:
        zeros = [tf.zeros(variable.shape, variable.dtype) for variable in variables]
        _, loss, total = tf.while_loop(
            lambda number, loss, total: number < count,
            lambda number, loss, total: add(number, loss, total, batches),
            (tf.constant(0), tf.constant(0.0), zeros),
            parallel_iterations=1,
            maximum_iterations=count,
        )
        return loss / count, [gradient / count for gradient in total]

    return run


def forward(definition: Any, model: keras.Model, training: bool, xla: bool) -> Any:
    """Return a function from a batch to the outputs: an inference step, and the first part of a
    training step."""
    return traced(lambda batch: model(definition.inputs(batch), training=training), xla)


def sum_over_ranks(strategy: tf.distribute.Strategy) -> Any:
    """Return a function from a scalar of each rank to the sum over ranks."""

    def replica(value: tf.Tensor) -> tf.Tensor:
        context = tf.distribute.get_replica_context()
        # The strategy requires a device, which an argument does not have.
        return context.all_reduce(tf.distribute.ReduceOp.SUM, tf.identity(value))

    return traced(lambda value: strategy.run(replica, args=(value,)))


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
    graph; None if the graph does not show all, as in loops."""
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
    """Return the bytes that each all-reduce in the graph of a concrete function sends; an
    all-reduce in a loop counts once."""
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


def optimizer_of(model_config: Dict[str, Any], name_of: NameOf) -> keras.optimizers.Optimizer:
    """Return the optimizer that the model's hyper-parameters name. ``name_of``: function from a
    variable to the name that all frameworks share."""
    hyper = model_config["hyperparameters"]
    if hyper["optimizer"] == "sgd":
        return CoupledSGD(
            hyper, name_of, learning_rate=hyper["learning_rate"], momentum=hyper["momentum"]
        )
    return {"adamw": AdamW, "lamb": Lamb}[hyper["optimizer"]](
        hyper,
        name_of,
        learning_rate=hyper["learning_rate"],
        beta_1=hyper["beta1"],
        beta_2=hyper["beta2"],
        epsilon=hyper["epsilon"],
        global_clipnorm=hyper.get("clip_global_norm"),
    )


class _Ruled(keras.optimizers.Optimizer):
    """Optimizer that updates each variable by its rule. Keras clips by global norm."""

    def __init__(self, hyper: Dict[str, Any], name_of: NameOf, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._hyper, self._name_of = hyper, name_of

    def build(self, variables: Sequence[tf.Variable]) -> None:
        rules = update_rules(map(self._name_of, variables), self._hyper)
        self._rules: List[UpdateRule] = list(rules.values())
        super().build(variables)


class CoupledSGD(_Ruled, keras.optimizers.SGD):
    """``torch.optim.SGD``: the weight decay is part of the gradient, so momentum sees it. The
    momentum accumulates gradients, as in TensorFlow 1; Keras's accumulates steps, which include
    earlier learning rates."""

    def update_step(self, gradient: tf.Tensor, variable: tf.Variable, learning_rate: Any) -> None:
        index = self._get_variable_index(variable)
        if self._rules[index].weight_decay:
            gradient += self._rules[index].weight_decay * variable
        tf.raw_ops.ResourceApplyMomentum(
            var=variable.handle,
            accum=self.momentums[index].handle,
            lr=tf.cast(learning_rate, variable.dtype),
            grad=gradient,
            momentum=self.momentum,
        )


class AdamW(_Ruled, keras.optimizers.Adam):
    """``torch.optim.AdamW``: epsilon is added to sqrt(v / (1 - beta2^t)), and every parameter that
    decays loses ``learning_rate * weight_decay`` of itself before its update."""

    def update_step(self, gradient: tf.Tensor, variable: tf.Variable, learning_rate: Any) -> None:
        index = self._get_variable_index(variable)
        rule = self._rules[index]
        rate = tf.cast(learning_rate, variable.dtype) * rule.rate_factor
        if rule.weight_decay:
            variable.assign_sub(rate * rule.weight_decay * variable)
        step = tf.cast(self.iterations + 1, variable.dtype)
        beta2_power = tf.pow(tf.cast(self.beta_2, variable.dtype), step)
        tf.raw_ops.ResourceApplyAdam(
            var=variable.handle,
            m=self._momentums[index].handle,
            v=self._velocities[index].handle,
            beta1_power=tf.pow(tf.cast(self.beta_1, variable.dtype), step),
            beta2_power=beta2_power,
            lr=rate,
            beta1=self.beta_1,
            beta2=self.beta_2,
            # The kernel divides by sqrt(v) + epsilon and multiplies by sqrt(1 - beta2^t).
            epsilon=self.epsilon * tf.sqrt(1.0 - beta2_power),
            grad=gradient,
        )


class Lamb(_Ruled, keras.optimizers.Lamb):
    """Keras's Lamb with the decay within the ratio of norms, as in You et al. 2019
    (arXiv:1904.00962) and TensorFlow Addons, and with parameters that are excluded from decay or
    ratio."""

    def update_step(self, gradient: tf.Tensor, variable: tf.Variable, learning_rate: Any) -> None:
        index = self._get_variable_index(variable)
        rule = self._rules[index]
        step = tf.cast(self.iterations + 1, variable.dtype)
        mean, square = self._momentums[index], self._velocities[index]
        self.assign_add(mean, (gradient - mean) * (1 - self.beta_1))
        self.assign_add(square, (tf.square(gradient) - square) * (1 - self.beta_2))
        root = tf.sqrt(square / (1 - tf.pow(tf.cast(self.beta_2, variable.dtype), step)))
        corrected = mean / (1 - tf.pow(tf.cast(self.beta_1, variable.dtype), step))
        change = corrected / (root + self.epsilon) + rule.weight_decay * variable
        if rule.trust_ratio:
            change *= trust_ratio(tf.norm(variable), tf.norm(change))
        self.assign_sub(variable, tf.cast(learning_rate, variable.dtype) * change)


def trust_ratio(of_weight: tf.Tensor, of_change: tf.Tensor) -> tf.Tensor:
    """Return the ratio of two norms; 1 where either is zero."""
    scalable = tf.logical_and(of_weight > 0, of_change > 0)
    return tf.where(scalable, of_weight / of_change, tf.ones_like(of_weight))
