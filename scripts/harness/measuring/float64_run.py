"""A model that the user brings, compared with itself: with its own run in float64, operation by
operation in the same framework, from the same weights and batch. Standard library and numpy."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence

from harness import precisions
from harness.adapter import Adapter, OwnModels, Unsupported
from harness.kind import Context
from harness.measuring import model
from harness.measuring.errors import compare_arrays, measured, relative

#: Narrower results make something else of a run in float64. A float32 among them does not: that
#: normalisations and losses are computed in it is common, and its rounding far below every bound.
_WIDE = ("float64", "float32")
#: Two passes over the same batch that are further apart than this in float64 drew random numbers.
_SAME = 1e-9
#: What keeping a weight in float32 may add to its change by a step, as part of the weight: half a
#: unit in the last place before the step and behind it.
_KEPT = 2.0**-23

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
    place = adapter.place
    model.build(context, model.seed_of_batch(place.seed, place.rank))
    context.report.enter("float64 run")
    train, ranks = adapter.case.mode == "train", place.world_size
    with adapter.in_float64() as exact:
        exact.build(model.seed_of_batch(place.seed, place.rank))
        dtypes = exact.result_dtypes()
        expected = _observed(exact, train and ranks == 1)
        del exact
    if train and ranks > 1:
        expected = expected._replace(gradients=_averaged(adapter, expected.gradients))
    if _distance(expected.again, expected.outputs) > _SAME:
        raise Unsupported(
            "two passes of the model over the same batch differ: it draws random numbers that no "
            "dropout layer of its framework has, and cannot be compared"
        )
    context.report.enter("comparison")
    found = _observed(adapter, train and ranks == 1)
    return [_narrow(dtypes), *_errors(adapter, found, expected)]


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
    place = adapter.place
    total = {name: array.astype("float64") for name, array in own.items()}
    for rank in set(range(place.world_size)) - {place.rank}:
        with adapter.in_float64() as exact:
            exact.build(model.seed_of_batch(place.seed, rank))
            for name, array in exact.gradients().items():
                total[name] += array
            del exact
    return {name: array / place.world_size for name, array in total.items()}


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
        update = _beyond_rounding(step, exact)
        errors += compare_arrays("first update", update, exact.update, floor)
    if exact.statistics:
        errors += compare_arrays("running statistics", step.statistics, exact.statistics, 0.0)
    return errors


def _beyond_rounding(found: Step, expected: Step) -> Dict[str, Any]:
    """The first update, where it differs by no more than rounding a weight to float32 as the
    exact one: of large weights and a small learning rate that is a part of it."""
    import numpy as np

    nearest = {}
    for name, change in found.update.items():
        allowed = _KEPT * np.abs(expected.before[name])
        exact = expected.update[name]
        nearest[name] = exact + np.sign(change - exact) * np.maximum(
            np.abs(change - exact) - allowed, 0.0
        )
    return nearest
