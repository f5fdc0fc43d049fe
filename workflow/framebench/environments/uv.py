"""Translation of pip's settings for uv, which does not read them.
Standard library only: ``bootstrap`` uses it before anything is installed."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

#: Locations of packages: pip's setting, uv's variable, and separator. Variables instead of
#: arguments: an address may hold a password, and any user of the machine can read a command line.
PLACES = {
    "index-url": ("UV_DEFAULT_INDEX", " "),
    "extra-index-url": ("UV_INDEX", " "),
    "find-links": ("UV_FIND_LINKS", ","),
}


def executable(python: str = sys.executable) -> str:
    """Return the path of uv next to an interpreter."""
    return str(Path(python).parent / "uv")


def arguments(settings: list[tuple[str, str]], any_index: bool = True) -> list[str]:
    """Return arguments of ``uv pip install`` for pip's ``settings``.
    ``any_index``: take a version from any index that has it, as pip does, because a mirror may lack
    versions. Unsafe without hashes, which detect a foreign package of the same name: otherwise uv
    uses only the first index that has the package, unless UV_INDEX_STRATEGY says otherwise."""
    results = ["--index-strategy", "unsafe-best-match"] if any_index else []
    if not _has_cache():
        results.append("--no-cache")
    for key, value in settings:
        if key == "trusted-host":
            results += [word for host in value.split() for word in ("--allow-insecure-host", host)]
        elif key == "no-index" and value.lower() in ("1", "true", "yes", "on"):
            results.append("--no-index")
    return results


def _has_cache() -> bool:
    """Return whether uv's cache folder is writable; uv fails otherwise."""
    try:
        home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        folder = Path(os.environ.get("UV_CACHE_DIR") or Path(home, "uv"))
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except (OSError, RuntimeError):
        return False


def variables(settings: list[tuple[str, str]], indexes: Sequence[str] = ()) -> dict[str, str]:
    """Return uv's environment variables for pip's ``settings``: indexes and certificate bundle.
    ``indexes``: further package indexes."""
    results = {}
    for key, value in settings:
        if key in PLACES:
            name, between = PLACES[key]
            results[name] = between.join(value.split())
        elif key == "cert" and value:
            results["SSL_CERT_FILE"] = value
    if indexes:
        results["UV_INDEX"] = " ".join((*indexes, *results.get("UV_INDEX", "").split()))
    return results


def pip_settings(python: str = sys.executable) -> list[tuple[str, str]]:
    """Return pip's merged settings, such as ``("find-links", "/w")``; PIP_* variables win over
    files."""
    listed = subprocess.run(
        [python, "-m", "pip", "config", "list"],
        capture_output=True,
        text=True,
        check=True,
        encoding="utf-8",
        errors="replace",
    )
    return parse_settings(listed.stdout)


def parse_settings(listed: str) -> list[tuple[str, str]]:
    """Parse the output of ``pip config list`` (``global.index-url='..'``, ``:env:.cert='..'``)."""
    settings: dict[str, str] = {}
    for line in sorted(listed.splitlines(), key=lambda line: line.startswith(":env:")):
        name, _, value = line.partition("=")
        settings[name.rpartition(".")[2]] = value.strip().strip("'\"").replace("\\n", " ")
    return list(settings.items())
