"""An all-reduce alone: a graph of one, on a variable."""

from __future__ import annotations

import itertools
from typing import Any, Callable

import tensorflow as tf
from harness.adapter import Place
from harness.communication import Collective

from . import devices

#: Each has a name and a key of its own: a server keeps a variable by its name, and a collective's
#: shape by its key, whatever graph they are in.
_NUMBERS = itertools.count()


def all_reduce(
    array: Any, dtype: str, place: Place, session_of: Callable[[tf.Graph], tf.Session]
) -> Collective:
    """See :class:`harness.communication.Communication`."""
    number, graph = next(_NUMBERS), tf.Graph()
    with graph.as_default(), tf.device(devices.device_name(place)):
        given = tf.placeholder(tf.float32, array.shape)
        own = tf.get_local_variable(f"brought_{number}", initializer=tf.cast(given, dtype))
        held = tf.get_local_variable(f"reduced_{number}", initializer=tf.zeros(array.shape, dtype))
        reset = tf.assign(held, own).op
        total = devices.all_reduce(held, place, devices.ALONE_KEY + number, mean=False)
        update = tf.assign(held, total).op
        value = tf.cast(held.value(), tf.float32)
    session = session_of(graph)
    session.run([own.initializer, held.initializer], {given: array})
    return Collective(
        session.make_callable(reset), session.make_callable(update), session.make_callable(value)
    )
