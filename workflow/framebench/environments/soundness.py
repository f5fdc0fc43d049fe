"""Checks that the software of a run is complete, before any measurement."""

from __future__ import annotations

import csv
import json
import os
import subprocess
from pathlib import Path
from typing import NamedTuple

from core import bounded, programs

_SECONDS = 60  # seconds for a Python to start


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
        content = json.loads(bounded.read_text(marker))
        wanted = set(content.get("installed", []))  # absent in venvs built by older versions
    except (OSError, ValueError, RecursionError, AttributeError, TypeError):
        return f"{marker} cannot be read"
    missing = sorted(wanted.difference(installed(marker.parent)))
    if missing:
        others = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        return f"{missing[0]}{others} of its packages' files missing"
    return ""


class Damage(NamedTuple):
    """File of a package in a venv that is missing, or has another size than was installed."""

    package: str
    file: Path


def damaged_file(folder: Path) -> Damage | None:
    """Return the first damaged file of the venv in ``folder``; None if all are whole.
    Some 10,000 files take about 0.2 s."""
    for listed in sorted(folder.glob("lib/python*/site-packages/*.dist-info/RECORD")):
        site = listed.parents[1]
        for row in csv.reader(bounded.read_text(listed).splitlines()):
            name, size = row[0], row[2] if len(row) > 2 else ""
            if not size.isdigit() or name.endswith(".pyc"):  # Python writes those anew
                continue
            file = site / name
            try:
                is_whole = file.stat().st_size == int(size)
            except OSError:
                is_whole = False
            if not is_whole:
                return Damage(listed.parent.name.partition("-")[0], Path(os.path.normpath(file)))
    return None


def interpreter_fault(python: str) -> str:
    """Return why ``python`` is no Python that starts; "" if it is one."""
    try:
        answer = programs.run(
            [python, "-c", "import sys; print(sys.version_info >= (3, 7))"], timeout=_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"it cannot be started: {error}"
    if answer.stdout.split() == ["True"]:
        return ""
    said = [*(answer.stderr or answer.stdout).strip().splitlines(), "no answer"]
    return f"it is no Python 3.7 or newer: {said[-1]}"
