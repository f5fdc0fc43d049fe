"""Environments that no file defines any more are removed, and nothing else is."""

from __future__ import annotations

import os
import subprocess
import sys
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


HOLD = (
    "import sys, pathlib; from framebench.environments import cleaning; "
    "held = cleaning.hold([pathlib.Path(sys.argv[1])]); print(len(held), flush=True); input()"
)


@pytest.mark.parametrize("is_built", [True, False])
def test_one_that_a_workflow_has_planned_with_is_left(folder: Path, is_built: bool) -> None:
    """Fail if an environment in a running workflow's plan is removed.
    Between two runs no process of the workflow runs in it."""
    name = "pytorch-0123abcd" if is_built else "jax-89abcdef"
    command = [sys.executable, "-c", HOLD, str(folder / name)]
    with (
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=IMPORTS
        ) as first,
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=IMPORTS
        ) as second,
    ):
        for process in (first, second):  # they share the lock
            assert process.stdout is not None
            assert process.stdout.readline() == b"1\n"
        if not is_built:
            environment(folder, name)
        for process in (first, second):
            (left,) = (
                leftover for leftover in cleaning.clean(folder, []) if leftover.folder.name == name
            )
            assert left.why == "a workflow that is running uses it"
            assert left.folder.exists()
            process.communicate(b"\n")
    (gone,) = (leftover for leftover in cleaning.clean(folder, []) if leftover.folder.name == name)
    assert not gone.why
    assert not list(folder.glob(f"{name}*"))
