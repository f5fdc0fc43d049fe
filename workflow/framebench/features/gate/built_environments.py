"""Environments that ``gate`` and ``bisect`` build for the versions they compare."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

from ...config.settings import Settings
from ...config.validation import ConfigError
from ...environments import hashes, locking, software
from ...environments.venvs import EnvironmentFile, read_environment_file
from ...files.locks import LockError
from ...files.whole_files import write_whole
from ...runs import ensure_environment


class Absent(Exception):
    """Environment that cannot be installed, with the reason."""


def built(
    path: Path, write: Callable[[], None], settings: Settings, exempt: str
) -> EnvironmentFile:
    """Return the environment file ``path``, after writing and building it where needed.

    It has hashes if they are required, unless it is ``exempt`` for that reason. Raises
    :class:`Absent` if that fails."""
    try:
        if not path.is_file():
            write()
        hashed = settings.require_hashes
        if hashed and not hashes.are_there(path):
            if exempt:
                write_whole(path.with_name(path.stem + hashes.SUFFIX), f"# exempt: {exempt}\n")
            else:
                locking.lock(path)
        result = read_environment_file(path, hashed)
        if not settings.node_local:
            place = software.from_file(result, settings)
            assert place.marker is not None, "without --sdm we make it"
            ensure_environment.ensure(path, place.marker, hashed)
    except (ConfigError, LockError) as error:
        raise Absent(" ".join(str(error).split())) from None
    except subprocess.CalledProcessError as error:
        raise Absent(f"uv ended with {error.returncode}: what it says stands above") from None
    return result
