"""Read features by name in protocol buffers, without the frameworks: TensorFlow's
``tf.train.Example`` and OneFlow's ``OFRecord``.

Sources: tensorflow/core/example/example.proto, oneflow/core/record/record.proto. Standard library
and numpy; Python 3.7 to 3.13.
"""

from __future__ import annotations

from typing import Any, Dict, Iterator, Tuple

#: Begin and end of bytes.
Span = Tuple[int, int]
_NO_MESSAGE = "it is no message of protocol buffers"
_NO_FEATURES = "the record holds no features by name"
#: Most bytes of a number.
_LONGEST = 10


def features(content: Any, span: Span) -> Iterator[Tuple[str, Span]]:
    """Yield name and span of each entry of a map from names to features. Raises ValueError."""
    for entry in parts(content, span, 1):
        names = [bytes(content[begin:end]) for begin, end in parts(content, entry, 1)]
        values = list(parts(content, entry, 2))
        if len(names) == len(values) == 1:
            yield names[0].decode("utf-8", "replace"), values[0]


def of_tensorflow(content: Any) -> Dict[str, Any]:
    """Return the whole numbers of a ``tf.train.Example`` by name, int64 (count,). Raises
    ValueError."""
    values: Dict[str, Any] = {}
    for span in parts(content, (0, len(content)), 1):
        for name, feature in features(content, span):
            for lies in parts(content, feature, 3):
                values[name] = numbers(content, lies)
    return _some(values)


def of_oneflow(content: Any) -> Dict[str, Any]:
    """Return the whole numbers of an ``OFRecord`` by name, of 32 or 64 bits. Raises ValueError."""
    values: Dict[str, Any] = {}
    for name, feature in features(content, (0, len(content))):
        for kind in (4, 5):
            for lies in parts(content, feature, kind):
                values[name] = numbers(content, lies)
    return _some(values)


def _some(values: Dict[str, Any]) -> Dict[str, Any]:
    if not values:
        raise ValueError(_NO_FEATURES)
    return values


def numbers(content: Any, span: Span) -> Any:
    """Return a list of whole numbers, int64 (count,). Raises ValueError."""
    import numpy as np

    packed = [varints(content[begin:end]) for begin, end in parts(content, span, 1)]
    if packed:
        return np.concatenate(packed)
    single = [value for number, wire, value in fields(content, *span) if (number, wire) == (1, 0)]
    return np.array(single, np.uint64).astype(np.int64)


def varints(content: bytes) -> Any:
    """Return consecutive varints as int64, negative ones as two's complement. Raises ValueError
    where the last one is truncated."""
    import numpy as np

    raw = np.frombuffer(content, np.uint8)
    ends = np.flatnonzero(raw < 128)
    if not len(raw):
        return np.zeros(0, np.int64)
    if not len(ends) or ends[-1] != len(raw) - 1:
        raise ValueError(_NO_FEATURES)
    begins = np.append(0, ends[:-1] + 1)
    lengths = ends - begins + 1
    if lengths.max() > _LONGEST:
        raise ValueError(_NO_FEATURES)
    integers = np.zeros(len(ends), np.uint64)
    for index in range(int(lengths.max())):
        longer = lengths > index
        bits = (raw[begins[longer] + index] & 127).astype(np.uint64)
        integers[longer] |= bits << np.uint64(7 * index)
    return integers.astype(np.int64)


def parts(content: Any, span: Span, number: int) -> Iterator[Span]:
    """Yield the spans of all byte fields with this ``number``."""
    for field, wire, value in fields(content, *span):
        if field == number and wire == 2:
            yield value


def fields(content: Any, offset: int, end: int) -> Iterator[Tuple[int, int, Any]]:
    """Yield number, type and value of each field of a message.

    The value of bytes and of fixed-size numbers is their span. Raises ValueError."""
    while offset < end:
        key, offset = varint(content, offset, end)
        wire, value = key & 7, None  # type: int, Any
        if wire == 0:
            value, offset = varint(content, offset, end)
        elif wire == 2:
            length, offset = varint(content, offset, end)
            value, offset = (offset, offset + length), offset + length
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
            value, offset = (offset, offset + size), offset + size
        else:
            raise ValueError(_NO_MESSAGE)
        if offset > end:
            raise ValueError(_NO_MESSAGE)
        yield key >> 3, wire, value


def varint(content: Any, offset: int, end: int) -> Tuple[int, int]:
    """Return a number and its end. Raises ValueError where it is truncated."""
    value = shift = 0
    while offset < end and shift < 64:
        byte = content[offset]
        value |= (byte & 127) << shift
        offset, shift = offset + 1, shift + 7
        if byte < 128:
            return value, offset
    raise ValueError(_NO_MESSAGE)
