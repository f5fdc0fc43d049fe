"""``framebench hashes``: writes ``envs/NAME.hashes.txt``, by ``uv pip compile``."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from ..config.validation import ConfigError
from ..files.whole_files import write_whole
from . import hashes, uv
from .venvs import EnvironmentFile, read_environment_file

#: Only wheels, for Linux on x86_64 with the newest glibc that uv knows: whether a machine supports
#: a wheel shows at installation. The options in the file also apply there.
_COMPILE = (
    *("pip", "compile", "--generate-hashes", "--only-binary", ":all:", "--emit-build-options"),
    *("--python-platform", "x86_64-manylinux_2_40", "--no-header", "--no-annotate"),
)


def lock(environment: Path) -> Path:
    """Write the hashes of all packages of ``environment``, from the indexes in pip's settings.

    Returns the file. Raises :class:`ConfigError` with uv's message if it finds no such builds.
    """
    wanted = read_environment_file(environment, hashed=False)
    failed = f"{environment}: cannot be locked"
    text = compiled(wanted, wanted.packages, (*_COMPILE, "--quiet"), failed)
    target = environment.with_name(environment.stem + _local(text) + hashes.SUFFIX)
    write_whole(target, _header(wanted) + text)
    return target


def compiled(
    wanted: EnvironmentFile, packages: Sequence[str], words: Sequence[str], what: str
) -> str:
    """Return uv's output for these ``words`` and ``packages``.
    Uses the Python and indexes of the environment ``wanted``. Raises :class:`ConfigError` with
    ``what`` and uv's message."""
    settings = uv.pip_settings()
    ended = subprocess.run(
        [uv.executable(), *words, "--python-version", wanted.python]
        + [*uv.arguments(settings), "-"],
        input="\n".join((*packages, *(f"--no-binary {name}" for name in wanted.sources))),
        env={**os.environ, **uv.variables(settings, wanted.indexes)},
        capture_output=True,
        text=True,
        check=False,
        encoding="utf-8",
        errors="replace",
    )
    if ended.returncode:
        raise ConfigError(f"{what}: {ended.stderr.strip()}")
    return ended.stdout


def _local(text: str) -> str:
    """Return the local version label of the pins, such as ``+cpu``; "" without one."""
    return "".join(sorted(set(re.findall(r"^[^\s#]+==[^\s+]+(\+\S+)", text, re.MULTILINE))))


def _header(wanted: EnvironmentFile) -> str:
    words = " ".join((*_COMPILE, "--python-version", wanted.python))
    return (
        f"# Written by `framebench hashes`: uv {words}\n"
        f"# For {wanted.path.name} sha256:{hashes.digest_of(wanted.path)}\n"
    )
