"""Imports of an environment are tried once, before anything is measured in it."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from ..files import bounded

_HARNESS = Path(__file__).parents[3] / "scripts" / "harness"
#: For a framework and what imports it; a cold disk takes its time.
_SECONDS = 300
#: What packages carry along at their top, which nobody imports.
_NO_LIBRARY = {"benchmarks", "docs", "examples", "isympy", "scripts", "setup", "test", "tests"}


def model_fault(python: Sequence[str], source: str) -> str:
    """Why a model of the user's own cannot be made with this ``python``: what was found and what is
    allowed; "" where nothing speaks against it, or it cannot be told."""
    told = _told([*python, str(_HARNESS / "try_model.py"), source])
    return f"found {told['found']}; allowed: {told['allowed']}" if told else ""


def import_fault(folder: Path, packages: Iterable[str]) -> str:
    """Which modules of these ``packages`` cannot be imported in the venv in ``folder``, and why; ""
    where all can. ``packages``: as pip calls them."""
    python, names = str(folder / "bin" / "python"), modules(folder, packages)
    return _told([python, str(_HARNESS / "try_imports.py"), *names]).get("found", "")


def modules(folder: Path, packages: Iterable[str]) -> list[str]:
    """The public modules at the top of these ``packages``, as each says itself."""
    wanted = {_normal(name) for name in packages}
    found = []
    for path in sorted(folder.glob("lib/python*/site-packages/*.dist-info/top_level.txt")):
        if _normal(path.parent.name.partition("-")[0]) in wanted:
            found += [name for name in bounded.read_text(path).split() if name.isidentifier()]
    return [name for name in dict.fromkeys(found) if name not in _NO_LIBRARY and name[0] != "_"]


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name.partition("[")[0]).lower()


def _told(command: Sequence[str]) -> dict[str, str]:
    """The JSON object that a program prints last; {} where it does not."""
    try:
        ended = subprocess.run(
            command,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=_SECONDS,
            check=False,
        )
        found = json.loads(ended.stdout.strip().rpartition("\n")[2])
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return {}
    return found if isinstance(found, dict) else {}
