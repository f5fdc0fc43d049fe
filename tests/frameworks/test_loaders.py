"""Samples of each framework's loader equal those of a loader of Pillow and numpy, in order."""

from __future__ import annotations

import os
import re
import zlib
from typing import Any

import numpy as np
import pytest
from harness.samples import tokens

from ..harness.loader import images as made
from ..harness.loader import token_folder
from ..harness.loader.images import BATCH, SEED, SIZE, apart, asked_of, expected
from .fork_server import ForkServer, served

run = served(
    *("pytorch", "paddle", "oneflow", "mxnet", "jax", "mindspore", "tensorflow", "tensorflow1"),
    imports=(),
)
ODD = {"grey": (64, 48, "L"), "cmyk": (64, 48, "CMYK"), "dot": (1, 1, "RGB")}
#: File contents by unusual file names that a file system accepts.
STRANGE = {
    **{os.fsencode(name): content for name, content in made.STRANGE.items()},
    b"o\xff d\n": made.jpeg(14, 64, 48),
}
#: Difference of values from Pillow's, in levels of 0 to 255: mean and maximum.
APART = {
    "mxnet": (3.0, 60.0),
    "oneflow": (0.01, 1.01),  # another version of Pillow
    "tensorflow": (0.3, 2.01),
    "tensorflow1": (0.3, 2.01),
}


@pytest.fixture(scope="module")
def roots(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    base = tmp_path_factory.mktemp("data")
    actual = {
        "folder": made.folder(base / "folder", train=5, val=5),
        "tokens": token_folder.tokens(base / "tokens"),
        "wide": token_folder.tokens(base / "wide", dtype="uint32"),
    }
    for name, (width, height, mode) in ODD.items():
        path = actual["folder"] / "train" / "c0" / f"{name}.JPEG"
        path.write_bytes(made.jpeg(8, width, height, mode))
    for name, content in STRANGE.items():
        (actual["folder"] / "train" / "c0" / os.fsdecode(name + b".JPEG")).write_bytes(content)
    (actual["folder"] / "train" / "c1" / "link.JPEG").symlink_to("i01.JPEG")
    content = made.jpeg(5, 200, 150)
    bad = {"truncated": content[: len(content) // 2], "text": b"no image", "empty": b""}
    for name, image in bad.items():
        actual[name] = made.folder(base / name, train=3, val=0)
        (actual[name] / "train" / "c1" / f"{name}.JPEG").write_bytes(image)
    (actual["folder"] / "train" / "c1" / "large.JPEG").write_bytes(made.jpeg(6, 6000, 5000))
    actual["unreadable"] = made.folder(base / "unreadable", train=3, val=0)
    (actual["unreadable"] / "train" / "c1" / "unreadable.JPEG").symlink_to(base / "nowhere")
    return {name: str(root) for name, root in actual.items()}


def order_of(root: str, split: str) -> int:
    names = (os.path.relpath(path, root) for path in asked_of(root, split).paths)
    return zlib.crc32(b"".join(os.fsencode(f"{name}\0") for name in names))


def test_samples_are_those_that_were_asked_for(run: ForkServer, roots: dict[str, str]) -> None:
    (actual,) = run(
        "loaders.load",
        **{"roots": roots, "size": SIZE, "batch": BATCH, "seed": SEED, "several": 1},
    )
    mean, most = APART.get(run.framework, (1e-3, 1e-3))
    for split in ("train", "val"):
        difference = apart(np.load(run.folder / f"{split}.npy"), expected(roots["folder"], split))
        assert difference[0] <= mean, f"{split}: {difference}"
        assert difference[1] <= most, f"{split}: {difference}"
    assert actual["again"] == actual["train"], "with a worker and without"
    assert actual["train"]["images"] == 14
    for split in ("train", "val"):
        assert actual[split]["order_crc32"] == order_of(roots["folder"], split)
    fed_of = {name: actual[name] for name in ("tokens", "wide")}
    for name, fed in fed_of.items():
        data = tokens.scan(roots[name], "train")
        loads = tokens.loads(data, "train", 0, SEED, 0, 1, 16, BATCH, 0)
        assert fed["sequences"] == len(loads.starts) == 62
    assert fed_of["tokens"] == fed_of["wide"] == actual["tokens-again"]
    check_faults(actual, run.framework)
    check_bad(actual)


def check_bad(found: dict[str, Any]) -> None:
    """Check the messages of the framework's loader about each bad image."""
    for name in ("truncated", "text", "empty", "unreadable"):
        text = f"BadData: train/c1/{name}.JPEG: "
        assert found[name].startswith(text), found[name]
        assert found[name].endswith("; remove it from the data")


def check_faults(found: dict[str, Any], framework: str) -> None:
    """Check the messages about a vanished folder and a killed worker, which come within seconds."""
    assert re.match(r"BadData: train/c./.*\.JPEG: ", found["vanished"]), found["vanished"]
    if framework == "mxnet":
        assert found["ended"] == [0], "one that is killed may keep a lock that MXNet waits for"
    if framework in ("tensorflow", "tensorflow1"):
        assert found["loaded"] == 40 * 14 - 1, "its workers are threads"
    elif framework not in ("mindspore", "mxnet", "oneflow"):
        broken = r"Mismatch: the loader failed after \d+ images: \w+Error\b"
        assert re.match(broken, found["killed"]), found["killed"]
    assert max(found["seconds"]) < 180, found  # a framework may need 120 s to notice
