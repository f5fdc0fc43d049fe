"""Images from a folder: listing, order, and completeness; with possible mistakes of a loader."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from harness import loader
from harness import loader as loading
from harness.adapter import Mismatch
from harness.loader import DRAWS, Batch, Loads
from harness.samples import folder
from harness.samples.folder import TRAIN, VALIDATION, BadData
from PIL import Image

from . import images as made

SIZE = 8


class Plain:
    """Loader of Pillow and numpy. ``mistake``: changes its batches."""

    def __init__(self, mistake: Callable[[Iterator[Batch]], Iterator[Batch]] = iter) -> None:
        self._mistake = mistake

    def load(self, loads: Loads) -> Iterator[Batch]:
        return self._mistake(self._load(loads))

    def _load(self, loads: Loads) -> Iterator[Batch]:
        for first in range(0, len(loads.paths), loads.batch):
            numbers = np.arange(first, min(first + loads.batch, len(loads.paths)))
            pixels = [self._one(loads, number) for number in numbers]
            yield {"images": np.stack(pixels), "labels": loads.labels[numbers]}

    def _one(self, loads: Loads, number: int) -> Any:
        with Image.open(loads.paths[number]) as opened:
            image = opened.convert("RGB")
        if loads.draws is not None:
            top, left, tall, wide = loading.crop(image.height, image.width, loads.draws[number])
            image = image.crop((left, top, left + wide, top + tall))
        return np.asarray(image.resize((SIZE, SIZE)), np.float32) / 255


def asked_of(root: Path, split: str = TRAIN, batch: int = 2) -> Loads:
    actual = folder.scan(str(root), split)
    places = folder.places_of(len(actual.paths), split, 0, 3, 0, 1)
    return folder.loads(actual, places, split, 0, 3, batch, SIZE, 0)


# ---- listing ------------------------------------------------------------------------------------


def test_classes_are_numbered_by_those_to_train_on(tmp_path: Path) -> None:
    made.folder(tmp_path)
    shutil.rmtree(tmp_path / "val" / "c0")
    actual = folder.scan(str(tmp_path), VALIDATION)
    assert (actual.classes, actual.labels) == (["c0", "c1"], [1, 1])
    assert actual.paths == ["val/c1/i01.JPEG", "val/c1/i03.JPEG"]


@pytest.mark.parametrize(
    ("spoil", "path", "reason"),
    [
        (lambda root: (root / "train/c0/notes.txt").write_text("x"), "train/c0/notes.txt",
         "its suffix is none of .jpeg, .jpg"),
        (lambda root: (root / "train/list.csv").write_text("x"), "train/list.csv",
         "is not the folder of a class"),
        (lambda root: (root / "train/c9").mkdir(), "train/c9", "is a class without an image"),
    ],
)  # fmt: skip
def test_what_is_no_image_is_refused_by_name(
    tmp_path: Path, spoil: Callable[[Path], object], path: str, reason: str
) -> None:
    spoil(made.folder(tmp_path))
    with pytest.raises(BadData) as error:
        folder.scan(str(tmp_path), TRAIN)
    assert f"{path}: {reason}" in str(error.value)


def test_a_class_that_is_not_trained_on_has_no_label(tmp_path: Path) -> None:
    made.folder(tmp_path)
    shutil.copytree(tmp_path / "val" / "c0", tmp_path / "val" / "new")
    with pytest.raises(BadData, match="val/new: is a class that train does not have"):
        folder.scan(str(tmp_path), VALIDATION)


def test_a_folder_without_images_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadData, match="nowhere/train: No such file"):
        folder.scan(str(tmp_path / "nowhere"), TRAIN)
    (tmp_path / "train").mkdir()
    with pytest.raises(BadData, match="holds no image"):
        folder.scan(str(tmp_path), TRAIN)


def test_another_data_set_has_another_identity(tmp_path: Path) -> None:
    first, same, second = (made.folder(tmp_path / name) for name in ("one", "same", "other"))
    (second / "val/c1/i03.JPEG").rename(second / "val/c1/i05.JPEG")
    known = [folder.identity(str(root)) for root in (first, same, second)]
    assert known[0] == known[1] != known[2]
    (same / folder.MANIFEST).write_text('{"made": {"digest": "1"}}')
    assert folder.identity(str(same)) != known[1], "the bytes may be others"


# ---- order --------------------------------------------------------------------------------------


def test_every_image_goes_to_one_rank_once_an_epoch(tmp_path: Path) -> None:
    actual = folder.scan(str(made.folder(tmp_path, train=7)), TRAIN)
    parts = [folder.places_of(len(actual.paths), TRAIN, 0, 3, rank, 2) for rank in range(2)]
    fed = np.concatenate(parts)
    assert [len(part) for part in parts] == [3, 3], "as many on each rank"
    assert len(set(fed.tolist())) == 6
    again, later = (
        folder.places_of(len(actual.paths), TRAIN, epoch, 3, 0, 1).tolist() for epoch in (0, 1)
    )
    assert sorted(again) == sorted(later) == list(range(7))
    assert again != later
    assert again != folder.places_of(len(actual.paths), TRAIN, 0, 4, 0, 1).tolist()
    assert folder.places_of(len(actual.paths), VALIDATION, 5, 3, 0, 1).tolist() == list(range(7))


def test_a_part_of_an_epoch_has_the_same_images_in_each(tmp_path: Path) -> None:
    actual = folder.scan(str(made.folder(tmp_path, train=7)), TRAIN)
    chosen = [
        folder.places_of(len(actual.paths), TRAIN, epoch, 3, 0, 1, most=4).tolist()
        for epoch in range(3)
    ]
    assert len({tuple(sorted(entry)) for entry in chosen}) == 1
    assert len(chosen[0]) == 4


def test_too_few_samples_for_a_batch_are_refused(tmp_path: Path) -> None:
    root = made.folder(tmp_path)
    with pytest.raises(BadData, match=r"train has 6 images for this rank, too few .* batch of 7$"):
        asked_of(root, batch=7)
    actual = folder.scan(str(root), TRAIN)
    with pytest.raises(BadData, match=r"train has 3 images for this rank, too few .* batch of 4$"):
        folder.loads(
            actual, folder.places_of(len(actual.paths), TRAIN, 0, 3, 0, 2), TRAIN, 0, 3, 4, SIZE, 0
        )


@pytest.mark.parametrize(("height", "width"), [(375, 500), (500, 375), (1, 1), (5, 1000), (900, 9)])
def test_a_crop_lies_within_the_image(height: int, width: int) -> None:
    for draws in np.random.RandomState(1).uniform(size=(200, DRAWS)):
        top, left, tall, wide = loading.crop(height, width, draws)
        assert 0 <= top <= top + tall <= height
        assert 0 <= left <= left + wide <= width
        assert min(tall, wide) >= 1
    flips = [loading.is_flipped(d) for d in np.random.RandomState(2).uniform(size=(400, DRAWS))]
    assert 150 < sum(flips) < 250


def test_crops_have_the_areas_and_ratios_that_are_asked_for() -> None:
    boxes = [
        loading.crop(1000, 1000, draws)
        for draws in np.random.RandomState(3).uniform(size=(500, DRAWS))
    ]
    areas = np.array([tall * wide / 1e6 for _, _, tall, wide in boxes])
    ratios = np.array([wide / tall for _, _, tall, wide in boxes])
    assert 0.079 < areas.min() < 0.12
    assert areas.max() > 0.9
    assert 0.74 < ratios.min() < 0.77
    assert 1.3 < ratios.max() < 1.34


def test_validation_cuts_the_centre_out_as_torchvision_does() -> None:
    assert loading.centre(375, 500, 224) == (256, 341, 16, 58)
    assert loading.centre(500, 375, 224) == (341, 256, 58, 16)
    assert loading.centre(1, 1, 224) == (256, 256, 16, 16)


# ---- completeness -------------------------------------------------------------------------------


def test_what_came_is_counted_and_summed_up(tmp_path: Path) -> None:
    root = made.folder(tmp_path)
    loads = asked_of(root, batch=4)
    first = folder.checked(Plain(), loads, str(root))
    assert first["images"] == 6
    other = folder.checked(Plain(), loads._replace(draws=1 - loads.draws), str(root))
    assert other["order_crc32"] == first["order_crc32"]
    assert other["mean"] != first["mean"]


@pytest.mark.parametrize(
    ("mistake", "expected"),
    [
        (lambda fed: itertools.islice(fed, 1, None),
         "returned other labels than those of 0 to 2|returned 4 images of 6"),
        (lambda fed: iter([next(fed)] * 2),
         "returned other labels than those of 2 to 4|returned 4 images of 6"),
        (lambda fed: ({**one, "labels": 1 - one["labels"]} for one in fed), "than those of 0 to 2"),
        (lambda fed: ({**one, "images": one["images"].astype("u1")} for one in fed),
         "returned uint8"),
    ],
)  # fmt: skip
def test_a_mistake_of_a_loader_is_found(
    tmp_path: Path, mistake: Callable[[Iterator[Batch]], Iterator[Batch]], expected: str
) -> None:
    root = made.folder(tmp_path)
    with pytest.raises(Mismatch, match=expected):
        folder.checked(Plain(mistake), asked_of(root), str(root))


PHOTO = made.jpeg(1, 200, 150)
PNG = made.encoded(made.picture(2, 64, 48), "PNG")


@pytest.mark.parametrize(
    "spoil",
    [
        lambda path: path.write_bytes(PHOTO[: len(PHOTO) // 2]),
        lambda path: path.write_text("no image"),
        lambda path: path.symlink_to("nowhere"),
    ],
)
def test_an_image_that_cannot_be_read_ends_the_run_by_name(
    tmp_path: Path, spoil: Callable[[Path], object]
) -> None:
    spoil(made.folder(tmp_path) / "train/c0/bad.JPEG")
    loads, root = asked_of(tmp_path), str(tmp_path)
    with pytest.raises(BadData, match=r"^train/c0/bad.JPEG: .*; remove it from the data"):
        folder.checked(Plain(), loads, root)


def test_a_loader_that_breaks_at_a_good_image_says_so(tmp_path: Path) -> None:
    def breaks(batch: Iterator[Batch]) -> Iterator[Batch]:
        yield next(batch)
        raise RuntimeError("a worker was killed")

    root = made.folder(tmp_path)
    with pytest.raises(Mismatch, match="failed after 2 images: RuntimeError: a worker was killed"):
        list(folder.batches(Plain(breaks), asked_of(root), str(root)))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "is not a JPEG file"),
        (PHOTO[:-2], "truncated"),
        (PNG[:-6], "the PNG file is truncated: it has no end"),
    ],
)
def test_what_is_not_whole_is_refused(content: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        loader.whole_image(content)
