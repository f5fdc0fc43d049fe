"""Images and tokens from files: tf.data in a separate graph and session, with TensorFlow's JPEG
decoder and image operations. Resizing is TensorFlow 2's, which this version includes."""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Dict, Iterator, Sequence, Tuple

import tensorflow as tf
from harness.loader import Request, TokenLoads, tensorflow_data

#: For each form of a request, a function that starts it with its arrays, and one that returns the
#: next batch. Building them takes as long as decoding hundreds of images.
_PIPELINES: Dict[Any, Tuple[Callable[..., Any], Callable[[], Sequence[Any]]]] = {}


def load(loads: Request, accelerator: str) -> Iterator[Any]:
    """Yield batches; see :meth:`harness.loader.Loading.load`. Without workers nothing is
    prefetched."""
    arrays, form = tensorflow_data.arrays(loads), _form(loads)
    if form not in _PIPELINES:
        with tf.Graph().as_default() as graph, tf.device("/CPU:0"):
            holders = {
                name: tf.placeholder(
                    tf.string if array.dtype == object else array.dtype, (None, *array.shape[1:])
                )
                for name, array in arrays.items()
            }
            dataset = tensorflow_data.dataset(form, holders)
            iterator = tf.data.make_initializable_iterator(dataset)
            following = iterator.get_next()
        # on the host, whatever device the model runs on
        session = tf.Session(graph=graph, config=tf.ConfigProto(device_count={"GPU": 0}))
        _PIPELINES[form] = (
            session.make_callable(iterator.initializer, list(holders.values())),
            session.make_callable(following),
        )
    begin, take = _PIPELINES[form]
    begin(*arrays.values())
    with contextlib.suppress(tf.errors.OutOfRangeError):
        while True:
            yield take()


def _form(loads: Request) -> Request:
    """Return the request without parts that differ between epochs."""
    if isinstance(loads, TokenLoads):
        return loads._replace(starts=None)
    return loads._replace(paths=(), labels=None, draws=None if loads.draws is None else True)


settings = tensorflow_data.settings
