"""The whole way with real frameworks in the environments that the workflow builds."""

from __future__ import annotations

import json

import pytest

from .conftest import ROOT, Project


@pytest.mark.parametrize(("framework", "pinned"), [("pytorch", "2.13.0"), ("tensorflow", "2.21.0")])
def test_resnet50(
    project: Project, request: pytest.FixtureRequest, framework: str, pinned: str
) -> None:
    request.getfixturevalue(f"{framework}_python")
    (project.folder / ".venvs").symlink_to(ROOT / ".venvs")
    project.write_suite(
        {
            "steps": {"warmup": 1, "timed": 2},
            "repeats": 1,
            "axes": {
                "framework": framework,
                "model": "resnet50_v1.5",
                "precision": ["fp32", "amp"],
                "batch_per_device": [2],
            },
        }
    )
    ran = project.all()
    assert ran.returncode == 0, ran.stdout
    found = [json.loads(text) for text in project.records().values()]
    assert len(found) == 2
    for record in found:
        name = f"{record['case']['framework']} {record['case']['precision']}"
        assert record["status"] == "ok", f"{name}: {record['reason']}"
        assert record["environment"]["way"] == "venv", name
        version = record["framework_version"].partition("+")[0]
        assert version == pinned, name
        rank = record["ranks"][0]
        assert rank["trainable_parameters"] == 25557032, name
        half = {"fp32": "float32", "amp": "bfloat16"}[record["case"]["precision"]]
        assert max(rank["products"], key=rank["products"].get) == half, name
        assert len(rank["step_seconds"]) == 2, name
        assert abs(sum(rank["step_seconds"]) - rank["window_seconds"]) < 0.1, name
