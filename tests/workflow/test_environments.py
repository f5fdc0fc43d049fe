"""Environments that the workflow builds, once for all nodes."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from .. import fake_gpus
from ..packages import write_wheel
from ..processes import PATIENCE, wait_for
from .conftest import ONE_RUN, Project, held_call


@pytest.fixture
def offline(project: Project) -> dict[str, str]:
    """Return variables that make the toy available as a package, only in ``envs/toy.yaml``."""
    project.write_suite(ONE_RUN)
    wheels = project.folder.parent / "wheels"
    wheel = write_wheel(wheels, "toy", "1.0")
    version = f"python={sys.version_info.major}.{sys.version_info.minor}"
    file = {"name": "toy", "channels": [], "dependencies": [version, {"pip": ["toy==1.0"]}]}
    environment = project.folder / "envs" / "toy.yaml"
    environment.write_text(yaml.safe_dump(file))
    (project.folder / "envs" / "toy.hashes.txt").write_text(
        f"# For toy.yaml sha256:{hashlib.sha256(environment.read_bytes()).hexdigest()}\n"
        f"toy==1.0 --hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}\n"
    )
    project.configure(interpreters={})
    return {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels)}


def runs_of(project: Project, variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return project.run("--cores", "all", "--until", "benchmark", **variables, check=True)


def test_one_that_is_in_use_is_not_built_again(project: Project, offline: dict[str, str]) -> None:
    """Two results share a folder of environments; one call planned before the other built."""
    hold = project.folder / "first.hold"
    hold.touch()
    first = held_call(project, "first", "results1", **offline)
    wait_for((project.folder / "first").exists, "the first call to know what is to be done")
    project.run("--until", "benchmark", "--config", "results=results2", **offline, check=True)
    (marker,) = project.folder.glob(".venvs/toy-????????/environment.json")
    built = marker.stat()
    hold.unlink()
    output, _ = first.communicate(timeout=PATIENCE)
    assert first.returncode == 0, output
    now = marker.stat()
    assert (now.st_ino, now.st_mtime_ns) == (built.st_ino, built.st_mtime_ns), "built again"
    assert len(list(project.folder.glob("results1/runs/**/*.json"))) == 1


def test_a_damaged_one_is_built_anew(project: Project, offline: dict[str, str]) -> None:
    runs_of(project, offline)
    (marker,) = project.folder.glob(".venvs/toy-????????/environment.json")
    (python,) = marker.parent.glob("bin/python")
    python.unlink()
    project.configure(seed=1)
    plan = project.run("plan")
    assert "toy.yaml (it is damaged)" in plan.stdout, plan.stdout
    ran = runs_of(project, offline)
    assert "Building 1 environment first" in ran.stdout
    assert set(project.statuses()) == {"ok"}
    assert len(project.records()) == 2
    assert python.exists()


def test_kernels_that_the_driver_compiles_are_used_once_when_built(
    project: Project, offline: dict[str, str], tmp_path: Path
) -> None:
    """Fail if a time budget includes the compilation by the driver for a GPU newer than a build."""
    known = project.folder / "envs" / "capabilities.csv"
    known.write_text(known.read_text() + f"toy,toy,1.0,12.5,525,8.0,9.0,{platform.machine()},0\n")
    framebench = [sys.executable, project.folder / "workflow" / "framebench", "environment"]
    command = [*framebench, "--file", project.folder / "envs" / "toy.yaml", "--marker"]
    models = {}
    for capability in ("8.0", "9.0"):
        gpus = fake_gpus.gpus(1, "Example", 40960, "580.95.05", capability)
        path = fake_gpus.install(tmp_path / "bin", gpus)
        marker = tmp_path / capability / "environment.json"
        variables = {**os.environ, **offline, "PATH": f"{path}:{os.environ['PATH']}"}
        subprocess.run([*command, marker], env=variables, check=True)
        left = sorted(marker.parent.glob("warm_up/*.json"))
        models[capability] = [json.loads(record.read_text())["case"]["model"] for record in left]
    assert models == {"8.0": [], "9.0": ["bert_base", "resnet50_v1.5"]}


@pytest.mark.parametrize("whom", ["snakemake", "framebench"])
def test_a_build_ends_with_what_is_killed(
    project: Project, offline: dict[str, str], whom: str
) -> None:
    (wheel,) = Path(offline["PIP_FIND_LINKS"]).iterdir()
    wheel.unlink()
    os.mkfifo(wheel)  # reading a pipe without a writer takes for ever
    workflow = project.start("--cores", "all", **offline)
    wait_for(lambda: project.pids("uv", "pip", "install"), "the build to be under way")
    if whom == "snakemake":
        os.kill(workflow.pid, signal.SIGKILL)
    else:
        os.kill(project.pids("workflow/framebench", "environment")[0], signal.SIGKILL)
    output, _ = workflow.communicate(timeout=PATIENCE)
    assert workflow.returncode != 0, output
    project.assert_nothing_left()


def add_frameworks(project: Project, *names: str) -> None:
    """Let further frameworks, which need the toy's package and start more slowly, race the toy."""
    frameworks, envs = project.folder / "scripts" / "frameworks", project.folder / "envs"
    for name in names:
        shutil.copytree(frameworks / "toy", frameworks / name)
        declaration = json.loads((frameworks / name / "framework.json").read_text())
        declaration |= {"name": name, "start_seconds": {"start": 60.0}}
        (frameworks / name / "framework.json").write_text(json.dumps(declaration))
        shutil.copy(envs / "toy.yaml", envs / f"{name}.yaml")
        hashes = (envs / "toy.hashes.txt").read_text().replace("For toy.yaml", f"For {name}.yaml")
        (envs / f"{name}.hashes.txt").write_text(hashes)
    axes = {**ONE_RUN["axes"], "framework": ["toy", *names]}
    suite = {"steps": ONE_RUN["steps"], "axes": axes, "time_budget": 900, "repeats": 3}
    project.write_suite(suite)


def test_a_first_figure_does_not_wait_for_the_environments_of_others(
    project: Project, offline: dict[str, str]
) -> None:
    add_frameworks(project, "second")
    output = runs_of(project, offline).stdout
    words = ("  toy  Toy: ", "Environments: 2 of 2 built", "  second  Toy: ")
    places = [output.index(each) for each in words]
    assert places == sorted(places), output


@pytest.mark.usefixtures("offline")
def test_an_index_that_never_answers_holds_no_other_framework_back(project: Project) -> None:
    add_frameworks(project, "second", "third")
    project.configure(interpreters=dict.fromkeys(("toy", "second"), sys.executable))
    with socket.create_server(("127.0.0.1", 0)) as silent:
        index = f"http://127.0.0.1:{silent.getsockname()[1]}/simple"
        impatient = {"UV_HTTP_TIMEOUT": "1", "UV_HTTP_RETRIES": "0", "UV_NO_CACHE": "1"}
        ran = project.run("--cores", "all", UV_DEFAULT_INDEX=index, **impatient)
    assert ran.returncode == 1
    assert "environment third  failed" in ran.stdout
    assert "operation timed out" in ran.stdout
    done = {record["case"]["framework"] for record in project.parsed()}
    assert done == {"toy", "second"}
