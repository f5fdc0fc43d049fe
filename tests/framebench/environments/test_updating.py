"""Pins move by one command, unless they are held back."""

from __future__ import annotations

import csv
import json
import shutil
import sys
from pathlib import Path

import pytest
from framebench import cli
from framebench.commands import upkeep
from framebench.environments import locking, uv
from framebench.environments.updating import Moved
from framebench.environments.venvs import read_environment_file

from ...packages import write_wheel
from ..settings import ROOT

PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
NEXT = f"{sys.version_info.major}.{sys.version_info.minor + 1}"
TEXT = f"""# The toy for CPUs.
name: toy
dependencies:
  - python={PYTHON}
  - pip=25.3
  - pip:
      - other==2.0
      - steady==1.0
      - toy==1.0
      - toy-plugin==1.0
# The end.
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a project whose framework has two environments, one of them held back."""
    declaration = json.loads((ROOT / "tests/frameworks/toy/framework.json").read_text())
    folder = tmp_path / "scripts" / "frameworks" / "toy"
    folder.mkdir(parents=True)
    (folder / "framework.json").write_text(json.dumps({**declaration, "package": "toy"}))
    (folder / "adapter.py").touch()
    envs = tmp_path / "envs"
    envs.mkdir()
    header = "environment,framework,version,cuda,minimum_driver,machine_code,ptx"
    (envs / "capabilities.csv").write_text(f"{header}\ntoy-cuda,toy,1.0,13.0,580,,\n")
    (envs / "held.csv").write_text("environment,date,reason\ntoy-cuda,2026-11-27,no newer build\n")
    for name, version, needs in (
        ("toy", "1.0", ["other==2.0"]), ("toy", "2.0", ["other==3.0", "further", "nvidia-toy"]),
        ("toy_plugin", "1.0", []), ("toy_plugin", "2.0", []),
        ("other", "2.0", []), ("other", "3.0", []), ("steady", "1.0", []), ("steady", "2.0", []),
        ("further", "1.0", []), ("nvidia_toy", "1.0", []),
    ):  # fmt: skip
        write_wheel(tmp_path / "wheels", name, version, needs)
    actual = [("no-index", "1"), ("find-links", str(tmp_path / "wheels"))]
    monkeypatch.setattr(uv, "pip_settings", lambda: actual)
    monkeypatch.setattr(upkeep, "PROJECT", tmp_path)
    for name in ("toy", "toy-cuda"):
        (envs / f"{name}.yaml").write_text(TEXT)
        locking.lock(envs / f"{name}.yaml")
    return tmp_path


def test_pins_move_with_what_they_need_and_old_files_are_kept(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["update", "toy", "--results", str(project / "out"), "--pins-only"]
    assert cli.main(arguments) == 0
    said = capsys.readouterr().out
    moved = ("toy 1.0 -> 2.0", "toy-plugin 1.0 -> 2.0", "other 2.0 -> 3.0", "further none -> 1.0")
    for line in moved:
        assert line in said
    assert "nvidia" not in said, "that is for GPUs"
    assert "nvidia-toy==1.0" in (project / "envs/toy.hashes.txt").read_text()
    assert "steady" not in said, "nothing else moves"
    assert "toy-cuda: held back (2026-11-27): no newer build" in said
    expected = TEXT.replace("other==2.0", "further==1.0\n      - other==3.0")
    expected = expected.replace("toy==1.0", "toy==2.0").replace(
        "toy-plugin==1.0", "toy-plugin==2.0"
    )
    assert (project / "envs/toy.yaml").read_text() == expected
    assert read_environment_file(project / "envs/toy.yaml").is_hashed
    before = read_environment_file(project / "out" / "toy-before.yaml")
    assert before.is_hashed
    assert before.pin("toy") == "toy==1.0"
    assert (project / "envs/toy-cuda.yaml").read_text() == TEXT
    assert cli.main(arguments) == 0
    assert f"toy: toy 2.0 is the newest for Python {PYTHON}" in capsys.readouterr().out
    assert cli.main(["update", "tow"]) == 1
    assert "FRAMEWORK: found 'tow' (did you mean toy?); allowed: toy" in capsys.readouterr().err


def test_an_environment_moves_to_another_python(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [
        "update",
        "toy",
        "--results",
        str(project / "out"),
        "--pins-only",
        "--python",
        NEXT,
    ]
    assert cli.main(arguments) == 0
    assert f"python {PYTHON} -> {NEXT}" in capsys.readouterr().out
    after = read_environment_file(project / "envs/toy.yaml")
    assert (after.python, after.pin("toy")) == (NEXT, "toy==2.0")
    assert after.is_hashed
    assert read_environment_file(project / "out" / "toy-before.yaml").python == PYTHON
    assert cli.main(arguments) == 0
    assert f"toy: toy 2.0 is the newest for Python {NEXT}" in capsys.readouterr().out


def test_pins_for_another_processor_move_too(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = project / "envs" / "toy-aarch64.yaml"
    file.write_text(TEXT)
    locking.lock(file)
    assert cli.main(["update", "toy", "--results", str(project / "out"), "--pins-only"]) == 0
    assert "toy-aarch64:\n" in capsys.readouterr().out
    assert read_environment_file(file).pin("toy") == "toy==2.0"
    words = upkeep.commands_of_checks("toy", Moved(file, file, {}), project, [])["the gate"]
    assert "accelerator=cpu" in words


def test_hashes_of_builds_that_the_new_version_lacks_are_removed(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = project / "envs" / "toy+cpu.hashes.txt"
    shutil.copy(project / "envs" / "toy.hashes.txt", file)
    assert cli.main(["update", "toy", "--results", str(project / "out"), "--pins-only"]) == 0
    assert "toy+cpu.hashes.txt removed: these indexes have no" in capsys.readouterr().out
    assert not file.exists()
    assert read_environment_file(project / "envs/toy.yaml").is_hashed
    assert read_environment_file(project / "out" / "toy-before.yaml").is_hashed


def test_what_is_held_back_is_there_and_has_date_reason_and_source() -> None:
    with (ROOT / "envs" / "held.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        assert (ROOT / "envs" / f"{row['environment']}.yaml").is_file()
        assert len(row["date"]) == 10
        assert row["reason"]
        assert row["source"]
