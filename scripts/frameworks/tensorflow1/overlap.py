"""Products beside an all-reduce in one run of a graph, as a training step has them."""

from __future__ import annotations

from typing import Any, Callable

import tensorflow as tf
from harness.adapter import Place
from harness.overlapping import Overlapped

from . import collectives, devices, variables


def overlapped(
    left: Any,
    right: Any,
    products: int,
    message: Any,
    place: Place,
    session_of: Callable[[tf.Graph], tf.Session],
) -> Overlapped:
    """See :class:`harness.overlapping.Overlapping`. ``left`` and ``right`` have the dtype of the
    products."""
    arrays, graph = {"left": left, "right": right}, tf.Graph()
    with graph.as_default(), tf.device(devices.device_name(place)):
        resident = variables.resident(arrays)
        a, b = resident["left"].read_value(), resident["right"].read_value()
        computed = tf.matmul(a, b)
        for _ in range(products - 1):
            # Adds 0, which no optimizer knows: the same product of the same operands would be
            # computed once, and one that depends on no other beside it.
            nothing = tf.minimum(tf.abs(computed[0, 0]), 0)
            computed = tf.matmul(a + nothing, b)
        kept = variables.empty(computed.shape, computed.dtype)
        compute = kept.assign(computed, read_value=False)
        value = tf.cast(kept.read_value(), tf.float32)
        reduction = collectives.reduction(message.shape, "float32", place)
    session = session_of(graph)
    variables.load(resident, arrays, session)
    reduction.start(session, message)
    run_compute = session.make_callable(compute)
    run_compute()
    return Overlapped(
        run_compute,
        session.make_callable(reduction.update),
        session.make_callable([reduction.update, compute]),
        session.make_callable(reduction.reset),
        session.make_callable(value),
        session.make_callable(reduction.value),
        computed.dtype.name,
    )
