"""Expected time to build environments: uv says which of them its cache has whole."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache

from core import programs

from . import uv
from .software import Software
from .soundness import is_sound
from .venvs import EnvironmentFile

#: Seconds to install an environment from uv's cache, and to fetch one that is not there: nine for
#: CPUs have 4.6 GB of wheels, which take six minutes at 100 Mbit/s.
CACHED_SECONDS, FETCH_SECONDS = 10.0, 45.0
#: Seconds after which uv does not know.
_LONGEST = 10.0


def unbuilt(needed: Iterable[Software]) -> list[Software]:
    """Return the software whose environment is to be built: missing ones, and damaged ones."""
    return [some for some in needed if some.file and some.marker and not is_sound(some.marker)]


def seconds(files: Iterable[EnvironmentFile | None]) -> float:
    """Return the expected seconds to build the environments of these files."""
    known = [file for file in files if file is not None]
    return sum(CACHED_SECONDS + FETCH_SECONDS * (not _is_cached(file)) for file in known)


@cache
def _is_cached(file: EnvironmentFile) -> bool:
    """Return whether uv's cache has all that an environment is built from; False if unknown.

    uv plans the installation without the network, which takes some tenths of a second."""
    if not file.is_hashed:
        return False
    settings = _called_once(uv.pip_settings)
    command = [uv.executable(), "pip", "sync", "--dry-run", "--offline"]
    command += ["--python", sys.executable, "--python-version", file.python]
    command += [*uv.arguments(settings), "--require-hashes"]
    with tempfile.TemporaryDirectory() as folder, suppress(subprocess.TimeoutExpired):
        for hashes in file.hash_files:
            ended = programs.run(
                [*command, "--target", folder, str(hashes)],
                env=uv.variables(settings, file.indexes),
                timeout=_LONGEST,
            )
            if ended.returncode == 0 and "Would download" not in ended.stderr:
                return True
    return False


@cache
def _called_once(read: Callable[[], list[tuple[str, str]]]) -> list[tuple[str, str]]:
    return read()  # pip takes half a second to say its settings
