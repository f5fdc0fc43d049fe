"""Images read by DALI are the requested samples, as Pillow and numpy make them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ...conftest import ROOT
from . import images as made
from .images import BATCH, SEED, SIZE, apart, expected

PACKAGE = "nvidia-dali-cuda130==2.4.0"
ODD = {
    "grey": made.jpeg(8, 64, 48, "L"),
    "dot": made.jpeg(8, 1, 1),
    "large": made.jpeg(9, 6000, 5000),
    **made.STRANGE,
}
PHOTO = made.jpeg(5, 200, 150)
BAD = {
    "truncated": PHOTO[:2000],
    "text": b"no image",
    "empty": b"",
}


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dali") / "venv"
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    packages = (PACKAGE, f"numpy=={np.__version__}")
    done = subprocess.run(
        [folder / "bin" / "pip", "install", "--quiet", *packages], capture_output=True, text=True
    )
    if "No matching distribution found for nvidia-dali" in done.stderr:
        pytest.skip(f"no index has {PACKAGE} for this machine")
    assert done.returncode == 0, done.stderr
    return folder / "bin" / "python"


@pytest.fixture(scope="module")
def roots(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    base = tmp_path_factory.mktemp("data")
    actual = {"good": made.folder(base / "good", train=5, val=5)}
    for name, content in ODD.items():
        (actual["good"] / "train" / "c0" / f"{name}.JPEG").write_bytes(content)
    for name, content in BAD.items():
        actual[name] = made.folder(base / name, train=3, val=0)
        (actual[name] / "train" / "c1" / f"{name}.JPEG").write_bytes(content)
    return {name: str(root) for name, root in actual.items()}


@pytest.fixture(scope="module")
def found(python: Path, roots: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("answers")
    done = subprocess.run(
        [
            python,
            ROOT / "tests/harness/programs/read_by_dali.py",
            json.dumps([roots, SIZE, BATCH, SEED, [*ODD]]),
        ],
        env={**os.environ, "PYTHONPATH": str(ROOT / "scripts")},
        cwd=folder,
        capture_output=True,
        text=True,
    )
    _, said, answer = done.stdout.rpartition("ANSWER ")
    assert said, done.stderr
    return {**json.loads(answer), "place": folder}


@pytest.mark.parametrize("split", ["train", "val"])
def test_samples_are_those_that_were_asked_for(
    found: dict[str, Any], roots: dict[str, str], split: str
) -> None:
    asked = expected(roots["good"], split)
    arguments = np.load(found["place"] / f"{split}.npy")
    assert arguments.shape == asked.shape
    mean, most = apart(arguments, asked)
    # at the edge of a crop, chroma has no neighbours
    assert mean < 0.3
    assert most < 12
    assert apart(arguments, asked[:, :, ::-1])[0] > 5, "planted: the other way round"
    assert found[split]["images"] == len(asked)


def test_threads_change_nothing(found: dict[str, Any]) -> None:
    assert found["again"] == found["train"]


def test_bad_images_end_a_run_by_name(found: dict[str, Any]) -> None:
    for name, reason in found["bad"].items():
        assert reason.startswith(f"BadData: train/c1/{name}.JPEG: "), reason


def test_what_it_does_not_read_is_unsupported(found: dict[str, Any]) -> None:
    assert found["tokens"] == "Unsupported: DALI reads only images here, not tokens"
    assert found["settings"]["loader"].startswith("nvidia.dali 2.4.0")
