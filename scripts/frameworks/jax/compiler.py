"""Compiled functions, and counts read from XLA's optimised program."""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import Any, Callable, Dict, Iterator, Optional, Tuple

import jax
from harness.adapter import Mismatch

_ALL_REDUCED = re.compile(r"= (.*?) all-reduce(?:-start)?\(")
_COLLECTIVE = re.compile(r" (all-gather|reduce-scatter|all-reduce)(?:-start)?\(")
_ARRAY = re.compile(r"\b[a-z]+(\d+)\[([\d,]*)\]")


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
