"""Checks of a framework that share a process in which it was imported."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from ..bench import Bench
from ..conftest import ROOT, build_environment
from .models import BERT, SEQUENCE, small


@pytest.mark.parametrize("framework", ["mindspore", "tensorflow"])
def test_a_fork_has_the_variables_that_its_framework_reads(framework: str, tmp_path: Path) -> None:
    """Fail if a variable that is set before an import is gone in the forks."""
    bench = Bench(tmp_path, build_environment(framework))
    model = tmp_path / "model_config.json"
    model.write_text(json.dumps(small(BERT)))
    common: dict[str, Any] = {
        "framework": ROOT / "scripts" / "frameworks" / framework,
        "model": model,
        "sequence_length": SEQUENCE,
        "kind": "inference",
    }
    alone = bench.run("", **common).record
    words = []
    for number in range(2):
        files = {"output": tmp_path / f"{number}.json", "log": tmp_path / f"{number}.log"}
        words += ["--check", shlex.join(bench.command(**{**common, **files})[2:])]
    done = bench.run("", *words, batch_per_device=None, compiler=None)
    assert done.status == 0, done.stderr
    for number in range(2):
        record = json.loads((tmp_path / f"{number}.json").read_text())
        assert record["status"] == "ok", record["reason"]
        assert record["ranks"][0]["settings"] == alone["ranks"][0]["settings"]
