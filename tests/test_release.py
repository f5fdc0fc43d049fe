"""Releases, and the catalog of Snakemake workflows."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import harness
import pytest
import yaml

from .conftest import ROOT
from .processes import write_program

WORKFLOWS = ROOT / ".github" / "workflows"
#: Double of GitHub's command that notes its arguments.
GH = '#!/bin/sh\nprintf "%s\\n" "$@" > called\n'


def job(file: str, name: str) -> dict[str, Any]:
    return dict(yaml.safe_load((WORKFLOWS / file).read_text())["jobs"][name])


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return the files of the project that a release job sees."""
    for name in ("CHANGELOG.md", "CITATION.cff", "scripts/harness/__init__.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    write_program(tmp_path / "bin" / "gh", GH)
    return tmp_path


def released(checkout: Path, tag: str) -> int:
    step = job("release.yml", "release")["steps"][-1]
    path = f"{checkout / 'bin'}:{os.environ['PATH']}"
    environment = {"PATH": path, "GITHUB_REF_NAME": tag}
    # the shell options with which GitHub runs a step
    arguments = ["bash", "-e", "-o", "pipefail", "-c", step["run"]]
    return subprocess.run(arguments, cwd=checkout, env=environment, check=False).returncode


def test_the_notes_are_those_of_the_version(checkout: Path) -> None:
    tag = f"v{harness.VERSION}"
    assert released(checkout, tag) == 0
    called = (checkout / "called").read_text().splitlines()
    assert called[:3] == ["release", "create", tag]
    notes = (checkout / "notes.md").read_text()
    changes = (ROOT / "CHANGELOG.md").read_text()
    section = changes.split(f"\n## {harness.VERSION}\n", 1)[1].split("\n## ", 1)[0]
    assert notes.strip() == section.strip()
    assert "\n- " in f"\n{notes}"


@pytest.mark.parametrize("tag", ["v9.9.9", "v"])
def test_a_tag_of_another_version_is_no_release(checkout: Path, tag: str) -> None:
    assert released(checkout, tag) != 0
    assert not (checkout / "called").exists()


SCHEMAS = {
    "github-workflows": (".github/workflows/release.yml", ".github/workflows/tests.yml",
                         "docs/ci/github.yml"),
    "gitlab-ci": ("docs/ci/gitlab.yml",),
    "citation-file-format": ("CITATION.cff",),
}  # fmt: skip


def checked(schema: str, *files: str | Path) -> subprocess.CompletedProcess[str]:
    arguments = ["check_jsonschema", "--builtin-schema", f"vendor.{schema}"]
    arguments += ["--data-transform", "gitlab-ci"] if schema == "gitlab-ci" else []
    return subprocess.run(
        [sys.executable, "-m", *arguments, *map(str, files)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("schema", SCHEMAS)
def test_what_others_read_is_by_their_schema(schema: str) -> None:
    actual = checked(schema, *SCHEMAS[schema])
    assert actual.returncode == 0, actual.stdout + actual.stderr
