"""``--sdm conda``: Snakemake's build request, and the Python that measures.

No conda can be fetched where these tests run, so a stand-in with conda's command line builds the
environment (a venv); Snakemake's own conda code and the harness's checks are the real ones.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
import yaml

from ..processes import write_program
from .conftest import ONE_RUN, Project

CONDA = """#!/usr/bin/env bash
set -eu
base=$(dirname "$(dirname "$0")")
case "$1" in
  info) echo '{"conda_prefix": "'"$base"'", "platform": "linux-64"}' ;;
  --version) echo "conda 25.1.1" ;;
  config) echo '{"get": {"channel_priority": "strict"}}' ;;
  env)
    while [ $# -gt 0 ]; do
      case "$1" in --prefix) prefix=$2 ;; --file) file=$2 ;; esac
      shift
    done
    PYTHON -m venv --without-pip "$prefix"
    cp "$file" "$base/$(sed -n 's/^name: //p' "$file").yaml"
    distribution=$("$prefix/bin/python" -c "import site; print(site.getsitepackages()[0])")
    mkdir "$distribution/toy-1.0.dist-info"
    printf 'Name: toy\\nVersion: 1.0\\n' > "$distribution/toy-1.0.dist-info/METADATA"
    if grep -q scipy "$file"; then echo "PACKAGES" > "$distribution/driver.pth"; fi
    ;;
  clean) ;;
  *) echo "the stand-in does not know: conda $*" >&2; exit 1 ;;
esac
"""
ACTIVATE = 'export CONDA_PREFIX="$1" PATH="$1/bin:$PATH"\n'


@pytest.fixture
def conda(project: Project) -> Path:
    """Return the base folder of the stand-in; only ``envs/toy.yaml`` provides the toy."""
    base = project.folder.parent / "conda"
    packages = sysconfig.get_path("purelib")
    script = CONDA.replace("PYTHON", sys.executable).replace("PACKAGES", packages)
    write_program(base / "bin" / "conda", script)
    (base / "bin" / "activate").write_text(ACTIVATE)
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    dependencies = [f"python={version}", {"pip": ["toy==1.0"]}]
    environment = {"name": "toy", "channels": ["conda-forge"], "dependencies": dependencies}
    (project.folder / "envs" / "toy.yaml").write_text(yaml.safe_dump(environment))
    project.write_suite(ONE_RUN)
    project.configure(interpreters={})
    return base


def run(
    project: Project, conda: Path, *arguments: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    path = f"{conda / 'bin'}:{os.environ['PATH']}"
    return project.run("--cores", "all", "--sdm", "conda", *arguments, PATH=path, **variables)


def test_the_environment_of_the_file_measures(project: Project, conda: Path) -> None:
    ran = run(project, conda, "--until", "medians")
    assert ran.returncode == 0, ran.stdout
    assert (conda / "framebench-driver.yaml").exists(), "tables have an environment of their own"
    assert (conda / "toy.yaml").read_text() == (project.folder / "envs/toy.yaml").read_text()
    assert not (project.folder / ".venvs").exists(), "a venv was built besides"
    actual = [json.loads(text) for text in project.records().values()]
    assert [record["status"] for record in actual] == ["ok"], actual[0]["reason"]
    for record in actual:
        assert record["environment"]["install_method"] == "conda"
        assert "/.snakemake/conda/" in record["environment"]["prefix"]
