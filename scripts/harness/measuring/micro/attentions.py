"""Attention layers of a model, and the check of a framework's results.

Standard library and numpy.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Dict, List, Mapping, Optional, Sequence

from harness.measuring.micro import samples
from harness.operations import AttentionShape

#: Rows of queries that are computed in float64 at a time.
ROWS = 512


def layer_counts(
    model_config: Mapping[str, Any], batch: int, sequence: Optional[int]
) -> Dict[AttentionShape, int]:
    """Return the distinct attention shapes of a model and the number of layers of each; {} without
    attention.

    Models with key-value heads are decoders, whose attention is causal; an encoder's is not."""
    hyper = model_config.get("hyperparameters", {})
    if "heads" not in hyper or sequence is None:
        return {}
    counts: Dict[AttentionShape, int] = Counter()
    for config in [hyper, *([{**hyper, **hyper["generator"]}] if "generator" in hyper else [])]:
        heads = config["heads"]
        shape = AttentionShape(
            batch, heads, config.get("key_value_heads", heads), sequence, config["hidden"] // heads,
            causal="key_value_heads" in config,
        )  # fmt: skip
        counts[shape] += config["layers"]
    return dict(counts)


def operations(shape: AttentionShape) -> int:
    """Return the floating-point operations of the forward pass.

    There are two matmuls; causal attention needs only the elements on and below the diagonal. The
    backward pass has twice as many; recomputation does not count."""
    pairs = shape.sequence * (shape.sequence + 1) // 2 if shape.causal else shape.sequence**2
    return 4 * shape.batch * shape.heads * pairs * shape.size


def operands(shape: AttentionShape, random: Any) -> List[Any]:
    """Return float32 query, key, value and gradient of the result, random numbers around 0."""
    import numpy as np

    shapes = (shape.query_shape, shape.key_shape, shape.key_shape, shape.query_shape)
    return [random.standard_normal(extents).astype(np.float32) for extents in shapes]


def exact(shape: AttentionShape, arrays: Sequence[Any], n: int, group: int) -> List[Any]:
    """Return float64 results of sample ``n`` for the heads that share key-value head ``group``.

    They are the result (heads, sequence, size), and the gradients of query, key and value."""
    import numpy as np

    sharing = shape.heads // shape.key_value_heads
    heads = slice(group * sharing, (group + 1) * sharing)
    query, gradient = (arrays[i][n, heads].astype(np.float64) for i in (0, 3))
    key, value = (arrays[i][n, group].astype(np.float64) for i in (1, 2))
    scale = shape.size**-0.5
    result, query_gradient = np.empty_like(query), np.empty_like(query)
    key_gradient, value_gradient = np.zeros_like(key), np.zeros_like(value)
    for head in range(sharing):
        for first in range(0, shape.sequence, ROWS):
            rows = slice(first, first + ROWS)
            q, g = query[head, rows], gradient[head, rows]
            scores = scale * q @ key.T
            if shape.causal:
                later = np.arange(shape.sequence) > np.arange(first, first + len(q))[:, None]
                scores = np.where(later, -np.inf, scores)
            weights = np.exp(scores - scores.max(-1, keepdims=True))
            weights /= weights.sum(-1, keepdims=True)
            result[head, rows] = weights @ value
            back = g @ value.T
            back = weights * (back - (back * weights).sum(-1, keepdims=True))
            query_gradient[head, rows] = scale * back @ key
            key_gradient += scale * back.T @ q
            value_gradient += weights.T @ g
    return [result, query_gradient, key_gradient, value_gradient]


def check(
    shape: AttentionShape, arrays: Sequence[Any], results: Sequence[Any], dtype: str, random: Any
) -> float:
    """Return the largest error against float64 of one key-value head. Raises Mismatch where it
    exceeds rounding.

    ``results``: result and gradients of query, key and value."""
    n, group = random.randint(shape.batch), random.randint(shape.key_value_heads)
    sharing = shape.heads // shape.key_value_heads
    heads = slice(group * sharing, (group + 1) * sharing)
    names = ("the result", "the query's gradient", "the key's gradient", "the value's gradient")
    extents = (shape.query_shape, shape.query_shape, shape.key_shape, shape.key_shape)
    selections = (heads, heads, group, group)
    errors = []
    for name, array, extent, part, expected in zip(
        names, results, extents, selections, exact(shape, arrays, n, group)
    ):
        description = f"{name} of an attention"
        samples.check_shape(array, extent, description)
        errors.append(samples.check(array[n, part], expected, dtype, description))
    return max(errors)


def at(shape: AttentionShape, times: int) -> Dict[str, Any]:
    """Return the point of a run for a shape: its extents by name, and ``times``, how often the
    model has it."""
    named = dict(shape._asdict(), causal="yes" if shape.causal else "no")
    return {**named, "times": times}
