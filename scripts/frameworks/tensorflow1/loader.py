"""Images and tokens from files: tf.data in a graph and a session of its own, with TensorFlow's own
JPEG decoder and image operations. Resizing is TensorFlow 2's, which this version brings, too."""

from __future__ import annotations

import contextlib
import threading
from typing import Any, Callable, Dict, Iterator, List, Sequence

import tensorflow as tf
from harness.loader import Loaded, LoadedTokens, Loads, TokenLoads, tensorflow_data

Arrays = tensorflow_data.Arrays
_LOCK = threading.Lock()
_DECODER: Dict[str, Any] = {}


def _session(graph: Any) -> Any:
    """Return a session on the host, whatever device the model runs on."""
    return tf.Session(graph=graph, config=tf.ConfigProto(device_count={"GPU": 0}))


class _Pipeline:
    """A graph of tf.data and its session. It is as good for every epoch of its kind: to build one
    takes as long as to decode hundreds of images, and what it holds does not all come back."""

    def __init__(self, arrays: Arrays, dataset: Callable[[Arrays], Any]) -> None:
        """Create the pipeline. ``dataset``: returns one of tensors like ``arrays``, with any number
        of rows."""
        with tf.Graph().as_default() as graph, tf.device("/CPU:0"):
            self._holders = {
                group: {name: _holder(array) for name, array in members.items()}
                for group, members in arrays.items()
            }
            iterator = tf.data.make_initializable_iterator(dataset(self._holders))
            self._begin, following = iterator.initializer, iterator.get_next()
        self._session = _session(graph)
        self._next = self._session.make_callable(following)

    def batches(self, arrays: Arrays) -> Iterator[Sequence[Any]]:
        fed = {
            self._holders[group][name]: array
            for group, members in arrays.items()
            for name, array in members.items()
        }
        self._session.run(self._begin, fed)
        with contextlib.suppress(tf.errors.OutOfRangeError):
            while True:
                batch = self._next()
                yield batch

    def close(self) -> None:
        self._session.close()


#: Exhausted pipelines, by the arguments that they were built for.
_IDLE: Dict[Any, List[_Pipeline]] = {}


def _holder(array: Any) -> Any:
    kind = tf.string if array.dtype == object else array.dtype
    return tf.placeholder(kind, (None, *array.shape[1:]))


def _batches(
    asked: Any, arrays: Arrays, dataset: Callable[[Any, Arrays], Any]
) -> Iterator[Sequence[Any]]:
    """Yield batches of a ``dataset`` as numpy arrays. ``asked``: identifies it together with the
    arrays."""
    idle = _IDLE.setdefault((asked, *map(tuple, arrays.values())), [])
    pipeline = idle.pop() if idle else _Pipeline(arrays, lambda parts: dataset(asked, parts))
    try:
        yield from pipeline.batches(arrays)
    except BaseException:  # GeneratorExit too: there are batches left in it
        pipeline.close()
        raise
    idle.append(pipeline)


def load(loads: Loads, accelerator: str) -> Iterator[Loaded]:
    """Yield batches of images; see :meth:`harness.loader.Loading.load`. Without workers nothing is
    done ahead."""
    alike = loads._replace(paths=(), labels=None, draws=None if loads.draws is None else True)
    for batch in _batches(alike, tensorflow_data.arrays(loads), tensorflow_data.dataset):
        yield Loaded(*batch)


def load_tokens(loads: TokenLoads, accelerator: str) -> Iterator[LoadedTokens]:
    """Yield batches of token sequences; see :meth:`harness.loader.Loading.load_tokens`."""
    alike = loads._replace(starts=None)
    arrays = tensorflow_data.token_arrays(loads)
    for batch in _batches(alike, arrays, tensorflow_data.token_dataset):
        yield LoadedTokens(*batch)


def pixels(content: bytes) -> Any:
    """Decode a JPEG file, see :class:`harness.loader.Loading`."""
    with _LOCK:
        if not _DECODER:
            with tf.Graph().as_default() as graph, tf.device("/CPU:0"):
                holder = tf.placeholder(tf.string, ())
                image = tensorflow_data.decode(holder)
            _DECODER["of"] = _session(graph).make_callable(image, [holder])
    return _DECODER["of"](content)


settings = tensorflow_data.settings
