"""Made-up data sets: reproducible, complete, and only in folders without other content."""

from __future__ import annotations

from pathlib import Path

import pytest
from framebench import cli
from framebench.features.datasets import data_folders
from framebench.features.datasets.data_folders import (
    MANIFEST,
    SPLITS,
    image_names,
    make_images,
    make_tokens,
)
from harness.samples import folder, tokens


def contents(root: Path) -> dict[str, bytes]:
    files = (path for path in root.rglob("*") if path.is_file())
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in files}


def test_the_same_call_makes_the_same_bytes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["make-data", "--folder", str(tmp_path / "one"), "--images", "12", "--seed", "5"]
    assert cli.main(command) == 0
    first = contents(tmp_path / "one")
    made = sum(len(content) for name, content in first.items() if name != MANIFEST)
    said = f"11 to train on and 1 to validate with: images in 1 classes; {made / 1e6:.0f} MB"
    assert said in capsys.readouterr().out
    actual = folder.scan(str(tmp_path / "one"), "train")
    assert len(actual.paths) == 11, "the harness reads what is made here"
    assert make_images(tmp_path / "again", 12, seed=5)["bytes"] == made
    assert contents(tmp_path / "again") == first
    other = data_folders.draw_image(6, 0)
    assert other != first["train/n00000000/n00000000_0.JPEG"]


def test_a_folder_with_anything_else_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "thesis.tex").write_text("mine")
    assert cli.main(["make-data", "--folder", str(tmp_path), "--images", "2"]) == 1
    assert "which holds files; allowed: a folder that is empty" in capsys.readouterr().err
    assert contents(tmp_path) == {"thesis.tex": b"mine"}


def test_every_class_has_images_in_both_splits() -> None:
    for images in (2, 19, 64, 2000):
        actual = list(image_names(images))
        assert len({*actual}) == images
        classes = {
            split: {name.split("/")[1] for name in actual if name.startswith(split)}
            for split in SPLITS
        }
        assert classes["train"] == classes["val"]


def test_tokens_are_the_same_each_time_and_suffice_for_bert(tmp_path: Path) -> None:
    first = make_tokens(tmp_path / "first", 3000, seed=5)
    assert make_tokens(tmp_path / "again", 3000, seed=5) == first
    assert contents(tmp_path / "first") == contents(tmp_path / "again")
    assert make_tokens(tmp_path / "other", 3000, seed=6)["digest"] != first["digest"]
    lengths = {}
    for split in SPLITS:
        actual = tokens.scan(str(tmp_path / "first"), split)
        tokens.check(actual, tokens.MaskingPlan(tokens.BERT, 128, 20), {})
        lengths[split] = actual.length
    assert lengths == {"train": 2700, "val": 300}
