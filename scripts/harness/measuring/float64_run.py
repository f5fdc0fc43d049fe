"""Compare a user's model with its own float64 run, without a compiler, in the same framework.

Weights and batch are the same. Some values are always so near a jump of a derivative (a ReLU) that
rounding moves them across and changes gradients: one percent of a ResNet-18's gradients in float32,
all of a MobileNet's in half precision. Float64 runs with randomly changed weights show the effect
of rounding on this model; this much of an error is subtracted."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence

from core import precisions

from harness.adapter import Adapter, Mismatch, OwnModels, Unsupported
from harness.kind import Context
from harness.measuring import model
from harness.measuring.errors import compare_arrays, measured, relative

#: Dtypes allowed in a float64 run. Normalizations and losses are commonly computed in float32,
#: whose rounding is far below every bound.
_WIDE = ("float64", "float32")
#: Largest difference between two float64 passes over a batch if no random numbers are drawn.
_SAME = 1e-9
#: Gradients with a larger relative error than this are nothing but rounding. The gradient of a bias
#: before a normalization is zero, for example, and an optimizer that divides by it gives a random
#: update.
_KNOWN = 0.1

#: Runs with changed weights, and the largest change, in units in the last place of the precision.
_DRAWS, _UNITS = 3, 4.0
#: Factor on the effect of changed weights that is subtracted from an error, and the most that is
#: subtracted. A missing or doubled gradient or update is an error of 1.
_TIMES, _MOST = 3.0, 0.5

Arrays = Mapping[str, Any]


class Step(NamedTuple):
    """First training step: its loss, the weights before it, and the changes it made.

    ``units``: rounding that the storage of each weight may add to its change, relative to the
    weight: half a unit in the last place before the step and after it."""

    loss: float
    before: Arrays
    units: Mapping[str, float]
    update: Arrays
    statistics: Arrays


class Observed(NamedTuple):
    """Results computed by an adapter.

    ``again``: outputs of a second pass. Inference has no ``gradients`` (empty) and no ``step``;
    several ranks have no ``step``."""

    outputs: Sequence[Any]
    again: Sequence[Any]
    gradients: Arrays
    step: Optional[Step]


def compare(context: Context) -> List[Dict[str, Any]]:
    """Build the model without dropout and return the errors of all its results. Raises Unsupported
    for a model that draws random numbers or that computes in half precision by itself, Mismatch for
    one whose results are all zero."""
    adapter: OwnModels = context.adapter
    adapter.model_config["own"]["dropout"] = False  # as in verifications of other models
    rank_context = adapter.rank_context
    model.build(context, model.seed_of_batch(rank_context.seed, rank_context.rank))
    context.report.enter("float64 run")
    train, ranks = adapter.case.mode == "train", rank_context.world_size
    with adapter.in_float64() as exact:
        exact.build(model.seed_of_batch(rank_context.seed, rank_context.rank))
        _check_wide(exact.result_dtypes())
        expected = observe(exact, train and ranks == 1)
        del exact
    _check_not_zero(expected, train)
    own = expected
    if train and ranks > 1:
        expected = expected._replace(gradients=_averaged(adapter, expected.gradients))
    if _distance(expected.again, expected.outputs) > _SAME:
        raise Unsupported(
            "two passes of the model over the same batch differ: it draws random numbers that no "
            "dropout layer of its framework has, or changes from pass to pass, and cannot be "
            "compared"
        )
    context.report.enter("comparison")
    actual = observe(adapter, train and ranks == 1)
    errors = _errors(adapter, actual, expected)
    context.report.enter("moved float64 runs")
    # unit of the widest dtype that matmuls ran in or, without matmuls, might run in
    dtypes = precisions.known()[adapter.case.precision].dtypes
    used = [dtype for dtype in dtypes if dtype in context.fields["matmul_dtypes"]]
    unit = _UNITS * min(precisions.UNITS[dtype] for dtype in used or dtypes)
    for draw in range(_DRAWS):
        effects = _errors(adapter, _moved(adapter, unit, draw, own.step is not None), own)
        for error, effect in zip(errors, effects):
            explained = min(_TIMES * effect["error"], _MOST, error["error"])
            error["rounding"] = max(error.get("rounding", 0.0), explained)
    return errors


def _moved(adapter: OwnModels, unit: float, draw: int, with_step: bool) -> Observed:
    """Return the results of a float64 run with each weight changed at random by up to ``unit`` of
    itself."""
    import numpy as np

    random = np.random.RandomState(draw)
    with adapter.in_float64() as exact:
        exact.build(model.seed_of_batch(adapter.rank_context.seed, adapter.rank_context.rank))
        weights = {
            name: array * (1 + unit * random.uniform(-1, 1, array.shape))
            for name, array in exact.weights().items()
        }
        exact.load_weights({**exact.statistics(), **weights})
        results = observe(exact, with_step)
        del exact
    return results


def _check_not_zero(exact: Observed, train: bool) -> None:
    """Raise Mismatch where all gradients, or in inference all outputs, are zero: any mistake that
    scales them would pass."""
    what, arrays = "gradients", list(exact.gradients.values())
    if not train:
        what, arrays = "outputs", list(exact.outputs)
    if not any(array.any() for array in arrays):
        raise Mismatch(f"all {what} of the model are zero, so that a comparison says nothing")


def observe(adapter: OwnModels, with_step: bool) -> Observed:
    """Compute outputs, gradients and a step, in the same order for every precision, because running
    statistics depend on all passes before."""
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
    units = {name: _stored_unit(entry.tensor) for name, entry in adapter.state().items()}
    return Observed(outputs, again, gradients, Step(loss, before, units, update, statistics))


def _stored_unit(tensor: Any) -> float:
    dtype = str(tensor.dtype).lower()
    stored = (name for name in ("bfloat16", "float16") if name in dtype)
    return precisions.UNITS[next(stored, "float32")]


def _change(after: Arrays, before: Arrays) -> Dict[str, Any]:
    """Return ``after`` minus ``before``, in float64."""
    return {name: array.astype("float64") - before[name] for name, array in after.items()}


def _averaged(adapter: OwnModels, own: Arrays) -> Dict[str, Any]:
    """Return the gradients averaged over all ranks' batches, each computed here without
    collectives."""
    rank_context = adapter.rank_context
    total = dict(own)  # samples of other ranks may use other parameters
    for rank in set(range(rank_context.world_size)) - {rank_context.rank}:
        with adapter.in_float64() as exact:
            exact.build(model.seed_of_batch(rank_context.seed, rank))
            for name, array in exact.gradients().items():
                total[name] = total.get(name, 0.0) + array.astype("float64")
            del exact
    return {name: array / rank_context.world_size for name, array in total.items()}


def _distance(actual: Sequence[Any], expected: Sequence[Any]) -> float:
    """Return the largest relative error among the arrays."""
    errors = [relative(array, exact) for array, exact in zip(actual, expected)]
    return max(errors, key=lambda error: (error != error, error))


def _check_wide(dtypes: Mapping[str, int]) -> None:
    """Raise Unsupported where the float64 run has results in half precision."""
    if set(dtypes) - set(_WIDE):
        counts = ", ".join(f"{count} in {dtype}" for dtype, count in sorted(dtypes.items()))
        raise Unsupported(
            f"the model sets the precision of its operations itself ({counts}): there is no "
            "float64 run to compare with"
        )


def _with_all(gradients: Arrays, others: Arrays) -> Dict[str, Any]:
    """Return the gradients, with zeros where only the ``others`` have one: rounding may route a
    sample to other parameters."""
    return {**{name: 0.0 * array for name, array in others.items()}, **gradients}


def _errors(adapter: Adapter, actual: Observed, expected: Observed) -> List[Dict[str, Any]]:
    """Return the errors of ``actual`` against ``expected``, for the record."""
    if len(actual.outputs) != len(expected.outputs):
        raise ValueError(f"{len(actual.outputs)} outputs, not {len(expected.outputs)}")
    errors = [measured("outputs", _distance(actual.outputs, expected.outputs))]
    if adapter.case.mode != "train":
        return errors
    precision = precisions.known()[adapter.case.precision]
    floor = precision.gradient_floor
    computed = _with_all(actual.gradients, expected.gradients)
    exact_gradients = _with_all(expected.gradients, actual.gradients)
    errors += compare_arrays("gradients", computed, exact_gradients, floor)
    if actual.step is None or expected.step is None:
        return errors
    step, exact = actual.step, expected.step
    errors.append(measured("loss", abs(step.loss - exact.loss) / max(abs(exact.loss), 1e-300)))
    if precision.updates:
        update = _beyond_rounding(step, exact, computed, exact_gradients)
        errors += compare_arrays("first update", update, exact.update, floor)
    if exact.statistics:
        # a mean after a normalization is zero but for rounding
        errors += compare_arrays("running statistics", step.statistics, exact.statistics, floor)
    return errors


def _beyond_rounding(
    actual: Step, expected: Step, computed: Arrays, exact_gradients: Arrays
) -> Dict[str, Any]:
    """Return the first update without the rounding of weights to their storage dtype.

    Where the gradient itself is rounding, the exact update is taken."""
    import numpy as np

    nearest = dict(actual.update)
    for name, gradient in exact_gradients.items():
        exact = expected.update[name]
        error = actual.update[name] - exact
        kept = actual.units[name] * np.abs(expected.before[name])
        beyond = np.sign(error) * np.maximum(np.abs(error) - kept, 0.0)
        known = np.abs(computed[name] - gradient) <= _KNOWN * np.abs(gradient)
        nearest[name] = np.where(known, exact + beyond, exact)
    return nearest
