"""Whole workflows with real frameworks in the environments that the workflow builds."""

from __future__ import annotations

import json
import shutil

import pandas as pd

from ..conftest import build_environment
from ..frameworks.models import RESNET, small
from .conftest import ROOT, Project


def test_verification(project: Project) -> None:
    """Fail if a mistake in an adapter is not flagged by the small and by the full verification.
    A small model is verified after the runs, the model itself by ``verification``. The flag must
    vanish with the mistake."""
    build_environment("paddle")
    folder = project.folder
    (folder / ".venvs").symlink_to(ROOT / ".venvs")
    (folder / "scripts" / "models" / f"{RESNET}.json").write_text(json.dumps(small(RESNET)))
    project.write_suite(
        {
            "steps": {"warmup": 1, "timed": 2},
            "repeats": 1,
            "axes": {"framework": "paddle", "model": RESNET, "batch_per_device": [2]},
        }
    )
    tables = folder / "results" / "tables"

    def flags() -> set[str]:
        return set(pd.read_csv(tables / "summary.csv")["flags"][0].split())

    def certify() -> tuple[int, str, pd.DataFrame]:
        ran = project.run("--cores", "all", "verification")
        return ran.returncode, ran.stdout, pd.read_csv(tables / "verification.csv")

    model = folder / "scripts" / "frameworks" / "paddle" / "models" / "cnn.py"
    right = model.read_text()
    epsilon = "layer.epsilon"
    assert epsilon in right, "the mistake cannot be planted"
    model.write_text(right.replace(epsilon, "1e-5"))
    ran = project.medians()
    assert ran.returncode == 0, "a verification that fails stops nothing"
    assert flags() & {"incorrect", "unverified"} == {"incorrect"}
    assert "incorrect" in (tables / "summary.md").read_text()
    status, printed, results = certify()
    assert status != 0
    assert "0 of 2 passed, 2 failed, 0 unsupported" in printed
    assert set(results[~results["passed"]]["scale"]) == {"full", "small"}
    assert flags() & {"incorrect", "unverified"} == {"incorrect"}
    model.write_text(right)
    shutil.rmtree(folder / "results" / "runs")
    ran = project.medians(check=True)
    assert not flags() & {"incorrect", "unverified"}, "a verification of other code counts"
    assert "unverified" not in ran.stdout
    status, printed, results = certify()
    assert status == 0, printed
    assert "2 of 2 passed, 0 failed, 0 unsupported" in printed
    assert results["passed"].all()
