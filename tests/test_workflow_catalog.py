"""The catalog of Snakemake workflows finds in this project everything that it looks for.

Its programs are scripts/generate-catalog.py and source/build_wf_pages.py of
https://github.com/snakemake/snakemake-workflow-catalog. Its own checks, ``snakemake --lint`` and
``snakefmt --check``, are in test_style.py; its use of releases is in test_release.py.
"""

from __future__ import annotations

import subprocess
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import yaml
from framebench.config.settings import load_settings
from framebench.config.validation import ConfigError

from .conftest import ROOT
from .framebench.settings import CATALOG

#: Deployment methods with instructions on a page, and their arguments of ``--sdm``.
WAYS = {
    "conda": ["conda"],
    "apptainer": ["apptainer"],
    "apptainer+conda": ["conda", "apptainer"],
}


def usage() -> dict[str, Any]:
    file = ROOT / ".snakemake-workflow-catalog.yml"
    return dict(yaml.safe_load(file.read_text())["usage"])


def test_files_stand_where_it_looks_for_them() -> None:
    listed = subprocess.check_output(["git", "ls-files"], cwd=ROOT, text=True).split()
    wanted = ("workflow/Snakefile", "config/README.md", "config/config.yaml", "CITATION.cff")
    assert {*wanted} <= {*listed}, "of a project without them it has no page"
    rules = [Path(name) for name in listed if name.startswith("workflow/rules/")]
    assert rules
    assert {path.suffix for path in rules} == {".smk"}
    readme = (ROOT / "README.md").read_text().lower()
    assert "snakemake workflow" in readme, "it searches for these words"


def test_it_says_how_the_workflow_is_called() -> None:
    assert {*usage()} == {"mandatory-flags", "software-stack-deployment", "report"}
    flags = usage()["mandatory-flags"]
    assert flags["flags"] == "", "a plain call measures"
    assert "clone" in flags["desc"]
    assert usage()["report"] is True


@pytest.mark.parametrize("way", WAYS)
def test_a_way_of_deployment_works_as_it_says(way: str) -> None:
    """Fail if ``--sdm`` refuses a documented method; tests/workflow measures with them."""
    offered = usage()["software-stack-deployment"]
    assert {*offered} == {*WAYS}
    refusal = nullcontext() if offered[way] else pytest.raises(ConfigError, match="--sdm: found")
    with refusal:
        load_settings({}, CATALOG, WAYS[way])
