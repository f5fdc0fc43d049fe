"""An all-reduce alone: a graph of one, on a variable; and one of a matmul."""

from __future__ import annotations

import itertools
from typing import Any, Callable, NamedTuple, Tuple

import tensorflow as tf
from harness.adapter import RankContext
from harness.communication import CollectiveOperation, MatmulCollective

from .. import devices, variables

#: Each has a name and a key of its own: a server keeps a variable by its name, and a collective's
#: shape by its key, whatever graph they are in.
_NUMBERS = itertools.count()


class Reduction(NamedTuple):
    """Operations of a graph: ``update`` makes the variable the sum of those of all ranks, ``reset``
    what this rank brought; ``value``: its own, in float32."""

    operand: tf.Tensor
    initializers: Tuple[Any, Any]
    reset: tf.Operation
    update: tf.Operation
    value: tf.Tensor

    def start(self, session: tf.Session, array: Any) -> None:
        """Initialize the variables with this rank's ``array``."""
        session.run(self.initializers, {self.operand: array})


def reduction(shape: Any, dtype: str, rank_context: RankContext) -> Reduction:
    """Return the reduction, made in the default graph on the default device."""
    number = next(_NUMBERS)
    operand = tf.placeholder(tf.float32, shape)
    own = tf.get_local_variable(f"brought_{number}", initializer=tf.cast(operand, dtype))
    held = tf.get_local_variable(f"reduced_{number}", initializer=tf.zeros(shape, dtype))
    reset = tf.assign(held, own).op
    total = devices.all_reduce(held, rank_context, devices.ALONE_KEY + number, mean=False)
    update = tf.assign(held, total).op
    value = tf.cast(held.value(), tf.float32)
    return Reduction(operand, (own.initializer, held.initializer), reset, update, value)


def all_reduce(
    array: Any, dtype: str, rank_context: RankContext, session_of: Callable[[tf.Graph], tf.Session]
) -> CollectiveOperation:
    """Prepare an all-reduce; see :class:`harness.communication.Communication`."""
    graph = tf.Graph()
    with graph.as_default(), tf.device(devices.device_name(rank_context)):
        program = reduction(array.shape, dtype, rank_context)
    session = session_of(graph)
    program.start(session, array)
    return CollectiveOperation(
        session.make_callable(program.reset),
        session.make_callable(program.update),
        session.make_callable(program.value),
    )


def sharded_matmul(
    left: Any, right: Any, rank_context: RankContext, session_of: Callable[[tf.Graph], tf.Session]
) -> MatmulCollective:
    """Prepare a matmul and the all-reduce of its parts; see
    :class:`harness.communication.ShardedMatmuls`. ``left`` and ``right`` have the dtype of the
    matmul."""
    arrays, graph = {"left": left, "right": right}, tf.Graph()
    with graph.as_default(), tf.device(devices.device_name(rank_context)):
        resident = variables.resident(arrays)
        a, b = resident["left"].read_value(), resident["right"].read_value()
        computed = tf.matmul(a, b)
        part, whole = (variables.empty(computed.shape, computed.dtype) for _ in range(2))

        def summed(tensor: tf.Tensor) -> tf.Operation:
            key = devices.ALONE_KEY + next(_NUMBERS)
            total = devices.all_reduce(tensor, rank_context, key, mean=False)
            return whole.assign(total, read_value=False)

        matmul = part.assign(computed, read_value=False)
        communicate, both = summed(part.read_value()), summed(computed)
        value = tf.cast(whole.read_value(), tf.float32)
    session = session_of(graph)
    variables.load(resident, arrays, session)
    session.run(matmul)
    matmul, communicate, both, result = map(
        session.make_callable, (matmul, communicate, both, value)
    )
    return MatmulCollective(matmul, communicate, both, result, computed.dtype.name)
