"""``framebench hashes``: writes ``envs/NAME.hashes.txt``, by ``uv pip compile``."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

from core import programs

from ..config.validation import ConfigError
from ..files.whole_files import write_whole
from . import hashes, uv
from .venvs import EnvironmentFile, read_environment_file

#: Processors that environments are locked for; the first one must have wheels.
MACHINES = ("x86_64", "aarch64")
#: Only wheels. The options in the file also apply at installation.
_COMPILE = (
    *("pip", "compile", "--generate-hashes", "--only-binary", ":all:", "--emit-build-options"),
    *("--no-header", "--no-annotate"),
)
#: Words of uv for versions without files for a platform.
_NO_WHEELS = "No solution found"
_PIN = re.compile(r"^[^\s#]+==\S+", re.MULTILINE)
_HASH = re.compile(r"sha256:[0-9a-f]{64}")


def lock(environment: Path) -> Path:
    """Write the hashes of all packages of ``environment``, from the indexes in pip's settings.

    Returns the file. Raises :class:`ConfigError` with uv's message if it finds no such builds.
    """
    wanted = read_environment_file(environment, hashed=False)
    failed = f"{environment}: cannot be locked"
    text = compiled(wanted, wanted.packages, (*_platform_arguments(MACHINES[0]), "--quiet"), failed)
    target = environment.with_name(environment.stem + _local(text) + hashes.SUFFIX)
    missing = missing_machines(wanted, text)
    for machine, reason in missing.items():
        print(f"{target.name}: not for {machine}: {reason}", file=sys.stderr)
    known = [machine for machine in MACHINES if machine not in missing]
    write_whole(target, _header(wanted, known) + text)
    return target


def missing_machines(wanted: EnvironmentFile, text: str) -> dict[str, str]:
    """Return why a lock does not hold for a processor, for each such processor: the index lacks
    wheels of its pins, or their hashes are not in its ``text``.

    Raises :class:`ConfigError` for another fault of uv's."""
    results = {}
    for machine in MACHINES[1:]:
        arguments, failed = (
            (*_platform_arguments(machine), "--quiet"),
            f"{wanted.path} for {machine}",
        )
        try:
            other = compiled(wanted, _PIN.findall(text), arguments, failed)
        except ConfigError as error:
            if _NO_WHEELS not in str(error):
                raise
            cause = str(error).split("Because ", 1)[-1].partition(" and you require ")[0]
            results[machine] = " ".join(cause.split())
            continue
        if not {*_HASH.findall(other)} <= {*_HASH.findall(text)}:
            results[machine] = (
                f"found its wheels in another index than those for {MACHINES[0]}, whose hashes "
                f"alone are written; allowed: {hashes.MAIN_INDEX}"
            )
    return results


def _platform_arguments(machine: str) -> tuple[str, ...]:
    """Return arguments of uv for Linux on a processor, with the newest glibc that uv knows.

    Whether a machine supports a wheel shows at installation."""
    return (*_COMPILE, "--python-platform", f"{machine}-manylinux_2_40")


def compiled(
    wanted: EnvironmentFile, packages: Sequence[str], arguments: Sequence[str], what: str
) -> str:
    """Return uv's output for these ``arguments`` and ``packages``.
    Uses the Python and indexes of the environment ``wanted``. Raises :class:`ConfigError` with
    ``what`` and uv's message."""
    settings = uv.pip_settings()
    # Wheels need no interpreter of that version, which uv would look for and download.
    python = [] if wanted.sources else ["--python", sys.executable]
    ended = programs.run(
        [uv.executable(), *arguments, "--python-version", wanted.python, *python]
        + [*uv.arguments(settings), "-"],
        input="\n".join((*packages, *(f"--no-binary {name}" for name in wanted.sources))),
        env=uv.variables(settings, wanted.indexes),
    )
    if ended.returncode:
        raise ConfigError(f"{what}: {ended.stderr.strip()}")
    return ended.stdout


def _local(text: str) -> str:
    """Return the local version label of the pins, such as ``+cpu``; "" without one."""
    return "".join(sorted(set(re.findall(r"^[^\s#]+==[^\s+]+(\+\S+)", text, re.MULTILINE))))


def _header(wanted: EnvironmentFile, known: Sequence[str]) -> str:
    arguments = " ".join((*_platform_arguments(MACHINES[0]), "--python-version", wanted.python))
    return (
        f"# Written by `framebench hashes`: uv {arguments}\n"
        f"# For {wanted.path.name} sha256:{hashes.digest_of(wanted.path)}\n"
        f"{hashes.MACHINES}{' '.join(known)}\n"
    )
