"""The CI files of GitHub and GitLab are valid, and call the gate with valid arguments."""

from __future__ import annotations

import re
from typing import Any

import yaml
from framebench.features.gate import command, decisions

from ...settings import ROOT

CI = ROOT / "docs" / "ci"


def read(name: str) -> dict[str, Any]:
    # YAML 1.1 reads the key ``on`` as true.
    return dict(yaml.load((CI / name).read_text(), Loader=yaml.BaseLoader))


def test_what_the_gate_writes_is_kept_whatever_it_ends_with() -> None:
    job = read("github.yml")["jobs"]["gate"]
    behind = job["steps"][2:]
    assert all(step["if"] == "always()" for step in behind)
    assert command.NOTE in behind[0]["run"]
    assert job["runs-on"] == ["self-hosted", "framebench"]
    assert "head.repo.full_name == github.repository" in job["if"], "forks could run anything"
    assert read("github.yml")["permissions"] == {"contents": "read"}
    kept = read("gitlab.yml")["speed"]
    assert kept["artifacts"]["when"] == "always"
    assert kept["artifacts"]["reports"]["junit"] == f"results/gate/{command.JUNIT}"
    assert kept["allow_failure"]["exit_codes"] == [str(decisions.OPEN)]


def test_actions_are_pinned_and_leave_no_credentials() -> None:
    steps = read("github.yml")["jobs"]["gate"]["steps"]
    used = [step["uses"] for step in steps if "uses" in step]
    assert all(re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", action) for action in used)
    assert steps[0]["with"]["persist-credentials"] == "false"


def test_nothing_that_others_choose_is_pasted_into_a_shell() -> None:
    """Fail if ``${{ .. }}`` stands in ``run``: a branch name could then inject a command."""
    for step in read("github.yml")["jobs"]["gate"]["steps"]:
        assert "${{" not in step.get("run", "")
