"""Sequences for BERT and ELECTRA in record files, with the features of Google's BERT, NVIDIA's two
systems and DLPerf.

They are ``input_ids``, ``input_mask`` and ``segment_ids``, all of one length; BERT's also have
``masked_lm_positions``, ``masked_lm_ids`` and ``next_sentence_labels``. TFRecords are files of one
folder (:mod:`harness.samples.recorded`) or, with ``tfrecord`` in their names, in a folder ``train``
or ``val``; OneFlow's ``part-00000`` .. are in such a folder. Standard library and numpy; Python 3.7
to 3.13.
"""

from __future__ import annotations

import os
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from harness.loader import RECORDIO, TFRECORD, features, records
from harness.samples import recorded
from harness.samples.folder import SKIP, BadData, Skipped

IDS, REAL, SEGMENTS = "input_ids", "input_mask", "segment_ids"
POSITIONS, WORDS, NEXT = "masked_lm_positions", "masked_lm_ids", "next_sentence_labels"
PLAIN, MASKED = (IDS, REAL, SEGMENTS), (POSITIONS, WORDS, NEXT)
#: Upper limits of features that depend on neither vocabulary nor length.
_TWO = (REAL, SEGMENTS, NEXT)
_HOW = "bad_images: skip leaves it out and counts it"

Features = Sequence[Tuple[str, int]]


class Recorded(NamedTuple):
    """Records of a split.

    ``paths``: FILE/NUMBER below ``root``. ``features``: name and count of each record's features.
    ``format``: TFRECORD or OFRECORD. ``skipped``: records left out."""

    root: str
    paths: List[str]
    features: Features
    format: str
    skipped: List[Skipped]

    @property
    def length(self) -> int:
        """Tokens of a sequence."""
        return self.features[0][1]


def files_of(root: str, split: str) -> Tuple[str, List[str]]:
    """Return format and sorted names of a split's record files below ``root``; none where there are
    none."""
    form, files = recorded.files_of(root, split)
    if files and form != RECORDIO:
        return form, files
    try:
        names = sorted(os.listdir(os.path.join(root, split)))
    except OSError:
        return "", []
    inner = [f"{split}/{name}" for name in names if "tfrecord" in name]
    return (TFRECORD, inner) if inner else ("", [])


def scan(root: str, form: str, files: Sequence[str], bad: str, vocabulary: int) -> Recorded:
    """Return the records of these ``files``. Raises :class:`BadData`.

    ``vocabulary``: upper limit of tokens. With SKIP each record is read, else the first of each
    file."""
    paths: List[str] = []
    skipped: List[Skipped] = []
    layout: List[Tuple[str, int]] = []
    check = records.check_content if bad == SKIP and form == TFRECORD else None

    def look(content: Any, offset: int, length: int) -> int:
        if bad != SKIP and read:
            return 0
        if check is None and form == TFRECORD:
            records.check_content(content, offset, length)
        arrays = features.decoded(content[offset : offset + length], form)
        if not layout:
            layout.extend(_features_of(arrays))
        row = features.in_a_row(arrays, layout)
        reason = wrong(row[None], layout, vocabulary)
        if reason:
            raise ValueError(reason[1])
        read.append(1)
        return 0

    for file in files:
        read: List[int] = []
        path = os.path.join(root, file)
        try:
            scanned = records.looked_at(path, features.frames_of(path, form), check, look)
        except OSError as error:
            raise BadData(f"{path}: {error.strerror}") from None
        for number, reason_of in scanned.bad:
            if bad != SKIP:
                raise BadData(f"{file}/{number}: {reason_of}; {_HOW}")
            skipped.append(Skipped(f"{file}/{number}", reason_of))
        paths.extend(f"{file}/{number}" for number in scanned.labels)
    if not paths:
        first = f"; {skipped[0].path}: {skipped[0].reason}" if skipped else ""
        raise BadData(f"{root}: {files[0]} and {len(files) - 1} more hold no good record{first}")
    return Recorded(root, paths, layout, form, skipped)


def _features_of(arrays: Dict[str, Any]) -> List[Tuple[str, int]]:
    """Return name and count of the features in the first good record. Raises ValueError."""
    names = [*PLAIN, *MASKED] if any(name in arrays for name in MASKED) else [*PLAIN]
    for name in names:
        if name not in arrays:
            raise ValueError(f"the record has no {name}")
    counts = {name: len(arrays[name]) for name in names}
    if not counts[IDS] or len({counts[name] for name in PLAIN}) > 1:
        numbers = ", ".join(f"{counts[name]} of {name}" for name in PLAIN)
        raise ValueError(f"the record has {numbers}, which must be as many")
    if counts.get(POSITIONS) != counts.get(WORDS) or counts.get(NEXT, 1) != 1:
        numbers = ", ".join(f"{counts[name]} of {name}" for name in MASKED)
        raise ValueError(f"the record has {numbers}, where one label and as many words must be")
    return list(counts.items())


def columns(rows: Any, layout: Features) -> Dict[str, Any]:
    """Return features by name (records, count), from rows of all of them (records, numbers)."""
    by_name, first = {}, 0
    for name, count in layout:
        by_name[name] = rows[:, first : first + count]
        first += count
    return by_name


def wrong(rows: Any, layout: Features, vocabulary: int) -> Optional[Tuple[int, str]]:
    """Return index and defect of the first row (records, numbers) that a model of this vocabulary
    cannot take; None without one."""
    length = layout[0][1]
    below = {IDS: vocabulary, WORDS: vocabulary, POSITIONS: length, **dict.fromkeys(_TWO, 2)}
    for name, values in columns(rows, layout).items():
        bad = (values < 0) | (values >= below[name])
        if bad.any():
            row = int(bad.any(axis=1).argmax())
            index = int(bad[row].argmax())
            number = int(values[row, index])
            return row, f"number {index} of {name} is {number}, allowed: 0 to {below[name] - 1}"
    return None
