"""Documented data formats of each framework equal those that its loader states.
``test_loaders.py`` reads, or has refused, each of them."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from harness import loader as loading

from ..conftest import ROOT

PAGE = (ROOT / "docs/input.md").read_text()
FRAMEWORKS = {
    "PyTorch": "pytorch",
    "TensorFlow 2": "tensorflow",
    "TensorFlow 1": "tensorflow1",
    "PaddlePaddle": "paddle",
    "OneFlow": "oneflow",
    "MXNet": "mxnet",
    "JAX": "jax",
    "MindSpore": "mindspore",
}
IMAGES = {
    "images: folder": loading.FOLDER,
    "images: TFRecord": loading.TFRECORD,
    "images: RecordIO": loading.RECORDIO,
    "images: OFRecord": loading.OFRECORD,
}
TOKENS = {"tokens: TFRecord": loading.TFRECORD, "tokens: OFRecord": loading.OFRECORD}
#: Formats that every loader reads, and formats that none reads.
ALL, NONE = "tokens: token files, texts, Megatron", "tokens: HDF5"


def table() -> dict[str, dict[str, str]]:
    """Return cells by format and framework."""
    lines = PAGE[PAGE.index("| format | ") :].partition("\n\n")[0].splitlines()
    head, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
    return {row[0]: dict(zip(head[1:], row[1:], strict=True)) for row in rows}


def constant(framework: str, name: str, default: tuple[str, ...]) -> tuple[str, ...]:
    """Return a tuple of formats in a framework's loader, which only its own environment
    can import."""
    path = ROOT / "scripts/frameworks" / framework / "loader.py"
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            assert isinstance(node.value, ast.Tuple), f"{path}: {name} is no tuple"
            return tuple(getattr(loading, ast.unparse(elt)) for elt in node.value.elts)
    return default


def test_every_framework_and_format_stands_in_the_table() -> None:
    actual = table()
    assert [*actual] == [*IMAGES, ALL, *TOKENS, NONE]
    assert all([*row] == [*FRAMEWORKS] for row in actual.values())
    folders = {path.parent.name for path in (ROOT / "scripts/frameworks").glob("*/loader.py")}
    assert folders == {*FRAMEWORKS.values()}


@pytest.mark.parametrize("title", FRAMEWORKS)
def test_a_framework_reads_what_the_table_says(title: str) -> None:
    framework = FRAMEWORKS[title]
    images = constant(framework, "FORMATS", (loading.FOLDER,))
    tokens = constant(framework, "TOKEN_FORMATS", (loading.TFRECORD, loading.OFRECORD))
    expected = {
        **{row: form in images for row, form in IMAGES.items()},
        **{row: form in tokens for row, form in TOKENS.items()},
        ALL: True,
        NONE: False,
    }
    actual = {row: cells[title] for row, cells in table().items()}
    assert actual == {row: "yes" if reads else "no" for row, reads in expected.items()}


def test_only_tensorflow_has_what_reads_hdf5() -> None:
    """Fail if another environment than TensorFlow's has h5py, the table's reason about HDF5."""
    environments: list[Path] = sorted((ROOT / "envs").glob("*.yaml"))
    having = {path.stem.partition("-")[0] for path in environments if "h5py" in path.read_text()}
    assert having == {"tensorflow", "tensorflow1"}
