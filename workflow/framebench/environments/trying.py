"""Import checks of an environment, once and before any measurement."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from core import bounded, programs

_PROGRAM = str(Path(__file__).parents[3] / "scripts" / "harness" / "try_imports.py")
#: Seconds for the imports of a framework from a cold disk.
_SECONDS = 300
#: Top-level modules of packages that nobody imports.
_NO_LIBRARY = {"benchmarks", "docs", "examples", "scripts", "setup", "test", "tests"}


def import_fault(folder: Path, packages: Iterable[str]) -> str:
    """Return which modules of ``packages`` cannot be imported in a venv, and why; "" if all can.
    ``folder``: the venv; ``packages``: pip's names."""
    python, names = str(folder / "bin" / "python"), modules(folder, packages)
    return _json_of([python, _PROGRAM, *names]).get("found", "")


def modules(folder: Path, packages: Iterable[str]) -> list[str]:
    """Return the public top-level modules of these ``packages``, from their metadata.

    Without ``top_level.txt``, these are modules and folders with ``__init__.py`` in ``RECORD``.
    A file that is a program, like ``isympy.py``, may need packages that nobody asked for."""
    wanted = {bare(name) for name in packages}
    found = []
    for path in sorted(folder.glob("lib/python*/site-packages/*.dist-info")):
        if bare(path.name.partition("-")[0]) in wanted:
            named = path / "top_level.txt"
            names = bounded.read_text(named).split() if named.is_file() else _recorded(path)
            own = _programs(path)
            found += [name for name in names if name.isidentifier() and name not in own]
    return [name for name in dict.fromkeys(found) if name not in _NO_LIBRARY and name[0] != "_"]


def _recorded(metadata: Path) -> list[str]:
    text = bounded.read_text(metadata / "RECORD")
    return re.findall(r"^(\w+)(?:/__init__)?\.py,", text, re.MULTILINE)


def _programs(metadata: Path) -> set[str]:
    """Return the names of modules of one file that are installed as the program of that name."""
    path = metadata / "entry_points.txt"
    lines = bounded.read_text(path) if path.is_file() else ""
    named = re.findall(r"^(\w+) *= *\1:", lines, re.MULTILINE)
    return {name for name in named if (metadata.parent / f"{name}.py").is_file()}


def bare(pin: str) -> str:
    """Return a package's name without extras and version, in the spelling of indexes."""
    return re.sub(r"[-_.]+", "-", re.split(r"\[|==", pin)[0]).lower()


def _json_of(command: Sequence[str]) -> dict[str, str]:
    """Return the JSON object that a program writes; {} if there is none."""
    try:
        ended = programs.run(command, timeout=_SECONDS)
        content = json.loads(ended.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return {}
    return content if isinstance(content, dict) else {}
