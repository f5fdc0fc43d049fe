"""Images and tokens from files: tf.data in a graph and a session of its own, with TensorFlow's own
JPEG decoder and image operations. Resizing is TensorFlow 2's, which this version brings, too."""

from __future__ import annotations

import threading
from typing import Any, Callable, Dict, Iterator, Sequence

import tensorflow as tf
from harness.loader import (
    FOLDER,
    TFRECORD,
    Loaded,
    LoadedTokens,
    Loads,
    TokenLoads,
    tensorflow_data,
)

FORMATS = (FOLDER, TFRECORD)
TOKEN_FORMATS = (TFRECORD,)
_LOCK = threading.Lock()
_DECODER: Dict[str, Any] = {}


def _session(graph: Any) -> Any:
    """On the host, whatever the model runs on."""
    return tf.Session(graph=graph, config=tf.ConfigProto(device_count={"GPU": 0}))


def _given(arrays: Dict[str, Any], dataset: Callable[[Dict[str, Any]], Any]) -> Iterator[Any]:
    """Batches of a ``dataset`` of tensors, which have these ``arrays``, as numpy arrays."""
    with tf.Graph().as_default() as graph, tf.device("/CPU:0"):
        parts = {
            name: tf.placeholder(tf.string if array.dtype == object else array.dtype, array.shape)
            for name, array in arrays.items()
        }
        iterator = tf.data.make_initializable_iterator(dataset(parts))
        following = iterator.get_next()
    with _session(graph) as session:
        session.run(iterator.initializer, {parts[name]: arrays[name] for name in parts})
        batch: Callable[[], Sequence[Any]] = session.make_callable(following)
        while True:
            try:
                given = batch()
            except tf.errors.OutOfRangeError:
                return
            yield given


def load(asked: Loads, accelerator: str) -> Iterator[Loaded]:
    """See :meth:`harness.loader.Loading.load`. Without workers nothing is done ahead."""
    arrays = tensorflow_data.arrays(asked)
    for given in _given(arrays, lambda parts: tensorflow_data.dataset(asked, parts)):
        yield Loaded(*given)


def load_tokens(asked: TokenLoads, accelerator: str) -> Iterator[LoadedTokens]:
    """See :meth:`harness.loader.Loading.load_tokens`."""
    arrays = {"starts": asked.starts}
    dataset = tensorflow_data.token_dataset
    for given in _given(arrays, lambda parts: dataset(asked, parts["starts"])):
        yield LoadedTokens(*given)


def pixels(content: bytes) -> Any:
    """Of a JPEG file; see :class:`harness.loader.Loading`."""
    with _LOCK:
        if not _DECODER:
            with tf.Graph().as_default() as graph, tf.device("/CPU:0"):
                holder = tf.placeholder(tf.string, ())
                image = tensorflow_data.decode(holder)
            _DECODER["of"] = _session(graph).make_callable(image, [holder])
    return _DECODER["of"](content)


def settings(accelerator: str) -> Dict[str, Any]:
    """See :meth:`harness.loader.Loading.loader_settings`."""
    return tensorflow_data.settings()
