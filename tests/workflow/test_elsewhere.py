"""The workflow from another folder, as a module, and with methods that cannot work."""

from __future__ import annotations

import fcntl
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from ..commands import git
from .conftest import ONE_RUN, Project

MODULE = """
configfile: "given.yaml"
module framebench:
    snakefile: {snakefile}
    config: config
{prefix}
use rule * from framebench as bench_*
rule all:
    default_target: True
    input: rules.bench_all.input
"""


@pytest.fixture
def elsewhere(project: Project, tmp_path: Path) -> Project:
    folder = tmp_path / "another folder"
    folder.mkdir()
    project.write_suite(ONE_RUN)
    values = {"suite": "toy", "interpreters": {"toy": sys.executable}}
    (folder / "given.yaml").write_text(yaml.safe_dump(values))
    return Project(folder)


def snakefile_of(project: Project) -> str:
    return str(project.folder / "workflow" / "Snakefile")


def assert_measured(folder: Path, ran: subprocess.CompletedProcess[str]) -> None:
    assert ran.returncode == 0, ran.stdout
    assert len(list((folder / "runs").rglob("*.json"))) == 1
    assert len((folder / "tables" / "summary.csv").read_text().splitlines()) == 2


def test_the_snakefile_of_another_folder(project: Project, elsewhere: Project) -> None:
    arguments = ["--snakefile", snakefile_of(project), "--directory", str(elsewhere.folder)]
    given = ["--configfile", str(elsewhere.folder / "given.yaml")]
    ran = project.run("medians", *arguments, "--cores", "all", *given)
    assert_measured(elsewhere.folder / "results", ran)
    assert not (project.folder / "results").exists()
    again = project.run("medians", *arguments, "--cores", "all", *given)
    assert "Nothing to be done" in again.stdout


def test_a_module_of_another_workflow(project: Project, elsewhere: Project) -> None:
    """The module has renamed rules, prefixed results, and handlers of both workflows.
    Snakemake calls no handlers of a module, so that it refuses a folder in use by itself."""
    text = MODULE.format(snakefile=repr(snakefile_of(project)), prefix='    prefix: "below"')
    (elsewhere.folder / "Snakefile").write_text(f"onsuccess:\n    print('ours')\n{text}")
    results = elsewhere.folder / "below" / "results"
    profile = ("--workflow-profile", str(project.folder / "profiles" / "default"))
    results.mkdir(parents=True)
    with (results / ".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        refused = elsewhere.run(*profile)
    assert refused.returncode != 0
    assert "another Framebench is measuring into this folder" in refused.stdout, refused.stdout
    assert not list(results.rglob("*.json"))
    ran = elsewhere.run(*profile)
    assert_measured(results, ran)
    assert (results / "report.html").exists()
    assert "report: " in (results / "answer.txt").read_text()
    assert "\nours\n" in ran.stdout, "the handler of the workflow around it was not called"
    assert not (elsewhere.folder / "results").exists()
    again = elsewhere.run(*profile)
    assert "Nothing to be done" in again.stdout, again.stdout


def test_files_fetched_one_by_one_say_what_to_do(project: Project, elsewhere: Project) -> None:
    for arguments in (["init", "-q", "-b", "main"], ["add", "workflow"], ["commit", "-qm", "x"]):
        git(project.folder, *arguments)
    fetched = f'gitfile({str(project.folder)!r}, path="workflow/Snakefile", ref="main")'
    (elsewhere.folder / "Snakefile").write_text(MODULE.format(snakefile=fetched, prefix=""))
    refused = elsewhere.run("--cores", "all", "-n")
    assert refused.returncode != 0
    assert "Framebench cannot be fetched file by file" in refused.stdout, refused.stdout
    assert "git clone" in refused.stdout
    assert "Traceback" not in refused.stdout
