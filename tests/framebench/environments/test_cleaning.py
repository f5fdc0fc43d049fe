"""Environments that no file defines any more are removed, and nothing else is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from framebench import cli
from framebench.commands import upkeep
from framebench.environments import cleaning, venvs
from framebench.files import locks

IMPORTS = {**os.environ, "PYTHONPATH": str(Path(upkeep.__file__).parents[2])}
PINS = "dependencies: [python=3.11, pip=25.3, {pip: [numpy==%s]}]\n"


def environment(folder: Path, name: str) -> Path:
    """Make an environment: a venv with a file that another folder shares."""
    made = folder / name
    (made / "bin").mkdir(parents=True)
    (made / "pyvenv.cfg").write_text("home = /usr/bin\n")
    (made / "own").touch()
    os.truncate(made / "own", 3_000_000_000)
    shared = folder.parent / "cache"
    shared.write_bytes(bytes(5_000_000))
    os.link(shared, made / "shared")
    (folder / f"{name}.lock").touch()
    return made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "venvs"
    environment(made, "pytorch-0123abcd")
    return made


def test_only_what_no_file_makes_is_removed(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    suites = folder.parent / "config" / "suites"
    suites.mkdir(parents=True)
    monkeypatch.setattr(upkeep, "PROJECT", folder.parent)
    kept = []
    for suite, version in ((suites / "own.yaml", "1.26.4"), (folder.parent / "new.yaml", "1.26.3")):
        file = folder.parent / f"jax-{version}.yaml"
        file.write_text(PINS % version)
        suite.write_text(f"variants: {{old: {{environments: {{jax: {file}}}}}, usual: }}\n")
        kept.append(environment(folder, venvs.read_environment_file(file, hashed=False).name))
    added = folder / "jax-with-0123abcd.yaml"  # see the key packages
    added.write_text(PINS % "1.26.2")
    kept.append(environment(folder, venvs.read_environment_file(added, hashed=False).name))
    (folder / "notes-0123abcd").mkdir()  # looks like an environment but is none
    (folder / "mine").mkdir()
    arguments = ["--environments", str(folder), "--suites", str(suite)]
    assert cli.main(["clean-environments", *arguments]) == 0
    left = {path.name for path in folder.iterdir()}
    names = {name for path in kept for name in (path.name, f"{path.name}.lock")}
    assert left == {*names, added.name, "notes-0123abcd", "mine"}
    output = capsys.readouterr().out
    assert f"{folder}/pytorch-0123abcd: removed" in output
    assert "1 environment removed, 3.0 GB free" in output


def test_one_that_is_being_built_is_left(folder: Path) -> None:
    with locks.take(folder / "pytorch-0123abcd.lock", ""):
        (left,) = cleaning.clean(folder, [])
    assert left.why == "it is being built"
    assert left.folder.exists()
