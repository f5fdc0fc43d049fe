"""Images in record files: listing, order, and bad ones."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from framebench.features.datasets import record_files
from harness.loader import RECORDIO, TFRECORD, sequential
from harness.samples import folder, order
from harness.samples.folder import REFUSE, SKIP, TRAIN, VALIDATION, BadData

from ....harness.loader.images import jpeg
from . import record_folder

PART, REC = "train-00000-of-00002.tfrecord", "train.rec"
OFRECORD, OF_ONEFLOW = record_files.OFRECORD, "train/part-00000"


def test_files_of_records_are_shuffled_and_records_in_them_not(tmp_path: Path) -> None:
    actual = folder.scan(str(record_folder.records(tmp_path, TFRECORD)), TRAIN, REFUSE)
    assert actual.paths[0] == f"{PART}/0"
    assert (actual.format, actual.labels) == (TFRECORD, [0, 1, 0, 1, 0, 1, 0])
    epochs = [order.epoch(actual, TRAIN, number, 3, 0, 1).tolist() for number in range(8)]
    first, second = [0, 1, 2, 3], [4, 5, 6]
    assert {tuple(epoch) for epoch in epochs} == {(*first, *second), (*second, *first)}
    parts = [order.epoch(actual, TRAIN, 0, 3, rank, 3) for rank in range(3)]
    assert [len(part) for part in parts] == [2, 2, 2]
    assert len(set(np.concatenate(parts).tolist())) == 6
    assert order.epoch(actual, VALIDATION, 0, 3, 0, 1, most=2).tolist() == [0, 1]
    loads = order.loads(actual, parts[0], TRAIN, 0, 3, 2, 8, 0)
    assert loads.format == TFRECORD


def test_a_loader_that_reads_to_the_end_knows_what_it_was_not_asked_for() -> None:
    read = sequential.read_of(["a/1", "a/2", "b/0", "b/1", "c/1"])
    assert read.counts == [3, 2, 2]
    assert read.selected == [False, True, True, True, True, False, True]
    whole = sequential.to_the_end(read, [5, 2, 9])
    assert whole.counts == [5, 2, 2], "of the last no more than is asked for"
    assert whole.selected == [False, True, True, False, False, True, True, False, True]


def test_an_indexed_file_is_fed_in_any_order(tmp_path: Path) -> None:
    actual = folder.scan(str(record_folder.records(tmp_path, RECORDIO)), TRAIN, REFUSE)
    places = order.epoch(actual, TRAIN, 0, 3, 0, 1).tolist()
    assert sorted(places) == list(range(7)) != places


def _flip(root: Path, name: str, offset: int) -> None:
    content = bytearray((root / name).read_bytes())
    content[offset] ^= 255
    (root / name).write_bytes(content)


def _cut(root: Path, name: str) -> None:
    content = (root / name).read_bytes()
    (root / name).write_bytes(content[:-100])


def _label(root: Path) -> None:
    with record_files.writing(TFRECORD, root / PART) as add:
        add(0, b"good")
        add(7, b"of no class")
    (root / folder.MANIFEST).write_text('{"made": {"classes": 2}}')


def _with(*images: bytes, label: int = 0) -> Callable[[Path], None]:
    """Return a function that writes only these images into OneFlow's first file."""

    def spoil(root: Path) -> None:
        with record_files.writing(OFRECORD, root / OF_ONEFLOW) as add:
            for image in images:
                add(label, image)

    return spoil


def _nothing_by_name(root: Path) -> None:
    with (root / OF_ONEFLOW).open("wb") as file:
        record_files.write_plain(file, record_files.of_oneflow({"class/label": [1]}))


GOOD = jpeg(1)
#: Complete image, but without its size.
FRAMELESS = GOOD[: GOOD.index(b"\xff\xc0")] + GOOD[GOOD.index(b"\xff\xc4") :]


def _no_image(root: Path) -> None:
    content = record_files.example(0, b"").replace(b"image/encoded", b"image/ENCODED")
    length = struct.pack("<Q", len(content))
    sums = [record_files.checksum(entry) for entry in (length, content)]
    (root / PART).write_bytes(length + sums[0] + content + sums[1])


@pytest.mark.parametrize(
    ("form", "spoil", "bad", "kept", "skipped"),
    [
        (TFRECORD, lambda root: _flip(root, PART, 0), f"{PART}/0: its length has a wrong", 3, 1),
        (TFRECORD, lambda root: _cut(root, PART), f"{PART}/3: the file is truncated within", 6, 1),
        (TFRECORD, _label, f"{PART}/1: its label is 7; there are 2 classes", 4, 1),
        (TFRECORD, _no_image, f"{PART}/0: the record has no image/encoded", 3, 1),
        (RECORDIO, lambda root: _flip(root, REC, 0), f"{REC}/0: where the index has", 6, 1),
        (RECORDIO, lambda root: _cut(root, REC), f"{REC}/6: the file is truncated within", 6, 1),
        (RECORDIO, lambda root: _flip(root, REC, 15), "is no label", 6, 1),
        (OFRECORD, lambda root: _cut(root, OF_ONEFLOW), f"{OF_ONEFLOW}/3: the file is trunc", 3, 4),
        (OFRECORD, _with(GOOD, b"text"), f"{OF_ONEFLOW}/1: is no JPEG file", 4, 1),
        (OFRECORD, _with(GOOD[:-300], GOOD), f"{OF_ONEFLOW}/0: the JPEG file is truncated", 4, 1),
        (OFRECORD, _with(FRAMELESS, GOOD), f"{OF_ONEFLOW}/0: the JPEG file does not say", 4, 1),
        (OFRECORD, _with(jpeg(1, mode="L"), GOOD), "the JPEG file has 1 components; OneFlow", 4, 1),
        (OFRECORD, _with(jpeg(1, mode="CMYK"), GOOD), "the JPEG file has 4 components;", 4, 1),
        (OFRECORD, _with(GOOD, label=2**31), f"{OF_ONEFLOW}/0: class/label is no label", 3, 1),
        (OFRECORD, _nothing_by_name, f"{OF_ONEFLOW}/0: the record has no encoded", 3, 1),
    ],
)  # fmt: skip
def test_a_bad_record_ends_the_run_by_name_or_is_counted(
    tmp_path: Path, form: str, spoil: Callable[[Path], None], bad: str, kept: int, skipped: int
) -> None:
    root = record_folder.records(tmp_path, form)
    spoil(root)
    with pytest.raises(BadData, match="bad_images: skip leaves it out") as error:
        folder.scan(str(root), TRAIN, REFUSE)
    assert bad in str(error.value)
    actual = folder.scan(str(root), TRAIN, SKIP)
    assert (len(actual.paths), len(actual.skipped)) == (kept, skipped)


def test_what_stands_behind_a_wrong_checksum_is_counted_too(tmp_path: Path) -> None:
    """Fail if records after a wrong checksum are not counted.
    TensorFlow stops there, and verifies checksums itself: only skipping does so here."""
    root = record_folder.records(tmp_path, TFRECORD)
    content = (root / PART).read_bytes()
    second = content.index(b"\xff\xd8\xff", content.index(b"\xff\xd9"))
    _flip(root, PART, second + 200)
    assert len(folder.scan(str(root), TRAIN, REFUSE).paths) == 7
    actual = folder.scan(str(root), TRAIN, SKIP)
    assert actual.skipped[0] == (f"{PART}/1", "its content has a wrong checksum")
    assert (len(actual.paths), len(actual.skipped)) == (4, 3)


def test_records_are_named_where_there_is_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "train.rec").write_bytes(b"")
    with pytest.raises(BadData, match=r"train.idx: No such file"):
        folder.scan(str(tmp_path), TRAIN, REFUSE)
    (tmp_path / "train.idx").write_text("")
    with pytest.raises(BadData, match="holds no image"):
        folder.scan(str(tmp_path), TRAIN, SKIP)
