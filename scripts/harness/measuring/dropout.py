"""Compare dropout with the reference's by statistics of the outputs over many random masks.

Framework and reference compute the same number of forward passes with the same weights and batch.
Each pass draws new masks and gives a few numbers, whose means over the passes must agree."""

from __future__ import annotations

import math
from typing import Any, Callable, Dict, List, Mapping, Sequence, Set, Tuple

from harness.adapter import Mismatch

#: Statistics of each output in a pass, see :func:`statistics`.
STATISTICS = ("scale", "amount", "shared by samples", "shared by positions", "shared by features")
AMOUNT = STATISTICS.index("amount")
#: Number of training steps, with each set of weights, whose losses are compared.
STEPS = 16
#: Passes whose gradients are compared. With 32, one in ten correct verifications found the spread
#: of SqueezeNet's gradients off by more than half.
GRADIENTS = 256
#: Replicas whose outputs are equal in this many passes share their masks.
PASSES_OF_REPLICAS = 3

#: Largest change of the outputs' squared norm by rounding, as a fraction, in any precision.
_ROUNDING = 1e-2

Outputs = Sequence[Any]


def statistics(outputs: Outputs, plain: Outputs, scaled: Outputs) -> List[float]:
    """Return STATISTICS of each output of one pass.

    ``plain``: outputs without dropout; ``scaled``: outputs where each dropout drops nothing but
    multiplies by 1 - rate. With d = outputs - plain and u = scaled - plain, the statistics are: d
    along u, 1 where kept values are not divided by 1 - rate; the squared norm of d; the squared
    norms of its sums over samples and over positions, larger where samples or positions share
    masks; and the sum over samples and positions of the squared length along u, larger where
    features share masks."""
    values = []
    for output, without, factored in zip(outputs, plain, scaled):
        shape = (len(without), -1, without.shape[-1] if without.ndim > 2 else without[0].size)
        moved, direction = ((x - without).reshape(shape) for x in (output, factored))
        along = (moved * direction).sum(-1)
        norm = float((direction**2).sum())
        values += [
            float(along.sum()) / norm if norm else 0.0,
            *(float((x**2).sum()) for x in (moved, moved.sum(0), moved.sum(1), along)),
        ]
    return values


def sampled(masked: Callable[[], Outputs], plain: Outputs, scaled: Outputs, passes: int) -> Any:
    """Return the statistics of ``passes`` passes, with shape (passes, statistics).

    ``masked``: returns outputs with the next masks. Raises Mismatch where masks never change."""
    import numpy as np

    exact = [[np.asarray(x, np.float64) for x in outputs] for outputs in (plain, scaled)]
    result = np.array([statistics(masked(), *exact) for _ in range(passes)])
    rounding = _ROUNDING * float((exact[0][0] ** 2).sum())
    if result[0, AMOUNT] > rounding and (result == result[0]).all():
        raise Mismatch(f"dropout has left out the same elements {passes} times")
    return result


def moments(found: Any, plain: Outputs, scaled: Outputs) -> Dict[str, Any]:
    """Return number of passes, means and variances of ``found``, the statistics of :func:`sampled`.

    ``sizes``: the same statistics if dropout moved each output by its own value, as a scale for
    errors."""
    return {
        "passes": len(found),
        "means": found.mean(0).tolist(),
        "variances": found.var(0, ddof=1).tolist(),
        "sizes": statistics([2 * output for output in plain], plain, scaled),
    }


def deviations(found: Any, expected: Mapping[str, Any], finest: float) -> Dict[str, float]:
    """Return by how many standard errors the mean of each statistic is off, by name.

    Each is Student's t of two samples with one variance, as the value of a normal distribution that
    is as unlikely (Wallace 1959). ``expected``: the reference's :func:`moments`; ``finest``:
    relative error of outputs by rounding, which no standard error is less than."""
    import numpy as np

    known, sizes = np.array(expected["means"]), np.array(expected["sizes"])
    names = [
        f"output {number}, {name}"
        for number in range(len(known) // len(STATISTICS))
        for name in STATISTICS
    ]
    passes, freedom = expected["passes"], 2 * expected["passes"] - 2
    variance = (found.var(0, ddof=1) + np.array(expected["variances"])) / 2
    rounding = finest * known + finest**2 * sizes
    rounding[:: len(STATISTICS)] = finest  # for the statistic "scale"
    error = np.maximum(np.sqrt(2 * variance / passes), rounding)
    off = abs(found.mean(0) - known)
    squared = (off / np.where(off == 0, 1.0, error)) ** 2
    normal = np.sqrt(freedom * np.log1p(squared / freedom)) * (8 * freedom + 1) / (8 * freedom + 3)
    return dict(zip(names, normal.tolist()))


def loss_error(
    losses: Sequence[float], expected: Mapping[str, Any], finest: float, micro_steps: int = 1
) -> float:
    """Return by how many standard errors the mean of the losses of training steps with the same
    weights is off, or their variance is too small. It is too small where steps repeat their masks.
    A loss is the mean over ``micro_steps``.

    The variance is judged by the cube root of its ratio (Paulson 1942). ``expected``: mean and
    variance of the reference's losses; ``finest``: relative error of a loss by rounding, which no
    standard error is less than."""
    import numpy as np

    mean, variance = (float(moment) for moment in expected["losses"])
    variance /= micro_steps
    passes = int(expected["passes"])
    own, known = 2 / (9 * (len(losses) - 1)), 2 / (9 * (passes - 1))
    error = math.sqrt(variance * (1 / len(losses) + 1 / passes))
    off = float(abs(np.mean(losses) - mean)) / max(error, finest * abs(mean))
    root = float(np.cbrt(np.var(losses, ddof=1) / variance)) if variance else 1.0
    return max(off, (1 - own - (1 - known) * root) / math.sqrt(own + known * root**2))


def share_masks(sums_of_replicas: Callable[[], Sequence[float]]) -> bool:
    """Return whether two replicas draw the same masks: with the same samples and weights, they have
    the same outputs in each of :data:`PASSES_OF_REPLICAS`.

    ``sums_of_replicas``: runs a pass and returns the sum of the squared outputs of each replica,
    which float32 may have rounded."""
    same: List[Set[Tuple[int, int]]] = []
    for _ in range(PASSES_OF_REPLICAS):
        sums = sums_of_replicas()
        same.append(
            {
                (one, other)
                for one in range(len(sums))
                for other in range(one)
                if math.isclose(sums[one], sums[other], rel_tol=1e-6)
            }
        )
    return bool(set.intersection(*same))


def spread(gradients: Callable[[], Mapping[str, Any]], passes: int = GRADIENTS) -> Dict[str, float]:
    """Return, for each parameter, the variance of its gradient over passes with different masks,
    summed over its elements. ``gradients``: returns the gradients of the next pass."""
    import numpy as np

    totals: Dict[str, Any] = {}
    squares: Dict[str, float] = {}
    for _ in range(passes):
        for name, array in gradients().items():
            exact = np.asarray(array, np.float64)
            totals[name] = totals.get(name, 0.0) + exact
            squares[name] = squares.get(name, 0.0) + float((exact**2).sum())
    return {
        name: (squares[name] - float((total**2).sum()) / passes) / (passes - 1)
        for name, total in totals.items()
    }


def dependence(found: Mapping[str, float], expected: Mapping[str, float], parts: int) -> float:
    """Return how much the variances of gradients differ from those with independent masks: a
    fraction, on average over the parameters. Gradients are means over ``parts`` of equal samples.

    1 where two parts share their masks, more where more parts do. ``expected``: variances of a
    single part."""
    least = 1e-6 * sum(expected.values())  # less is a gradient of rounding alone
    ratios = [parts * found[name] / known for name, known in expected.items() if known > least]
    return abs(sum(ratios) / max(len(ratios), 1) - 1) if ratios else 0.0
