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

#: Wheels alone, for Linux on x86_64 with the newest glibc that uv knows: whether a machine has what
#: a wheel wants is seen when it is installed. The options of the file are those of the
#: installation, too.
_COMPILE = (
    *("pip", "compile", "--generate-hashes", "--only-binary", ":all:", "--emit-build-options"),
    *("--python-platform", "x86_64-manylinux_2_40", "--no-header", "--no-annotate"),
)


def lock(environment: Path) -> Path:
    """Write the hashes of all that ``environment`` needs, of the builds that pip's settings lead
    to. Returns the file.

    Raises :class:`ConfigError` with uv's words where it finds no such builds.
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
    """What uv prints for these ``words`` and ``packages``, for the Python and from the indexes of
    an environment. Raises :class:`ConfigError` with uv's words behind ``what``."""
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
    """``+cpu`` where a version ends in that, "" where none ends in anything of that kind."""
    return "".join(sorted(set(re.findall(r"^[^\s#]+==[^\s+]+(\+\S+)", text, re.MULTILINE))))


def _header(wanted: EnvironmentFile) -> str:
    words = " ".join((*_COMPILE, "--python-version", wanted.python))
    return (
        f"# Written by `framebench hashes`: uv {words}\n"
        f"# For {wanted.path.name} sha256:{hashes.digest_of(wanted.path)}\n"
    )
