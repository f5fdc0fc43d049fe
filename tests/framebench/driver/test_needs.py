"""The environment of the report has the driver's packages."""

from __future__ import annotations

import re
from pathlib import Path

import yaml
from packaging.markers import Marker

ROOT = Path(__file__).parents[3]
PYTHON = {"python_full_version": "3.11.0", "python_version": "3.11"}


def locked() -> dict[str, str]:
    """Return the driver's locked versions for that Python."""
    lines = re.findall(
        r"^([\w.-]+)==(\S+) *(?:; (.*?))? \\$", (ROOT / "requirements.txt").read_text(), re.M
    )
    applying = [line for line in lines if not line[2] or Marker(line[2]).evaluate(PYTHON)]
    return {name: version for name, version, _ in applying}


def test_it_has_the_drivers_versions() -> None:
    file = yaml.safe_load((ROOT / "workflow" / "envs" / "driver.yaml").read_text())
    *_, pip = file["dependencies"]
    pinned = dict(entry.split("==") for entry in pip["pip"])
    versions = locked()
    assert {name: versions.get(name) for name in pinned} == pinned
    lines = (ROOT / "requirements.in").read_text().splitlines()
    direct = {re.split(r"[\[= ]", line)[0] for line in lines if line and not line.startswith("#")}
    of_snakemake = {name for name in direct if name.startswith("snakemake")}
    needed = direct - of_snakemake - {"uv", "setuptools", "psutil"}  # of Snakemake's process
    assert needed <= set(pinned), "the driver needs more than it declares"
