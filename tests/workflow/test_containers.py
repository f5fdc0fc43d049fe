"""``--sdm apptainer``: Snakemake's start request, and measurement inside.

Apptainer is not in Debian 12, so a stand-in with its command line starts the command: it changes
the search path, the home folder and the variables as Apptainer does, without isolation. Snakemake's
own container code and the harness's checks are the real ones.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from ..interpreters import find_interpreter
from ..processes import write_program
from .conftest import ONE_RUN, Project

# An image is a file with the path of its root folder in it.
APPTAINER = """#!/usr/bin/env bash
set -eu
here=$(dirname "$0")
case "$1" in
  --version) echo "apptainer version 1.3.4" ;;
  pull) cp "$here/toy.sif" "$3"; echo "pull $4" >> "$here/log" ;;
  exec)
    shift
    printf '%s\\n' "exec $*" >> "$here/log"
    while [[ $1 == --* ]]; do
      case "$1" in
        --home) HOME=$2; shift ;;
        --bind) shift ;;
        --nv) ;;
        *) echo "the stand-in does not know: apptainer exec $1" >&2; exit 1 ;;
      esac
      shift
    done
    export HOME APPTAINER_CONTAINER=$(realpath "$1")
    export PATH=$(cat "$1")/bin:/usr/bin:/bin
    shift
    exec "$@"
    ;;
  *) echo "the stand-in does not know: apptainer $*" >&2; exit 1 ;;
esac
"""
SDM = ("--sdm", "apptainer")


@pytest.fixture
def host(project: Project) -> Path:
    """Return the folder of the stand-in and of an image with the oldest supported Python."""
    folder = project.folder.parent / "host"
    python = find_interpreter("3.7") or sys.executable
    write_program(folder / "root" / "bin" / "python3", f'#!/bin/sh\nexec "{python}" "$@"\n')
    write_program(folder / "apptainer", APPTAINER)
    (folder / "toy.sif").write_text(str(folder / "root"))
    project.write_suite(ONE_RUN)
    project.configure(interpreters={}, images={"toy": str(folder / "toy.sif")})
    return folder


def path_with(host: Path) -> str:
    return f"{host}:{os.environ['PATH']}"


def test_the_image_measures(project: Project, host: Path) -> None:
    axes = {**ONE_RUN["axes"], "batch_per_device": [1, "max"]}
    bounds = {"multiple_of": 2, "at_most": 4}
    project.write_suite({**ONE_RUN, "axes": axes, "largest_batch": bounds})
    leak = host / "leak" / "leaked-1.dist-info"
    leak.mkdir(parents=True)
    (leak / "METADATA").write_text("Name: leaked\nVersion: 1\n")
    arguments = ("--cores", "all", "medians", *SDM)
    ran = project.run(*arguments, PATH=path_with(host), PYTHONPATH=str(leak.parent), check=True)
    assert not (project.folder / ".venvs").exists(), "a venv was built besides"
    actual = project.parsed()
    assert {record["case"]["batch_per_device"] for record in actual} == {1, 4}, ran.stdout
    for record in actual:
        where = record["environment"]
        assert record["status"] == "ok", record["reason"]
        assert (where["install_method"], where["image"]) == ("container", str(host / "toy.sif"))
        assert len(where["image_digest"]) == 12
        assert where["python"].startswith("3.7") or not find_interpreter("3.7")
        assert "leaked" not in where["packages"], "the host's PYTHONPATH is in the container"
    inner = (host / "log").read_text()
    assert len(list((project.folder / "results" / "peak_flops").rglob("*.json"))) == 1
    assert "--kind largest_batch" in inner
    assert sys.executable not in inner, "a Python of the host, which is not in the container"
    assert "Nothing to be done" in project.run(*arguments, PATH=path_with(host)).stdout
