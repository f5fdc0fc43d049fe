"""Computation beside an all-reduce in one run of a graph, as in a training step."""

from __future__ import annotations

from typing import Any, Callable, Sequence

import tensorflow as tf
from harness.adapter import RankContext
from harness.overlapping import Overlapped

from .. import devices, variables
from . import collectives
from .operations import function_of


def overlapped(
    name: str,
    arrays: Sequence[Any],
    count: int,
    message: Any,
    rank_context: RankContext,
    session_of: Callable[[tf.Graph], tf.Session],
) -> Overlapped:
    """Prepare computation and all-reduce; see :class:`harness.overlapping.Overlapping`.

    ``arrays`` have the dtype of the computation."""
    function = function_of(name)
    operands, graph = dict(zip(("left", "right"), arrays)), tf.Graph()
    with graph.as_default(), tf.device(devices.device_name(rank_context)):
        resident = variables.resident(operands)
        a, b = resident["left"].read_value(), resident["right"].read_value()
        # TensorFlow drops a result that nothing needs, and computes equal ones that do not wait for
        # each other only once.
        computed = function(a, b)
        each = [computed[0, 0]]
        for _ in range(count - 1):
            with tf.control_dependencies([computed]):
                computed = function(a, b)
            each.append(computed[0, 0])
        kept = variables.empty(computed.shape, computed.dtype)
        compute = [kept.assign(computed, read_value=False), tf.add_n(each)]
        value = tf.cast(kept.read_value(), tf.float32)
        reduction = collectives.reduction(message.shape, "float32", rank_context)
    session = session_of(graph)
    variables.load(resident, operands, session)
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
