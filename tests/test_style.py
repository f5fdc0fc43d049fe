"""The tree passes every tool of the project."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
BIN = Path(sys.executable).parent
#: Modules whose ``open`` opens no text file.
NOT_TEXT = ("os", "Image", "gzip", "lzma", "tarfile", "zipfile")


@pytest.mark.parametrize(
    "command",
    [
        ["ruff", "check", "."],
        ["ruff", "format", "--check", "."],
        ["mypy"],
        ["snakefmt", "--check", "Snakefile", "workflow"],
        ["snakemake", "--lint"],
    ],
    ids=" ".join,
)
def test_clean(command: list[str]) -> None:
    ran = subprocess.run(
        [BIN / command[0], *command[1:]], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_no_package_registry_or_home_in_tracked_files() -> None:
    """Fail if a tracked file names the machine it was written on, or a package registry."""
    patterns = [str(ROOT) + "/", str(Path.home()) + "/", "files.python" + "hosted"]
    options = [word for pattern in patterns for word in ("-e", pattern)]
    listed = subprocess.run(
        ["git", "grep", "-nIF", *options],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "GIT_OPTIONAL_LOCKS": "0"},
    )
    assert listed.returncode == 1, f"found: {listed.stdout}{listed.stderr}"


def test_text_has_an_encoding() -> None:
    """Fail if text is read or written in the caller's locale instead of UTF-8."""
    sources = [ROOT / "bootstrap", *(ROOT / "scripts").rglob("*.py")]
    sources += (ROOT / "workflow").rglob("*.py")
    actual = [
        f"{path.relative_to(ROOT)}:{call.lineno}"
        for path in sources
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(call, ast.Call) and lacks_encoding(call)
    ]
    assert not actual, 'these need encoding="utf-8": ' + ", ".join(actual)


def lacks_encoding(call: ast.Call) -> bool:
    """Return whether a call reads or writes text in the encoding of the locale."""
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    if "encoding" in given or None in given:
        return False
    if isinstance(text := given.get("text"), ast.Constant) and text.value:
        return True  # open of subprocess
    function = call.func
    owner = function.value if isinstance(function, ast.Attribute) else None
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    if name in ("read_text", "write_text"):
        return len(call.args) < (2 if name == "write_text" else 1)
    place = {"open": 0 if owner else 1, "fdopen": 1, "NamedTemporaryFile": 0}.get(name)
    if place is None or getattr(owner, "id", "") in NOT_TEXT or isinstance(owner, ast.Attribute):
        return False
    mode = given.get("mode") or (call.args[place] if len(call.args) > place else None)
    if mode is None and (name == "NamedTemporaryFile" or not (call.args or call.keywords)):
        return False  # binary, or from an object that may not be a path
    return "b" not in mode.value if isinstance(mode, ast.Constant) else mode is None


def test_a_class_name_is_used_once() -> None:
    """Fail if two classes share a name, except in frameworks' folders."""
    free = ROOT / "scripts" / "frameworks"
    places: dict[str, list[str]] = {}
    for folder in ("benchmarks", "scripts", "workflow"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            if not path.is_relative_to(free):
                for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                    if isinstance(node, ast.ClassDef):
                        places.setdefault(node.name, []).append(str(path.relative_to(ROOT)))
    assert not {name: place for name, place in places.items() if len(place) > 1}
