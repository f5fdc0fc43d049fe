"""``framebench update``: moves the pins of a framework to its newest version."""

from __future__ import annotations

import csv
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from core import bounded

from ..config.validation import ConfigError
from ..files import temporary
from ..files.whole_files import write_whole
from . import locking, other_version
from .trying import bare
from .venvs import EnvironmentFile, read_environment_file

#: Environments whose pins stay, with date, reason and source of the reason.
HELD = Path("envs", "held.csv")
_PIN = re.compile(r"^( +- )[A-Za-z0-9._-]+(\[.*\])?==")
#: Packages that a build for CUDA needs, such as the one of PyTorch on the main index. A build for
#: CPUs needs none, so they are no pins of an environment for CPUs.
_OF_CUDA = re.compile(r"(nvidia|cuda)-|triton$")


class Moved(NamedTuple):
    """Environment file with other pins. ``before``: copy with the old ones and their hashes;
    ``changes``: old and new version by package."""

    file: Path
    before: Path
    changes: dict[str, str]


def update(
    root: Path, files: Iterable[Path], package: str, folder: Path, python: str = ""
) -> Iterator[Moved | str]:
    """Move the pins of a framework's environment ``files``, and write their hashes.

    Other packages change only if ``package`` needs it. Yields what moved, or why nothing did.
    ``folder``: for the old files; ``python``: version to move to, by default the same. Raises
    ConfigError with uv's message."""
    lines = bounded.read_text(root / HELD).splitlines()
    held = {row["environment"]: row for row in csv.DictReader(lines)}
    for file in files:
        if row := held.get(file.stem):
            yield f"{file.stem}: held back ({row['date']}): {row['reason']}"
            continue
        environment_file = read_environment_file(file)
        wanted = replace(environment_file, python=python or environment_file.python)
        name, _, old = environment_file.pin(package).partition("==")
        new = newest(wanted, name)
        if new == old and wanted == environment_file:
            yield f"{file.stem}: {name} {old} is the newest for Python {environment_file.python}"
        else:
            yield _move(environment_file, wanted, name, new, folder)


def newest(environment_file: EnvironmentFile, package: str) -> str:
    """Return the newest version of a package with a build for the Python of an environment."""
    found = locking.compiled(
        environment_file, [package], other_version.COMPILE, f"{package}: no version"
    )
    match = re.search(rf"^{re.escape(package)}==([^\s+;]+)", found, re.MULTILINE)
    if match is None:
        raise ConfigError(
            f"{environment_file.path}: found no version of {package}; allowed: one in an index"
        )
    return match[1]


def _move(
    environment_file: EnvironmentFile,
    wanted: EnvironmentFile,
    package: str,
    version: str,
    folder: Path,
) -> Moved:
    before = folder / f"{environment_file.path.stem}-before.yaml"
    folder.mkdir(parents=True, exist_ok=True)
    for path in (environment_file.path, *environment_file.hash_files):
        shutil.copy(path, folder / path.name.replace(environment_file.path.stem, before.stem, 1))
    with temporary.folder() as made:
        other = other_version.derive(wanted, package, version, made / environment_file.path.name)
        changes = other_version.moved(environment_file, other)
    if "-cuda" not in environment_file.path.stem:
        changes = {
            name: change
            for name, change in changes.items()
            if not (change.startswith(other_version.NONE) and _OF_CUDA.match(name))
        }
    pins = [
        pin for pin in other.packages if pin in environment_file.packages or bare(pin) in changes
    ]
    text = bounded.read_text(environment_file.path).replace(
        f"- python={environment_file.python}", f"- python={wanted.python}"
    )
    write_whole(environment_file.path, with_pins(text, pins))
    written = locking.lock(environment_file.path)
    for path in {*environment_file.hash_files} - {written}:
        path.unlink()  # of other builds of the old versions, such as +cpu
        changes[path.name] = "removed: these indexes have no such build"
    if wanted.python != environment_file.python:
        changes["python"] = f"{environment_file.python} -> {wanted.python}"
    return Moved(environment_file.path, before, changes)


def with_pins(text: str, pins: Sequence[str]) -> str:
    """Return the text of an environment file with other pins, each on a line; the rest stays."""
    lines = text.splitlines()
    places = [number for number, line in enumerate(lines) if _PIN.match(line)]
    indent = _PIN.match(lines[places[0]])
    assert indent
    rest = [line for line in lines[places[0] :] if not _PIN.match(line)]
    made = [*lines[: places[0]], *(f"{indent[1]}{pin}" for pin in sorted(pins, key=bare)), *rest]
    return "\n".join(made) + "\n"
