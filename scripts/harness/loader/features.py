"""Sequences of tokens in records of named features: TFRecord, and OneFlow's OFRecord.

A record is FILE/NUMBER, as in :mod:`harness.loader.records` and :mod:`harness.loader.ofrecords`.
Standard library and numpy; Python 3.7 to 3.13.
"""

from __future__ import annotations

import os
from typing import Any, Dict, List, Sequence, Tuple

from harness.loader import examples, ofrecords, records

#: Formats of records; :mod:`harness.loader` also names the first.
TFRECORD, OFRECORD = "tfrecord", "ofrecord"


def frames_of(file: str, form: str) -> Tuple[List[examples.Span], str]:
    """Return offset and length of each record's content, and why there are no more; "" at the
    end."""
    return records.frames_of(file) if form == TFRECORD else ofrecords.frames_of(file)


def decoded(content: bytes, form: str) -> Dict[str, Any]:
    """Return the whole numbers of a record's content by name, int64 (count,). Raises ValueError for
    an invalid one."""
    return examples.of_tensorflow(content) if form == TFRECORD else examples.of_oneflow(content)


def numbers(path: str, form: str) -> Dict[str, Any]:
    """Return the whole numbers of the record FILE/NUMBER by name. Raises ValueError for a bad one,
    and OSError."""
    file, number = os.path.split(path)
    if form == TFRECORD:
        return decoded(records.tfrecord_content(file, int(number)), form)
    return decoded(ofrecords.content(file, int(number)), form)


def in_a_row(features: Dict[str, Any], layout: Sequence[Tuple[str, int]]) -> Any:
    """Return the concatenated numbers of features, given by name and count, as int64. Raises
    ValueError for a missing feature or another count."""
    import numpy as np

    for name, count in layout:
        if name not in features:
            raise ValueError(f"the record has no {name}")
        if len(features[name]) != count:
            raise ValueError(f"the record has {len(features[name])} of {name}, not {count}")
    return np.concatenate([features[name] for name, _ in layout])
