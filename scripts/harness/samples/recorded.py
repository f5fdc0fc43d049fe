"""Images in record files: ``train-00000-of-00008.tfrecord`` as TensorFlow's examples name them,
``train.rec`` with ``train.idx`` as MXNet's ``im2rec`` does, or ``train/part-00000`` as OneFlow's
examples do."""

from __future__ import annotations

import os
import re
from typing import List, NamedTuple, Tuple

from harness.loader import OFRECORD, RECORDIO, TFRECORD, ofrecords, records

#: Names of a TFRecord's parts; examples call validation ``validation`` and omit the suffix.
_PART = r"%s[a-z]*-\d+-of-\d+(\.tfrecords?)?"


class Listed(NamedTuple):
    """Records of a split. ``paths``: FILE/NUMBER below the folder. ``labels``: of each. ``bad``:
    path and reason."""

    paths: List[str]
    labels: List[int]
    bad: List[Tuple[str, str]]


def files_of(root: str, split: str) -> Tuple[str, List[str]]:
    """Return format and sorted names of a split's record files below ``root``; none where there are
    none."""
    try:
        names = sorted(os.listdir(root))
    except OSError:
        return "", []
    if f"{split}.rec" in names:
        return RECORDIO, [f"{split}.rec"]
    beside = [name for name in names if re.fullmatch(_PART % split, name)]
    if beside:
        return TFRECORD, beside
    try:
        inner = sorted(os.listdir(os.path.join(root, split)))
    except OSError:
        return "", []
    parts = [f"{split}/{name}" for name in inner]
    return OFRECORD, [part for part in parts if ofrecords.is_part(os.path.join(root, part))]


def listed(root: str, form: str, files: List[str], checks_all: bool) -> Listed:
    """List the records of these ``files``. ``checks_all``: also check each TFRecord's checksums.
    Raises OSError."""
    listing = Listed([], [], [])
    for file in files:
        path = os.path.join(root, file)
        each = _records_of(path, form, checks_all)
        listing.paths.extend(f"{file}/{number}" for number in each.labels)
        listing.labels.extend(each.labels.values())
        listing.bad.extend((f"{file}/{number}", reason) for number, reason in each.bad)
    return listing


def _records_of(path: str, form: str, checks_all: bool) -> records.Records:
    if form == TFRECORD:
        return records.tfrecord(path, checks_all)
    return records.recordio(path) if form == RECORDIO else ofrecords.listed(path)
