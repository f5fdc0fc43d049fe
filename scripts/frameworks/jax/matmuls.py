"""Matmuls of a function as JAX traces it, and of a program as XLA executes it, by dtype."""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import Any, Callable, Dict, Iterator, NamedTuple, Set, Tuple

import jax
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn

# XLA's instructions that execute a matmul; cuBLAS and cuDNN are called by custom-call
_EXECUTED = re.compile(r"= .*? (?:dot|convolution|custom-call)\(([^)]*)\)")
_DEFINED = re.compile(r"^\s*(?:ROOT )?%?([\w.-]+) = (\w+)\[", re.MULTILINE)
#: The default precision of matmuls under which XLA takes TF32 for float32.
TF32 = "tensorfloat32"
_XLA_DTYPES = {"f32": "float32", "bf16": "bfloat16", "f16": "float16"}


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
