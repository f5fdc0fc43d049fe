"""The shipped files for GitHub and GitLab: valid, and run step by step against a local clone."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from ..commands import git
from ..conftest import ROOT

#: Own model of a repository with CI.
MODEL = """
import torch

FRAMEWORK = "pytorch"


def make(batch_size):
    batch = torch.randn(batch_size, 4), torch.randint(2, (batch_size,))
    return torch.nn.Linear(4, 2), batch, torch.nn.CrossEntropyLoss()
"""
SUITE = {
    "steps": {"warmup": 1, "timed": 2},
    "repeats": 1,
    "axes": {
        **{"framework": "all", "model": ["resnet50_v1.5"], "mode": ["inference"], "nodes": [1]},
        **{"devices_per_node": [1], "batch_per_device": [2], "precision": ["fp32"]},
        **{"compiler": ["none"], "sequence_length": [128]},
    },
}
BASE = "main"
#: Replacement of 40 pairs, which take minutes, by one pair, which still runs every step.
PAIRS = ("--pairs 40", "--pairs 1")


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a repository whose branch ``change`` is to be merged into BASE."""
    folder = tmp_path_factory.mktemp("origin")
    git(folder, "init", "-q", "-b", BASE)
    (folder / "my_model.py").write_text(MODEL)
    (folder / "speed.yaml").write_text(yaml.safe_dump(SUITE))
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "model")
    git(folder, "checkout", "-qb", "change")
    (folder / "my_model.py").write_text(MODEL.replace("(4, 2)", "(4, 2, bias=False)"))
    git(folder, "commit", "-qam", "change")
    return folder


@pytest.fixture(scope="module")
def work(origin: Path) -> Path:
    """Return the folder of the checkout, in which the second job finds the pairs of the first."""
    return origin.with_name("work")


def checkout(origin: Path, folder: Path) -> None:
    if not folder.exists():
        subprocess.run(["git", "clone", "-q", origin, folder], check=True)


def run_step(command: str, folder: Path, variables: Mapping[str, str]) -> tuple[int, str]:
    assert PAIRS[0] in command or " gate " not in command
    ended = subprocess.run(
        ["bash", "-e", "-c", command.replace(*PAIRS)],
        cwd=folder,
        env={**os.environ, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return ended.returncode, ended.stdout


def read(name: str) -> Any:
    return yaml.load((ROOT / "docs" / "ci" / name).read_text(), Loader=yaml.BaseLoader)


def test_the_workflow_of_github_runs_as_it_stands(
    origin: Path, work: Path, tmp_path: Path, pytorch_python: str
) -> None:
    job = read("github.yml")["jobs"]["gate"]
    values = {"vars.FRAMEBENCH": str(ROOT), "github.base_ref": BASE}
    summary = tmp_path / "summary.md"
    variables = {"GITHUB_STEP_SUMMARY": str(summary)}
    for name, text in job["env"].items():
        variables[name] = re.sub(r"\$\{\{ (.+?) \}\}", lambda match: values[match[1]], text)
    failed = ""
    for step in job["steps"]:
        if failed and step.get("if") != "always()":
            continue
        if step.get("uses", "").startswith("actions/checkout@"):
            checkout(origin, work)
        elif "run" in step:
            status, said = run_step(step["run"], work, variables)
            failed = failed or (said if status else "")
            assert status in ((0, 3) if " gate " in step["run"] else (0,)), said
        else:
            assert step["uses"].startswith("actions/upload-artifact@")
            assert (work / step["with"]["path"] / "gate.xml").is_file()
    assert "cannot tell yet" in summary.read_text(), failed
    assert not git(work, "status", "--porcelain", "--untracked-files=all"), "left behind"


def test_the_job_of_gitlab_runs_as_it_stands(origin: Path, work: Path, pytorch_python: str) -> None:
    job = read("gitlab.yml")["speed"]
    checkout(origin, work)
    merge_base = git(origin, "merge-base", BASE, "change").strip()
    variables = {"FRAMEBENCH": str(ROOT), "CI_MERGE_REQUEST_DIFF_BASE_SHA": merge_base}
    for step in job["script"]:
        status, said = run_step(step, work, variables)
        assert status in ((0, 3) if " gate " in step else (0,)), said
    assert (work / job["artifacts"]["reports"]["junit"]).is_file()
    assert not git(work, "status", "--porcelain", "--untracked-files=all"), "left behind"


def test_actions_are_pinned_and_leave_no_credentials() -> None:
    steps = read("github.yml")["jobs"]["gate"]["steps"]
    used = [step["uses"] for step in steps if "uses" in step]
    assert all(re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", action) for action in used)
    assert steps[0]["with"]["persist-credentials"] == "false"


def test_nothing_that_others_choose_is_pasted_into_a_shell() -> None:
    for step in read("github.yml")["jobs"]["gate"]["steps"]:
        assert "${{" not in step.get("run", "")
