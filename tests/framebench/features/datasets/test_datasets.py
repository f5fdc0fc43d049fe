"""Made-up data sets: reproducible, complete, and only in folders without other content."""

from __future__ import annotations

import fcntl
import io
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from framebench import cli
from framebench.features.datasets import folders, pictures, record_files, sequences, texts
from framebench.features.datasets.folders import MANIFEST, DataSetError
from framebench.features.datasets.image_folder import make, names
from harness import loader
from harness.loader import records
from harness.samples import folder, tokens
from PIL import Image

from ....conftest import ROOT
from ....processes import PATIENCE


def contents(root: Path) -> dict[str, bytes]:
    files = (path for path in root.rglob("*") if path.is_file())
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in files}


def test_the_same_call_makes_the_same_bytes_and_goes_on_where_it_was(tmp_path: Path) -> None:
    manifest = make(tmp_path / "one", 12, seed=5)
    first = contents(tmp_path / "one")
    made = manifest["made"]
    assert (made["train"], made["val"], made["classes"]) == (11, 1, 1)
    assert made["bytes"] == sum(len(c) for name, c in first.items() if name != MANIFEST)
    actual = folder.scan(str(tmp_path / "one"), "train", "refuse")
    assert len(actual.paths) == 11, "the harness reads what is made here"
    # state after a kill: some missing, one half written, the manifest with the request
    again = tmp_path / "one"
    for name in sorted(first)[3:7]:
        (again / name).unlink()
    (again / "train/n00000000/.n00000000_1.JPEG.0123").write_bytes(b"half")
    options = {**json.loads(first[MANIFEST]), "made": None}
    (again / MANIFEST).write_text(json.dumps(options))
    assert make(again, 12, seed=5) == manifest
    assert contents(again) == first
    other = pictures.make(6, 0).content
    assert other != first["train/n00000000/n00000000_0.JPEG"]


@pytest.mark.parametrize(
    ("stranger", "expected"),
    [
        ("thesis.tex", "which holds thesis.tex; allowed: a folder that is empty"),
        ("train/n00000000/mine.JPEG", "mine.JPEG, which make-data did not make"),
    ],
)
def test_a_folder_with_anything_else_is_left_alone(
    tmp_path: Path, stranger: str, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if stranger.startswith("train"):
        make(tmp_path, 2, seed=0)
    (tmp_path / stranger).write_text("mine")
    before = contents(tmp_path)
    assert cli.main(["make-data", "--folder", str(tmp_path), "--images", "2"]) == 1
    assert expected in capsys.readouterr().err
    assert contents(tmp_path) == before


def test_other_images_than_those_that_were_begun_are_refused(tmp_path: Path) -> None:
    make(tmp_path, 2, seed=0)
    with pytest.raises(DataSetError, match="data of seed 0; asked for: seed 1"):
        make(tmp_path, 2, seed=1)
    (tmp_path / MANIFEST).write_text("{}")
    with pytest.raises(DataSetError, match="is no manifest of make-data"):
        make(tmp_path, 2, seed=0)


def test_every_class_has_images_in_both_splits() -> None:
    for images in (2, 19, 64, 2000):
        actual = dict(names(images))
        assert sorted(actual.values()) == list(range(images))
        classes = {
            split: {name.split("/")[1] for name in actual if name.startswith(split)}
            for split in folders.SPLITS
        }
        assert classes["train"] == classes["val"]


def test_pictures_are_like_photographs() -> None:
    """Fail if made-up images differ from ImageNet's 500 x 375 pixels and 110 KB on average."""
    made = [pictures.make(0, number) for number in range(24)]
    area = sum(picture.width * picture.height for picture in made) / len(made)
    bits = (
        8
        * sum(len(picture.content) for picture in made)
        / sum(picture.width * picture.height for picture in made)
    )
    assert 0.5 * 500 * 375 < area < 2 * 500 * 375
    assert 3 < bits < 7, "110 KB of 500 x 375 are 4.7 bits a pixel"
    with Image.open(io.BytesIO(made[0].content)) as image:
        assert (image.format, image.mode, image.size) == ("JPEG", "RGB", made[0][1:])


def test_records_hold_the_same_images_and_labels(tmp_path: Path) -> None:
    plain = make(tmp_path / "folder", 20, seed=5)["made"]
    for form in record_files.FORMATS:
        assert make(tmp_path / form, 20, seed=5, form=form)["made"] == plain, "of the images"
        for split in folders.SPLITS:
            images = folder.scan(str(tmp_path / "folder"), split, "refuse")
            actual = folder.scan(str(tmp_path / form), split, "refuse")
            assert len(actual.classes) == len(images.classes) == 2
            assert held(actual) == held(images)
    again = tmp_path / "tfrecord"
    before = contents(again)
    (again / "val-00000-of-00001.tfrecord").unlink()  # as a kill leaves it
    (again / ".train-00000-of-00001.tfrecord").write_bytes(b"half")
    make(again, 20, seed=5, form="tfrecord")
    assert contents(again) == before
    with pytest.raises(DataSetError, match="data of format tfrecord; asked for: format None"):
        make(again, 20, seed=5)


def held(images: folder.Images) -> dict[bytes, int]:
    """Return the label by each file's content."""
    paths = (os.path.join(images.root, path) for path in images.paths)
    return dict(zip(map(loader.content_of, paths), images.labels, strict=True))


def test_a_record_is_cut_where_it_looks_like_the_beginning_of_one(tmp_path: Path) -> None:
    magic = (0xCED7230A).to_bytes(4, "little")
    images = [b"abcd" + magic + b"e" + magic + b"x", magic + magic, b"abc" + magic + b"defgh"]
    with record_files.writing(record_files.RECORDIO, tmp_path / "train.rec") as add:
        for label, image in enumerate(images):
            add(label, image)
    actual = records.recordio(str(tmp_path / "train.rec"))
    assert actual.labels == {0: 0, 1: 1, 2: 2}
    assert [loader.content_of(f"{tmp_path}/train.rec/{n}") for n in range(3)] == images
    content = (tmp_path / "train.rec").read_bytes()
    found_at = [index for index in range(0, len(content), 4) if content[index : index + 4] == magic]
    assert len(found_at) == 2 + 3 + 1, "at the beginning of each piece, and nowhere else"


def test_two_calls_do_not_make_data_in_one_folder_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make(tmp_path, 2, seed=0)
    before = contents(tmp_path)
    (tmp_path / ".half").write_bytes(b"that the other one writes")
    handle = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)  # as another call has it
    assert cli.main(["make-data", "--folder", str(tmp_path), "--images", "2"]) == 1
    assert "where another make-data is at work; allowed: when it has" in capsys.readouterr().err
    assert contents(tmp_path) == {**before, ".half": b"that the other one writes"}
    os.close(handle)
    make(tmp_path, 2, seed=0)


def test_documents_are_the_same_in_every_format_and_each_time(tmp_path: Path) -> None:
    first = {form: sequences.make(tmp_path / form, 9000, 5, form) for form in sequences.FORMATS}
    made = [manifest["made"] for manifest in first.values()]
    assert made == [made[0]] * len(made), "the digest is that of the tokens"
    assert (made[0]["train"], made[0]["val"], made[0]["texts"]) == (8192, 4096, 3)
    for form in sequences.FORMATS:
        before = contents(tmp_path / form)
        assert sequences.make(tmp_path / form, 9000, 5, form) == first[form], "made already"
        assert contents(tmp_path / form) == before
        sequences.make(tmp_path / "again" / form, 9000, 5, form)
        assert contents(tmp_path / "again" / form) == before
    other = sequences.make(tmp_path / "other", 9000, 6, "megatron")
    assert other["made"]["digest"] != made[0]["digest"]
    lines = (tmp_path / "wordpiece" / "vocab.txt").read_text(encoding="utf-8").splitlines()
    assert [lines[n] for n in (0, 100, 103)] == ["[PAD]", "[UNK]", "[MASK]"]
    assert len({*lines}) == len(lines) == made[0]["vocabulary"]
    (tmp_path / "bert" / "mine").write_text("x")
    with pytest.raises(DataSetError, match="make-data did not make"):
        sequences.make(tmp_path / "bert", 9000, 5, "bert")


def test_a_call_goes_on_where_one_was_that_was_killed(tmp_path: Path) -> None:
    """Fail if a killed call keeps the folder locked, or is not continued."""
    command = [sys.executable, str(ROOT / "workflow/framebench"), "make-data"]
    arguments = ["--folder", str(tmp_path), "--images", "40"]
    with subprocess.Popen([*command, *arguments]) as killed:
        ended = False
        while not list(tmp_path.rglob("*.JPEG")):
            assert not ended, "it makes nothing"
            ended = killed.poll() is not None
            time.sleep(0.02)
        killed.kill()
    late = time.monotonic() + PATIENCE
    while True:
        try:
            made = make(tmp_path, 40, seed=0)["made"]
            break
        except DataSetError:
            assert time.monotonic() < late, "a worker of the one that was killed holds the folder"
            time.sleep(0.1)
    assert made["train"] + made["val"] == len(list(tmp_path.rglob("*.JPEG"))) == 40


def test_texts_and_tokens_are_the_same_and_good_utf8(tmp_path: Path) -> None:
    first, other = (texts.make(tmp_path / form, 150_000, 5, form) for form in texts.FORMATS)
    assert first["made"] == other["made"]
    folder = tmp_path / "own"
    folder.mkdir()
    for split in folders.SPLITS:
        text, flat = (
            tokens.scan(str(tmp_path / form), split, "refuse", str(folder))
            for form in texts.FORMATS
        )
        assert text.length == flat.length == first["made"][split]
        assert Path(text.path).read_bytes() == Path(flat.path).read_bytes()
    whole = texts.text(5, 0)
    assert len(whole.decode()) < len(whole), "with letters beyond ASCII"
    assert texts.text(5, 0) == whole != texts.text(5, 1)


@pytest.mark.parametrize("images", ["1", "0", "-5", "10000000", "ten"])
def test_an_impossible_number_of_images_is_refused(
    tmp_path: Path, images: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["make-data", "--folder", str(tmp_path / "new"), f"--images={images}"]) == 2
    assert "allowed: a whole number from 2 to 1000000" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--format", "lmdb"], "--format: found lmdb; allowed: folder, tfrecord"),
        (["--tokens", "99999"], "--tokens: found 99999 with --format folder, which is of images"),
        (["--format", "text", "--images", "5"], "--images: found 5 with --format text"),
        (["--format", "tokens", "--tokens", "9"], "tokens: found 9; allowed: more than 65536"),
        (["--format", "bert", "--tokens", "9"], "tokens: found 9; allowed: more than 4096"),
    ],
)
def test_what_cannot_be_made_is_refused_before_anything_is(
    tmp_path: Path, arguments: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["make-data", "--folder", str(tmp_path / "new"), *arguments]) == 1
    assert reason in capsys.readouterr().err
    assert not (tmp_path / "new").exists()
