"""``--sdm env-modules``, with the environment modules of Debian."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ..debian import install_debian_packages
from .conftest import ONE_RUN, ROOT, Project

INSTALLED = (Path("/usr/share/modules/init/bash"), Path("/usr/share/lmod/lmod/init/bash"))
SDM = ("--sdm", "env-modules")
RUNS_ALONE = ("--cores", "all", "--until", "benchmark", *SDM)


@pytest.fixture(scope="module")
def environment_modules() -> None:
    if not any(path.exists() for path in INSTALLED):
        problem = install_debian_packages("environment-modules")
        if problem:
            pytest.skip(problem)


@pytest.fixture
def modules(project: Project) -> Path:
    """Make a folder of modules: two versions with Python and a package, and a module that they
    need. Another one is loaded before, as by a user, and must not count."""
    folder = project.folder.parent / "modules"
    software = project.folder.parent / "software"
    for version in ("1.0", "2.0"):
        packages = software / version / "packages" / f"brought-{version}.dist-info"
        packages.mkdir(parents=True)
        (packages / "METADATA").write_text(f"Name: brought\nVersion: {version}\n")
        (software / version / "bin").mkdir()
        # A link would count as a part of its target's environment.
        python = software / version / "bin" / "python3"
        python.write_text(f'#!/bin/sh\nexec "{Path(sys.executable).resolve()}" "$@"\n')
        python.chmod(0o755)
        write(
            folder / "toy" / version,
            f"prepend-path PATH {{{software / version / 'bin'}}}",
            f"prepend-path PYTHONPATH {{{packages.parent}}}",
        )
    write(folder / "base" / "1", "setenv OMP_PROC_BIND close", "setenv MKL_DEBUG_CPU_TYPE 5")
    project.write_suite(ONE_RUN)
    project.configure(interpreters={}, modules={"toy": ["base", "toy/1.0"]})
    return folder


def write(path: Path, *lines: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(["#%Module1.0", *lines, ""]))


def test_the_modules_measure(project: Project, modules: Path, environment_modules: None) -> None:
    ran = project.run(*RUNS_ALONE, MODULEPATH=str(modules))
    assert ran.returncode == 0, ran.stdout
    assert not (project.folder / ".venvs").exists(), "a venv was built besides"
    actual = project.parsed()
    assert actual
    for record in actual:
        where = record["environment"]
        assert record["status"] == "ok", record["reason"]
        assert (where["install_method"], where["modules"]) == ("modules", ["base/1", "toy/1.0"])
        assert where["packages"]["brought"] == "1.0"
        assert where["variables"]["MKL_DEBUG_CPU_TYPE"] == "5"
        assert "OMP_PROC_BIND" not in where["variables"], "ranks are pinned to cores"
    before = project.records()
    assert project.run(*RUNS_ALONE, MODULEPATH=str(modules)).returncode == 0
    assert project.records() == before, "what is measured is measured again"

    project.configure(modules={"toy": ["base", "toy/2.0"]})
    assert project.run(*RUNS_ALONE, MODULEPATH=str(modules)).returncode == 0
    versions = [record["environment"]["packages"]["brought"] for record in project.parsed()]
    assert versions.count("2.0") == 1, "those with the other version were taken for them"


def test_what_was_loaded_before_does_not_count(
    project: Project, modules: Path, environment_modules: None
) -> None:
    write(modules / "other" / "1", "setenv OMP_WAIT_POLICY ACTIVE")
    with_other = ["bash", str(ROOT / "workflow" / "with_modules.sh"), "other", "env", "-0"]
    variables = {**os.environ, "MODULEPATH": str(modules)}
    shown = subprocess.check_output(with_other, env=variables, text=True).split("\0")
    loaded = dict(line.split("=", 1) for line in shown if line)
    assert (loaded["LOADEDMODULES"], loaded["OMP_WAIT_POLICY"]) == ("other/1", "ACTIVE")
    ran = project.run(*RUNS_ALONE, **loaded)
    assert ran.returncode == 0, ran.stdout
    assert project.statuses() == ["ok"]
    for record in project.parsed():
        assert record["environment"]["modules"] == ["base/1", "toy/1.0"]
        assert "OMP_WAIT_POLICY" not in record["environment"]["variables"]
