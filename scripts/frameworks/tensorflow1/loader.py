"""Images and tokens from files: tf.data in a graph and a session of its own, with TensorFlow's own
JPEG decoder and image operations. Resizing is TensorFlow 2's, which this version brings, too."""

from __future__ import annotations

import contextlib
import functools
from typing import Any, Callable, Dict, Iterator, Sequence, Tuple

import tensorflow as tf
from harness.loader import Loaded, LoadedTokens, Loads, TokenLoads, tensorflow_data

Arrays = tensorflow_data.Arrays
#: For each form of a request a function that begins it with its arrays, and one that returns the
#: next batch. To build them takes as long as to decode hundreds of images.
_PIPELINES: Dict[Any, Tuple[Callable[..., Any], Callable[[], Sequence[Any]]]] = {}


def _session(graph: Any) -> Any:
    """Return a session on the host, whatever device the model runs on."""
    return tf.Session(graph=graph, config=tf.ConfigProto(device_count={"GPU": 0}))


def _batches(
    form: Any, arrays: Arrays, dataset: Callable[[Any, Arrays], Any]
) -> Iterator[Sequence[Any]]:
    """Yield batches of a ``dataset`` as numpy arrays. ``form``: the request without what differs
    from epoch to epoch."""
    if form not in _PIPELINES:
        with tf.Graph().as_default() as graph, tf.device("/CPU:0"):
            holders = {name: _holder(array) for name, array in arrays.items()}
            iterator = tf.data.make_initializable_iterator(dataset(form, holders))
            following = iterator.get_next()
        session = _session(graph)
        _PIPELINES[form] = (
            session.make_callable(iterator.initializer, list(holders.values())),
            session.make_callable(following),
        )
    begin, take = _PIPELINES[form]
    begin(*arrays.values())
    with contextlib.suppress(tf.errors.OutOfRangeError):
        while True:
            batch = take()
            yield batch


def _holder(array: Any) -> Any:
    kind = tf.string if array.dtype == object else array.dtype
    return tf.placeholder(kind, (None, *array.shape[1:]))


def load(loads: Loads, accelerator: str) -> Iterator[Loaded]:
    """Yield batches of images; see :meth:`harness.loader.Loading.load`. Without workers nothing is
    done ahead."""
    form = loads._replace(paths=(), labels=None, draws=None if loads.draws is None else True)
    for batch in _batches(form, tensorflow_data.arrays(loads), tensorflow_data.dataset):
        yield Loaded(*batch)


def load_tokens(loads: TokenLoads, accelerator: str) -> Iterator[LoadedTokens]:
    """Yield batches of token sequences; see :meth:`harness.loader.Loading.load_tokens`."""
    form, arrays = loads._replace(starts=None), tensorflow_data.token_arrays(loads)
    for batch in _batches(form, arrays, tensorflow_data.token_dataset):
        yield LoadedTokens(*batch)


@functools.lru_cache(maxsize=None)
def _decoder() -> Callable[[bytes], Any]:
    with tf.Graph().as_default() as graph, tf.device("/CPU:0"):
        holder = tf.placeholder(tf.string, ())
        image = tensorflow_data.decode(holder)
    decode: Callable[[bytes], Any] = _session(graph).make_callable(image, [holder])
    return decode


def pixels(content: bytes) -> Any:
    """Decode a JPEG file, see :class:`harness.loader.Loading`."""
    return _decoder()(content)


settings = tensorflow_data.settings
