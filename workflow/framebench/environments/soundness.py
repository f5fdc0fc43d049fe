"""Checks that the software of a run is complete, before any measurement."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

from core import bounded, programs

_TRY_IMPORTS = str(Path(__file__).parents[3] / "scripts" / "harness" / "try_imports.py")
#: Seconds for the imports of a framework from a cold disk.
_IMPORT_SECONDS = 300
#: Top-level modules in packages that are not libraries.
_NO_LIBRARY = {"benchmarks", "docs", "examples", "scripts", "test", "tests"}


def installed(folder: Path) -> list[str]:
    """Return the names in the site-packages folder of the venv in ``folder``."""
    generator = (os.listdir(path) for path in folder.glob("lib/python*/site-packages"))
    return sorted({name for names in generator for name in names} - {"__pycache__"})


def is_sound(marker: Path) -> bool:
    """Return whether the venv of a marker is built and complete."""
    return marker.exists() and not damage(marker)


def damage(marker: Path) -> str:
    """Return what is missing in a built venv: its interpreter or installed files; "" if nothing.
    The ``marker`` lists the installed files. Only names are compared, to be fast.
    """
    python = marker.parent / "bin" / "python"
    if not os.access(python, os.X_OK):
        return f"{python} is missing, or what it links to"
    try:
        wanted = set(json.loads(bounded.read_text(marker))["installed"])
    except (OSError, ValueError, KeyError, TypeError):
        return f"{marker} cannot be read"
    missing = sorted(wanted.difference(installed(marker.parent)))
    if missing:
        others = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        return f"{missing[0]}{others} of its packages' files missing"
    return ""


def import_fault(folder: Path, packages: Iterable[str]) -> str:
    """Return which modules of ``packages`` cannot be imported in a venv, and why; "" if all can.
    ``folder``: the venv; ``packages``: pip's names."""
    python, names = str(folder / "bin" / "python"), modules(folder, packages)
    try:
        ended = programs.run([python, _TRY_IMPORTS, *names], timeout=_IMPORT_SECONDS)
        return str(json.loads(ended.stdout).get("found", ""))
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return ""


def modules(folder: Path, packages: Iterable[str]) -> list[str]:
    """Return the public top-level modules of these ``packages`` that are folders. Single files may
    be programs, which need packages that were not requested."""
    wanted = {bare(name) for name in packages}
    found: dict[str, None] = {}
    for path in sorted(folder.glob("lib/python*/site-packages/*.dist-info")):
        if bare(path.name.partition("-")[0]) in wanted:
            text = bounded.read_text(path / "RECORD")
            found |= dict.fromkeys(re.findall(r"^([a-zA-Z]\w*)/__init__\.py,", text, re.MULTILINE))
    return [name for name in found if name not in _NO_LIBRARY]


def bare(pin: str) -> str:
    """Return a package's name without extras and version, in the spelling of indexes."""
    return re.sub(r"[-_.]+", "-", re.split(r"\[|==", pin)[0]).lower()
