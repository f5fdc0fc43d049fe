"""Installed Python interpreters."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path


def find_interpreter(version: str) -> str | None:
    """Return a working interpreter of that version: uv's, pyenv's or the one on the path."""
    uv = shutil.which("uv") or shutil.which("uv", path=str(Path(sys.prefix) / "bin"))
    candidates = []
    if uv:
        actual = subprocess.run([uv, "python", "find", version], capture_output=True, text=True)
        candidates += actual.stdout.split()
    pyenv = Path.home() / ".pyenv/versions"
    candidates += [str(path) for path in sorted(pyenv.glob(f"{version}.*/bin/python"))]
    candidates += [name for name in [shutil.which(f"python{version}")] if name]
    ask = "import sys; print('%d.%d' % sys.version_info[:2])"
    for candidate in candidates:
        answer = subprocess.run([candidate, "-c", ask], capture_output=True, text=True)
        if answer.stdout.strip() == version:
            return candidate
    return None
