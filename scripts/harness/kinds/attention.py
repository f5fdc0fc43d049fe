"""Attention of a transformer alone, forward and backward.

It runs as in this project's models, by the framework's fused operator or by separate operations,
but without dropout. Heads and their size come from the model, batch and sequence length from the
case. One head's results are checked against float64."""

from __future__ import annotations

from collections import Counter
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from harness.kind import Workload
from harness.measuring.sweep import ModelKernels
from harness.operations import AttentionShape


class Attention(ModelKernels[AttentionShape]):
    """Attention alone: TFLOP/s and microseconds of each shape, and of all layers together."""

    axes = (
        "framework", "model", "nodes", "devices_per_node", "batch_per_device", "precision",
        "sequence_length",
    )  # fmt: skip
    lacking = "{} has no attention"
    results = (
        "the result", "the query's gradient", "the key's gradient", "the value's gradient"
    )  # fmt: skip

    def shapes(self, workload: Workload) -> Dict[AttentionShape, int]:
        case = workload.case
        return layer_counts(workload.model_config, case.batch_per_device, case.sequence_length)

    def at(self, shape: AttentionShape) -> Dict[str, Any]:
        return dict(shape._asdict(), causal="yes" if shape.causal else "no")

    def operations(self, shape: AttentionShape) -> int:
        """Count the operations of two matmuls; causal attention needs only the elements on and
        below the diagonal. Recomputation in the backward pass does not count."""
        pairs = shape.sequence * (shape.sequence + 1) // 2 if shape.causal else shape.sequence**2
        return 4 * shape.batch * shape.heads * pairs * shape.size

    def operands(self, shape: AttentionShape, random: Any) -> List[Any]:
        """Return query, key, value and gradient of the result, random numbers around 0."""
        import numpy as np

        shapes = (shape.query_shape, shape.key_shape, shape.key_shape, shape.query_shape)
        return [random.standard_normal(extents).astype(np.float32) for extents in shapes]

    def compared(
        self, shape: AttentionShape, arrays: Sequence[Any], results: Sequence[Any], random: Any
    ) -> Tuple[List[Any], List[Any]]:
        """Return one sample's heads that share a key-value head."""
        n, group = random.randint(shape.batch), random.randint(shape.key_value_heads)
        sharing = shape.heads // shape.key_value_heads
        heads = slice(group * sharing, (group + 1) * sharing)
        parts = [array[n, part] for array, part in zip(results, (heads, heads, group, group))]
        return parts, exact(shape, arrays, n, group, heads)


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


def exact(
    shape: AttentionShape, arrays: Sequence[Any], n: int, group: int, heads: slice
) -> List[Any]:
    """Return float64 results of sample ``n`` for the ``heads`` that share key-value head ``group``:
    the result (heads, sequence, size), and the gradients of query, key and value."""
    import numpy as np

    query, gradient = (arrays[i][n, heads].astype(np.float64) for i in (0, 3))
    key, value = (arrays[i][n, group].astype(np.float64) for i in (1, 2))
    scale = shape.size**-0.5
    by_head = []
    for q, g in zip(query, gradient):
        scores = scale * q @ key.T
        if shape.causal:
            scores[np.triu_indices(shape.sequence, 1)] = -np.inf
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        back = g @ value.T
        back = scale * weights * (back - (back * weights).sum(-1, keepdims=True))
        by_head.append((weights @ value, back @ key, back.T @ q, weights.T @ g))
    result, query_gradient, key_gradient, value_gradient = zip(*by_head)
    return [np.stack(result), np.stack(query_gradient), sum(key_gradient), sum(value_gradient)]
