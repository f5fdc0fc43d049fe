"""A model that the user brings, compared with itself: with its own run in float64, without a
compiler, in the same framework, from the same weights and batch. Standard library and numpy.

Whatever the weights, some value is so near to where a derivative jumps (a ReLU) that rounding puts
it on the other side, and with it a part of the gradients. How much rounding does to this model is
seen in float64, too: by further runs whose weights are moved at random, by a unit in the last place
of the precision, and then as far as it takes to move the outputs as far as they are off. What the
first explains of an error of the outputs is taken off it, and what the second does off all others.
"""

from __future__ import annotations

import contextlib
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence

from harness import precisions
from harness.adapter import Adapter, OwnModels, Unsupported
from harness.kind import Context
from harness.measuring import model
from harness.measuring.verification.errors import compare_arrays, measured, relative

#: Narrower results make something else of a run in float64. A float32 among them does not: that
#: normalisations and losses are computed in it is common, and its rounding far below every bound.
_WIDE = ("float64", "float32")
#: Two passes over the same batch that are further apart than this in float64 drew random numbers.
_SAME = 1e-9
#: A gradient that is further from the exact one than by this part of it is rounding, for example
#: that of a bias in front of a normalisation, which is zero. What an optimizer that divides by its
#: gradients makes of it says nothing.
_KNOWN = 0.1
#: What keeping a weight in float32 may add to its change by a step, as part of the weight: half a
#: unit in the last place before the step and behind it.
_KEPT = 2.0**-23

#: One unit in the last place, as part of a number, by the dtype of products.
_UNIT = {"float32": 2.0**-23, "tf32": 2.0**-10, "bfloat16": 2.0**-7, "float16": 2.0**-10}
#: How many times what the moved weights do is taken off an error, and at most how much of it: an
#: update or a gradient that is missing, or twice what it should be, is an error of 1.
_TIMES, _MOST = 3.0, 0.5
#: Whatever it takes to move the outputs, weights are moved by no more than so many units.
_FARTHEST = 1000.0

Arrays = Mapping[str, Any]


class Step(NamedTuple):
    """The first training step: its loss, the weights before it, and what it changed."""

    loss: float
    before: Arrays
    update: Arrays
    statistics: Arrays


class Observed(NamedTuple):
    """What an adapter has computed. ``again``: the outputs of a second pass. Inference has no
    ``gradients`` (empty) and no ``step``; several ranks have no ``step``."""

    outputs: Sequence[Any]
    again: Sequence[Any]
    gradients: Arrays
    step: Optional[Step]


def compare(context: Context) -> List[Dict[str, Any]]:
    """Build the model, without dropout, and compare all that can be. Raises Unsupported for one
    that draws random numbers."""
    adapter: OwnModels = context.adapter
    adapter.facts["own"]["dropout"] = False  # as the facts of other models have it in a comparison
    rank_context = adapter.rank_context
    model.build(context, model.seed_of_batch(rank_context.seed, rank_context.rank))
    context.report.enter("float64 run")
    train, ranks = adapter.case.mode == "train", rank_context.world_size
    with adapter.in_float64() as exact:
        exact.build(model.seed_of_batch(rank_context.seed, rank_context.rank))
        dtypes = exact.result_dtypes()
        expected = _observed(exact, train and ranks == 1)
        del exact
    own = expected
    if train and ranks > 1:
        expected = expected._replace(gradients=_averaged(adapter, expected.gradients))
    if _distance(expected.again, expected.outputs) > _SAME:
        raise Unsupported(
            "two passes of the model over the same batch differ: it draws random numbers that no "
            "dropout layer of its framework has, and cannot be compared"
        )
    context.report.enter("comparison")
    found = _observed(adapter, train and ranks == 1)
    outputs, *behind = _errors(adapter, found, expected)
    context.report.enter("moved float64 runs")
    unit, error = _unit(context), outputs["error"]
    with _moved(adapter, unit) as exact:
        explained = measured("outputs", _distance(exact.outputs(), own.outputs))
        del exact
    units = min(max(1.0, error / max(explained["error"], 1e-300)), _FARTHEST)
    if train:
        with _moved(adapter, unit * units) as exact:
            moved = _observed(exact, own.step is not None)
            del exact
        behind = list(map(_unexplained, behind, _errors(adapter, moved, own)[1:]))
    return [_narrow(dtypes), _unexplained(outputs, explained), *behind]


@contextlib.contextmanager
def _moved(adapter: OwnModels, unit: float) -> Iterator[OwnModels]:
    """The float64 run with each weight changed by up to ``unit`` of itself, at random."""
    with adapter.in_float64() as exact:
        exact.build(model.seed_of_batch(adapter.rank_context.seed, adapter.rank_context.rank))
        _move(exact, unit)
        yield exact


def _unit(context: Context) -> float:
    """Of the widest dtype of the case's precision that its products were seen to run in."""
    dtypes = precisions.load(context.workload.case.precision).dtypes
    return min(_UNIT[dtype] for dtype in dtypes if dtype in context.fields["products"])


def _move(adapter: OwnModels, unit: float) -> None:
    import numpy as np

    random = np.random.RandomState(0)
    moved = {
        name: array * (1 + unit * random.uniform(-1, 1, array.shape))
        for name, array in adapter.weights().items()
    }
    adapter.load_weights({**adapter.statistics(), **moved})


def _unexplained(error: Dict[str, Any], explained: Dict[str, Any]) -> Dict[str, Any]:
    """What is left of an error when what rounding explains is taken off."""
    rounding = min(_TIMES * explained["error"], _MOST)
    left = max(error["error"] - rounding, 0.0)
    words = f"{error['error']:.2g}, of which rounding explains {rounding:.2g}"
    where = f"{error['where']}: {words}" if error["where"] else words
    return measured(error["quantity"], left, where)


def _observed(adapter: OwnModels, with_step: bool) -> Observed:
    """The same in the same order, whatever the precision: running statistics are those of all
    passes before."""
    outputs, again = adapter.outputs(), adapter.outputs()
    if adapter.case.mode != "train":
        return Observed(outputs, again, {}, None)
    gradients = adapter.gradients()
    if not with_step:
        return Observed(outputs, again, gradients, None)
    before, kept = adapter.weights(), adapter.statistics()
    loss = adapter.read(adapter.step())
    update = _change(adapter.weights(), before)
    statistics = _change(adapter.statistics(), kept)
    return Observed(outputs, again, gradients, Step(loss, before, update, statistics))


def _change(after: Arrays, before: Arrays) -> Dict[str, Any]:
    return {name: array.astype("float64") - before[name] for name, array in after.items()}


def _averaged(adapter: OwnModels, own: Arrays) -> Dict[str, Any]:
    """The gradients of all ranks' batches, each computed here: no collective is taken part in."""
    rank_context = adapter.rank_context
    total = {name: array.astype("float64") for name, array in own.items()}
    for rank in set(range(rank_context.world_size)) - {rank_context.rank}:
        with adapter.in_float64() as exact:
            exact.build(model.seed_of_batch(rank_context.seed, rank))
            for name, array in exact.gradients().items():
                total[name] += array
            del exact
    return {name: array / rank_context.world_size for name, array in total.items()}


def _distance(actual: Sequence[Any], expected: Sequence[Any]) -> float:
    errors = [relative(one, other) for one, other in zip(actual, expected)]
    return max(errors, key=lambda error: (error != error, error))


def _narrow(dtypes: Mapping[str, int]) -> Dict[str, Any]:
    """The share of the operations of the float64 run whose results are in a half precision."""
    narrow = {dtype: count for dtype, count in dtypes.items() if dtype not in _WIDE}
    words = [f"{count} in {dtype}" for dtype, count in sorted(dtypes.items())]
    share = sum(narrow.values()) / max(sum(dtypes.values()), 1)
    return measured("float64 run", share, ", ".join(words))


def _errors(adapter: Adapter, found: Observed, expected: Observed) -> List[Dict[str, Any]]:
    if len(found.outputs) != len(expected.outputs):
        raise ValueError(f"{len(found.outputs)} outputs, not {len(expected.outputs)}")
    errors = [measured("outputs", _distance(found.outputs, expected.outputs))]
    if adapter.case.mode != "train":
        return errors
    precision = precisions.load(adapter.case.precision)
    floor = precision.gradient_floor
    errors += compare_arrays("gradients", found.gradients, expected.gradients, floor)
    if found.step is None or expected.step is None:
        return errors
    step, exact = found.step, expected.step
    errors.append(measured("loss", abs(step.loss - exact.loss) / max(abs(exact.loss), 1e-300)))
    if precision.updates:
        update = _beyond_rounding(found, expected)
        errors += compare_arrays("first update", update, exact.update, floor)
    if exact.statistics:
        # a mean behind a normalisation is zero but for rounding
        errors += compare_arrays("running statistics", step.statistics, exact.statistics, floor)
    return errors


def _beyond_rounding(found: Observed, expected: Observed) -> Dict[str, Any]:
    """The first update, without what rounding a weight to float32 makes of it, and as the exact one
    where the gradient is rounding."""
    import numpy as np

    assert found.step is not None, "compared only where there is one"
    assert expected.step is not None, "compared only where there is one"
    nearest = dict(found.step.update)
    for name, gradient in expected.gradients.items():
        exact = expected.step.update[name]
        error = found.step.update[name] - exact
        kept = _KEPT * np.abs(expected.step.before[name])
        beyond = np.sign(error) * np.maximum(np.abs(error) - kept, 0.0)
        known = np.abs(found.gradients[name] - gradient) <= _KNOWN * np.abs(gradient)
        nearest[name] = np.where(known, exact + beyond, exact)
    return nearest
