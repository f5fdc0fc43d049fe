"""Images that are made: the same each time, whole, and only where nothing else is."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from framebench import cli
from framebench.datasets import image_folder, pictures
from framebench.datasets.image_folder import MANIFEST, Refused, make, names
from harness.samples import folder
from PIL import Image


def contents(root: Path) -> dict[str, bytes]:
    files = (path for path in root.rglob("*") if path.is_file())
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in files}


def test_the_same_call_makes_the_same_bytes_and_goes_on_where_it_was(tmp_path: Path) -> None:
    manifest = make(tmp_path / "one", 12, seed=5)
    first = contents(tmp_path / "one")
    made = manifest["made"]
    assert (made["train"], made["val"], made["classes"]) == (11, 1, 1)
    assert made["bytes"] == sum(len(c) for name, c in first.items() if name != MANIFEST)
    found = folder.scan(str(tmp_path / "one"), "train", "refuse")
    assert len(found.paths) == 11, "the harness reads what is made here"
    # as a kill leaves it: some are missing, one is half written, the manifest says what was asked
    again = tmp_path / "one"
    for name in sorted(first)[3:7]:
        (again / name).unlink()
    (again / "train/n00000000/.n00000000_1.JPEG.0123").write_bytes(b"half")
    asked = {**json.loads(first[MANIFEST]), "made": None}
    (again / MANIFEST).write_text(json.dumps(asked))
    assert make(again, 12, seed=5) == manifest
    assert contents(again) == first
    other = pictures.make(6, 0).content
    assert other != first["train/n00000000/n00000000_0.JPEG"]


@pytest.mark.parametrize(
    ("stranger", "words"),
    [
        ("thesis.tex", "which holds thesis.tex; allowed: a folder that is empty"),
        ("train/n00000000/mine.JPEG", "mine.JPEG, which make_data did not make"),
    ],
)
def test_a_folder_with_anything_else_is_left_alone(
    tmp_path: Path, stranger: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if stranger.startswith("train"):
        make(tmp_path, 2, seed=0)
    (tmp_path / stranger).write_text("mine")
    before = contents(tmp_path)
    assert cli.main(["make-data", "--folder", str(tmp_path), "--images", "2"]) == 1
    assert words in capsys.readouterr().err
    assert contents(tmp_path) == before


def test_other_images_than_those_that_were_begun_are_refused(tmp_path: Path) -> None:
    make(tmp_path, 2, seed=0)
    with pytest.raises(Refused, match="pictures of seed 0; asked for: seed 1"):
        make(tmp_path, 2, seed=1)
    (tmp_path / MANIFEST).write_text("{}")
    with pytest.raises(Refused, match="is no manifest of make_data"):
        make(tmp_path, 2, seed=0)


def test_every_class_has_images_in_both_splits() -> None:
    for images in (2, 19, 64, 2000):
        found = dict(names(images))
        assert sorted(found.values()) == list(range(images))
        classes = {
            split: {name.split("/")[1] for name in found if name.startswith(split)}
            for split in image_folder.SPLITS
        }
        assert classes["train"] == classes["val"]


def test_pictures_are_like_photographs() -> None:
    """ImageNet's have about 500 x 375 pixels and 110 KB in the mean."""
    made = [pictures.make(0, number) for number in range(24)]
    area = sum(one.width * one.height for one in made) / len(made)
    bits = 8 * sum(len(one.content) for one in made) / sum(one.width * one.height for one in made)
    assert 0.5 * 500 * 375 < area < 2 * 500 * 375
    assert 3 < bits < 7, "110 KB of 500 x 375 are 4.7 bits a pixel"
    with Image.open(io.BytesIO(made[0].content)) as image:
        assert (image.format, image.mode, image.size) == ("JPEG", "RGB", made[0][1:])
