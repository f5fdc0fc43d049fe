"""The attention of a model, and whether what a framework made of it is right.

Standard library and numpy.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Dict, List, Mapping, Optional, Sequence

from harness.measuring.micro import samples
from harness.operations import Attention

#: Rows of queries that are computed in float64 at a time.
_ROWS = 512


def of_model(facts: Mapping[str, Any], batch: int, sequence: Optional[int]) -> Dict[Attention, int]:
    """The distinct ones, and in how many layers each is; none where the model has no attention.
    What names heads of keys is a decoder, whose attention is causal; an encoder's is not."""
    hyper = facts.get("hyperparameters", {})
    if "heads" not in hyper or sequence is None:
        return {}
    found: Dict[Attention, int] = Counter()
    for own in [hyper, *([{**hyper, **hyper["generator"]}] if "generator" in hyper else [])]:
        heads = own["heads"]
        shape = Attention(
            batch, heads, own.get("key_value_heads", heads), sequence, own["hidden"] // heads,
            causal="key_value_heads" in own,
        )  # fmt: skip
        found[shape] += own["layers"]
    return dict(found)


def operations(shape: Attention) -> int:
    """Floating-point operations of the forward pass: two products, of which a causal one needs what
    lies on and below the diagonal. Backward there are twice as many; what is computed a second time
    does not count."""
    pairs = shape.sequence * (shape.sequence + 1) // 2 if shape.causal else shape.sequence**2
    return 4 * shape.batch * shape.heads * pairs * shape.size


def operands(shape: Attention, random: Any) -> List[Any]:
    """Query, key, value and gradient of the result, float32: random numbers around 0."""
    import numpy as np

    shapes = (shape.query_shape, shape.key_shape, shape.key_shape, shape.query_shape)
    return [random.standard_normal(one).astype(np.float32) for one in shapes]


def exact(shape: Attention, arrays: Sequence[Any], n: int, group: int) -> List[Any]:
    """In float64, of sample ``n``: the result and the gradient of the queries of all heads that
    share the keys and values of head ``group``, and the gradients of these."""
    import numpy as np

    sharing = shape.heads // shape.key_value_heads
    heads = slice(group * sharing, (group + 1) * sharing)
    query, gradient = (arrays[i][n, heads].astype(np.float64) for i in (0, 3))
    key, value = (arrays[i][n, group].astype(np.float64) for i in (1, 2))
    scale = shape.size**-0.5
    result, query_gradient = np.empty_like(query), np.empty_like(query)
    key_gradient, value_gradient = np.zeros_like(key), np.zeros_like(value)
    for head in range(sharing):
        for first in range(0, shape.sequence, _ROWS):
            rows = slice(first, first + _ROWS)
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
    shape: Attention, arrays: Sequence[Any], found: Sequence[Any], dtype: str, random: Any
) -> float:
    """How far what was ``found``, the result and the gradients of query, key and value, is from
    float64 in one of the heads of keys, at most. Raises Mismatch where that is more than
    rounding."""
    n, group = random.randint(shape.batch), random.randint(shape.key_value_heads)
    sharing = shape.heads // shape.key_value_heads
    heads = slice(group * sharing, (group + 1) * sharing)
    names = ("the result", "the query's gradient", "the key's gradient", "the value's gradient")
    extents = (shape.query_shape, shape.query_shape, shape.key_shape, shape.key_shape)
    own = (heads, heads, group, group)
    errors = []
    for name, array, extent, part, wanted in zip(
        names, found, extents, own, exact(shape, arrays, n, group)
    ):
        what = f"{name} of an attention"
        samples.check_shape(array, extent, what)
        errors.append(samples.check(array[n, part], wanted, dtype, what))
    return max(errors)


def at(shape: Attention, times: int) -> Dict[str, Any]:
    """The point of a run that it is."""
    named = dict(shape._asdict(), causal="yes" if shape.causal else "no")
    return {**named, "times": times}
