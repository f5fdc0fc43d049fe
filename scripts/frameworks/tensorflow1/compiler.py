"""XLA by ``tf.xla.experimental.jit_scope``: which parts of the graph it compiles, and proof that it
compiled them.

``tf.xla.experimental.compile`` and the session's global JIT are not used: both make one LLVM
function of a forward or backward pass, and the time that LLVM needs to unroll its loops grows with
the square of the function's size: many minutes for the training of ResNet-50. Separate scopes
around residual blocks or layers of a transformer, and around their gradients, give LLVM small
functions. Operations between scopes, such as the optimizer's arithmetic, join a neighbour.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from typing import Any, Callable, ContextManager, Dict, Iterable

import tensorflow as tf
from harness.adapter import Mismatch

from .matmuls import MATMULS

#: A context for operations that are compiled together.
Scope = Callable[[], ContextManager[Any]]


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
        raise Mismatch(f"XLA compiled {clusters} clusters; left out: {outside or 'no product'}")
    return {"clusters": clusters}
