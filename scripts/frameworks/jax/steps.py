"""Steps of any model: pure functions from a state to the next, their compilation by XLA, the
operations that they run, and optimizers.

A state consists of shared arrays (parameters, moments of the optimizer) and each rank's own arrays
(running statistics, the key of its random numbers).

Optimizers follow the rules of ``torch.optim``, by Optax: its ``adamw`` decays outside the moments
and adds epsilon after the bias correction, its ``sgd`` starts the momentum with the first gradient.
Here, their last part (``scale_by_learning_rate``) keeps the rate as an array of the state, so that
a compiled step can take another rate."""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import Any, Callable, Dict, Iterator, NamedTuple, Optional, Set, Tuple

import jax
import jax.numpy as jnp
import optax
from harness.adapter import Mismatch, Unsupported
from harness.optimizers import LAYER_DECAY, NO_DECAY, UpdateRule, update_rules
from jax import Array
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn

from .models.layers import Arrays

_ALL_REDUCED = re.compile(r"= (.*?) all-reduce(?:-start)?\(")
_COLLECTIVE = re.compile(r" (all-gather|reduce-scatter|all-reduce)(?:-start)?\(")
_ARRAY = re.compile(r"\b[a-z]+(\d+)\[([\d,]*)\]")
# XLA's instructions that execute a matmul; cuBLAS and cuDNN are called by custom-call
_EXECUTED = re.compile(r"= .*? (?:dot|convolution|custom-call)\(([^)]*)\)")
_DEFINED = re.compile(r"^\s*(?:ROOT )?%?([\w.-]+) = (\w+)\[", re.MULTILINE)
#: The default precision of matmuls under which XLA takes TF32 for float32.
TF32 = "tensorfloat32"
_XLA_DTYPES = {"f32": "float32", "bf16": "bfloat16", "f16": "float16"}


class Shared(NamedTuple):
    parameters: Arrays
    moments: optax.OptState


class Own(NamedTuple):
    statistics: Arrays
    key: Array


Forward = Callable[[Arrays, Own, Arrays], Tuple[Tuple[Array, ...], Own]]
Differentiate = Callable[[Arrays, Own, Arrays], Tuple[Array, Own, Arrays]]


def forward(definition: Any, dtype: Any, train: bool) -> Forward:
    """Return a function from parameters, a rank's own state and its batch to logits and next
    state."""

    def run(parameters: Arrays, own: Own, batch: Arrays) -> Tuple[Tuple[Array, ...], Own]:
        key, dropout = jax.random.split(own.key) if train else (own.key, None)
        outputs, statistics = definition.forward(parameters, own.statistics, batch, dropout, dtype)
        return outputs, Own(statistics, key)

    return run


def differentiation(forward: Forward, loss: Callable[..., Array]) -> Differentiate:
    """Return a function that computes this rank's loss, next own state and gradients."""

    def scored(parameters: Arrays, own: Own, batch: Arrays) -> Tuple[Array, Own]:
        outputs, own = forward(parameters, own, batch)
        return loss(outputs, batch), own

    def run(parameters: Arrays, own: Own, batch: Arrays) -> Tuple[Array, Own, Arrays]:
        (value, own), gradients = jax.value_and_grad(scored, has_aux=True)(parameters, own, batch)
        return value, own, gradients

    return run


def accumulated(
    differentiate: Differentiate, vary: Callable[[Any], Any], in_loop: bool
) -> Differentiate:
    """Return a function that differentiates over micro-batches and returns the means of their
    losses and gradients.

    Micro-batches are stacked along the first axis of ``batch``. ``in_loop``: as ``lax.scan``, which
    keeps one iteration in memory. ``vary``: see :meth:`sharded.Together.vary`."""

    def run(parameters: Arrays, own: Own, batch: Arrays) -> Tuple[Array, Own, Arrays]:
        count = len(next(iter(batch.values())))

        def add(carried: Tuple[Own, Arrays], micro_batch: Arrays) -> Tuple[Any, Array]:
            own, total = carried
            value, own, gradients = differentiate(parameters, own, micro_batch)
            return (own, jax.tree.map(jnp.add, total, gradients)), value

        zeros = {name: jnp.zeros(array.shape, array.dtype) for name, array in parameters.items()}
        carried = own, vary(zeros)
        if in_loop:
            carried, values = jax.lax.scan(add, carried, batch)
        else:
            losses = []
            for number in range(count):
                carried, value = add(carried, {name: a[number] for name, a in batch.items()})
                losses.append(value)
            values = jnp.stack(losses)
        own, total = carried
        return values.mean(), own, {name: array / count for name, array in total.items()}

    return run


def averaged(differentiate: Differentiate, arrays: Any) -> Differentiate:
    """Differentiate as one rank's part of a program over all ranks, and average the gradients over
    them; the loss is still this rank's."""

    def run(parameters: Arrays, own: Own, batch: Arrays) -> Tuple[Array, Own, Arrays]:
        value, own, gradients = differentiate(arrays.vary(parameters), own, batch)
        return value, own, arrays.average(gradients)

    return run


def training(
    differentiate: Differentiate, optimizer: optax.GradientTransformation
) -> Callable[[Shared, Own, Arrays], Tuple[Shared, Own, Array]]:
    """Return the step. Its loss has the shape (1,), so that losses of all ranks can be
    concatenated."""

    def step(shared: Shared, own: Own, batch: Arrays) -> Tuple[Shared, Own, Array]:
        value, own, gradients = differentiate(shared.parameters, own, batch)
        updates, moments = optimizer.update(gradients, shared.moments, shared.parameters)
        parameters = optax.apply_updates(shared.parameters, updates)
        return Shared(parameters, moments), own, value[None]

    return step


def compiled(
    function: Callable[..., Any],
    arguments: Tuple[Any, ...],
    donated: Tuple[int, ...] = (),
    options: Optional[Dict[str, Any]] = None,
    shardings: Any = None,
) -> jax.stages.Compiled:
    """Compile ``function`` by XLA ahead of time. The result takes arguments of these shapes only,
    so it cannot be compiled a second time. ``donated`` arguments give their memory to the results,
    as JAX's documentation recommends ("Buffer donation"). ``shardings``: shardings of the results;
    None where XLA chooses."""
    chosen = {} if shardings is None else {"out_shardings": shardings}
    traced = jax.jit(function, donate_argnums=donated, **chosen).trace(*arguments)
    return traced.lower().compile(compiler_options=options)


def proof(run: Callable[..., Any]) -> Dict[str, Any]:
    """Return counts of what XLA compiled in a step.

    Raise :class:`Mismatch` where ``run`` is not an executable, or has no fusions, which happens
    when XLA's passes are switched off."""
    if not isinstance(run, jax.stages.Compiled):
        raise Mismatch("the step is not an executable of XLA: it runs operation by operation")
    counts = {"executables": 1, "fusions": len(re.findall(r" fusion\(", run.as_text()))}
    if not counts["fusions"]:
        raise Mismatch("XLA fused nothing in the step's executable")
    return counts


def all_reduced_bytes(program: jax.stages.Compiled) -> Iterator[int]:
    """Yield the bytes of each array that the all-reduces of an executable send.

    They are read from XLA's optimised program. XLA joins all-reduces into one operation, which
    sends each array separately."""
    for results in _ALL_REDUCED.findall(program.as_text()):
        for bits, shape in _ARRAY.findall(results):
            yield math.prod(map(int, filter(None, shape.split(",")))) * int(bits) // 8


def collectives(program: jax.stages.Compiled) -> Dict[str, int]:
    """Count the collectives in XLA's optimised program by kind; those in a loop count once."""
    names = _COLLECTIVE.findall(program.as_text())
    return dict(Counter(name.replace("-", "_") for name in names))


def executed_dtypes(program: jax.stages.Compiled) -> Set[str]:
    """Return the dtypes of the operands of all matmuls in an executable, from XLA's optimised
    program."""
    text = program.as_text()
    defined = dict(_DEFINED.findall(text))
    operands = ",".join(_EXECUTED.findall(text)).split(",")
    dtypes = {defined.get(operand.strip().lstrip("%")) for operand in operands}
    return {_XLA_DTYPES[dtype] for dtype in dtypes if dtype in _XLA_DTYPES}


def _equations(jaxpr: Jaxpr, times: int = 1) -> Iterator[Tuple[JaxprEqn, int]]:
    """Yield all equations, including those of called functions, and how many ``times`` each is
    computed: in a scan, once per step."""
    for equation in jaxpr.eqns:
        yield equation, times
        steps = equation.params["length"] if equation.primitive.name == "scan" else 1
        for parameter in equation.params.values():
            for inner in parameter if isinstance(parameter, (list, tuple)) else [parameter]:
                if isinstance(inner, ClosedJaxpr):
                    yield from _equations(inner.jaxpr, times * steps)
                elif isinstance(inner, Jaxpr):
                    yield from _equations(inner, times * steps)


class Operations(NamedTuple):
    """Counts of the operations of a function. ``matmuls`` and ``results`` (operations that return
    floating-point numbers): by dtype, each counted once in a loop; ``multiply_adds``: multiply-adds
    of all iterations, from the shapes. A convolution's products with padding count, too."""

    matmuls: Dict[str, int]
    results: Dict[str, int]
    multiply_adds: int


def operations(function: Callable[..., Any], arguments: Tuple[Any, ...]) -> Operations:
    """Return the operations of ``function``, which is traced and not run."""
    matmuls: Dict[str, int] = Counter()
    results: Dict[str, int] = Counter()
    multiply_adds = 0
    for equation, times in _equations(jax.jit(function).trace(*arguments).jaxpr.jaxpr):
        if equation.primitive.name in ("dot_general", "conv_general_dilated"):
            matmuls[_dtype(equation)] += 1
            multiply_adds += times * _multiply_adds(equation)
        for result in equation.outvars:
            if jax.numpy.issubdtype(result.aval.dtype, jax.numpy.floating):
                results[str(result.aval.dtype)] += 1
    return Operations(dict(matmuls), dict(results), multiply_adds)


def _dtype(matmul: JaxprEqn) -> str:
    """Return the dtype of the operands of a matmul.

    Float32 counts as such only at the highest precision or, under ``tf32``, at the next: for any
    other XLA takes TF32 on GPUs that have it."""
    dtypes = sorted({str(operand.aval.dtype) for operand in matmul.invars})
    asked = matmul.params["precision"]
    tf32 = jax.config.jax_default_matmul_precision == TF32
    expected = jax.lax.Precision.HIGH if tf32 else jax.lax.Precision.HIGHEST
    if dtypes == ["float32"] and asked != (expected, expected):
        return f"float32 with precision {asked}"
    return "*".join(dtypes)


def _multiply_adds(matmul: JaxprEqn) -> int:
    left, right = (operand.aval.shape for operand in matmul.invars)
    (out,) = (result.aval.shape for result in matmul.outvars)
    if matmul.primitive.name == "dot_general":
        (contracted, _), _ = matmul.params["dimension_numbers"]
        each = math.prod(left[axis] for axis in contracted)
    else:
        features = matmul.params["dimension_numbers"].rhs_spec[0]
        each = math.prod(right) // right[features]
    return math.prod(out) * each


class Rate(NamedTuple):
    """The learning rate, float32, in the state of an optimizer."""

    value: Any


def with_rate(moments: optax.OptState, rate: Rate) -> optax.OptState:
    """Return the state of an optimizer with another ``rate``. Raises :class:`Unsupported` where the
    rate is not part of the state."""

    def is_rate(node: Any) -> bool:
        return isinstance(node, Rate)

    if not any(map(is_rate, jax.tree.leaves(moments, is_leaf=is_rate))):
        raise Unsupported("the learning rate of a user's own optimizer is compiled into the step")
    return jax.tree.map(lambda node: rate if is_rate(node) else node, moments, is_leaf=is_rate)


def optimizer_of(model_config: Dict[str, Any]) -> optax.GradientTransformation:
    """Return the optimizer that the model's hyper-parameters name; gradients are clipped before
    it."""
    hyper = model_config["hyperparameters"]
    name = hyper["optimizer"]
    decay = optax.add_decayed_weights(hyper["weight_decay"])
    if NO_DECAY in hyper:
        decay = _masked(decay, hyper, lambda rule: rule.weight_decay != 0.0)
    if name == "sgd":  # weight decay before the momentum, as part of the gradient
        parts = [decay, optax.trace(hyper["momentum"])]
    else:
        parts = [optax.scale_by_adam(hyper["beta1"], hyper["beta2"], hyper["epsilon"]), decay]
    if name == "lamb":
        ratio = optax.scale_by_trust_ratio()
        parts.append(_masked(ratio, hyper, lambda rule: rule.trust_ratio))
    if hyper.get("clip_global_norm") is not None:
        parts.insert(0, optax.clip_by_global_norm(hyper["clip_global_norm"]))
    return optax.chain(*parts, _scale_by_rate(hyper))


def _masked(
    transformation: optax.GradientTransformation,
    hyper: Dict[str, Any],
    is_in: Callable[[UpdateRule], bool],
) -> optax.GradientTransformation:
    """Restrict ``transformation`` to the parameters whose rule ``is_in`` accepts."""

    def mask(parameters: Dict[str, Any]) -> Dict[str, bool]:
        return {name: is_in(rule) for name, rule in update_rules(parameters, hyper).items()}

    return optax.masked(transformation, mask)


def _scale_by_rate(hyper: Dict[str, Any]) -> optax.GradientTransformation:
    """Return a transformation that scales updates, in their dtype, by the negative rate in its
    state, and by the factors of layers that have their own rates."""

    def init(parameters: Any) -> Rate:
        return Rate(jnp.float32(hyper["learning_rate"]))

    def update(updates: Any, state: Rate, parameters: Optional[Any] = None) -> Tuple[Any, Rate]:
        if LAYER_DECAY in hyper:
            rules = update_rules(updates, hyper)
            updates = {name: change * rules[name].rate_factor for name, change in updates.items()}
        return jax.tree.map(lambda leaf: -state.value.astype(leaf.dtype) * leaf, updates), state

    return optax.GradientTransformation(init, update)
