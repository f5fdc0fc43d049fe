"""TF32 switches of frameworks, without a GPU: they are set, and being set proves nothing."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from unittest.mock import patch

import pytest
from harness.adapter import Rounding
from harness.measuring.loading import load_adapter

from ..conftest import ROOT
from .fork_server import ForkServer, served

run = served("pytorch", "jax", "tensorflow", "paddle")

FRAMEWORKS = sorted(path.parent for path in ROOT.glob("scripts/frameworks/*/framework.json"))


def test_what_is_set_is_observed_not_believed(run: ForkServer) -> None:
    (actual,) = run("tf32.observe")
    assert actual["older"].endswith("the device is a GPU, compute capability 7.5")
    for precision in ("fp32", "tf32"):
        switches, products, reason = actual[precision]
        assert set(switches) == {precision == "tf32"}
        assert list(products) == ["float32"], "a processor rounds nothing to TF32"
        assert (reason is None) == (precision == "fp32")
        assert not reason or reason.startswith(f"tf32, but {products['float32']} of ")


def test_a_processor_has_none(run: ForkServer) -> None:
    (actual,) = run("common.refuse", precision="tf32")
    assert actual["reason"].endswith("the device is a CPU")


@pytest.mark.parametrize("folder", FRAMEWORKS, ids=lambda folder: folder.name)
def test_who_has_tf32_shows_what_it_does(folder: Path) -> None:
    with patch.dict(sys.modules):  # otherwise one framework's adapter would replace all
        adapter = load_adapter(str(folder))
    declared = json.loads((folder / "framework.json").read_text())
    assert issubclass(adapter, Rounding) or "tf32" not in declared["precisions"]
