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
    records = [json.loads(text) for text in project.records().values()]
    ran_in = {}
    for record in records:
        assert record["status"] == "ok", record["reason"]
        assert record["environment"]["way"] == "venv"
        assert record["framework_version"].partition("+")[0] == pinned
        rank = record["ranks"][0]
        ran_in[record["case"]["precision"]] = set(rank["products"])
        assert rank["trainable_parameters"] == 25557032
        assert len(rank["step_seconds"]) == 2
        assert 0.95 * rank["window_seconds"] < sum(rank["step_seconds"]) <= rank["window_seconds"]
    assert ran_in == {"fp32": {"float32"}, "amp": {"bfloat16"}}
