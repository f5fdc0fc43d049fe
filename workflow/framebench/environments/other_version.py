"""Environment file with another version of one package, or with more packages.
Other packages change only if needed: uv prefers the file's own pins."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import yaml
from core import bounded

from ..config.yaml_files import read_mapping
from ..files import temporary
from ..files.whole_files import write_whole
from . import locking
from .trying import bare
from .venvs import EnvironmentFile, read_environment_file

COMPILE = (
    *("pip", "compile", "--only-binary", ":all:", "--no-strip-extras"),
    *("--python-platform", "linux", "--no-header", "--no-annotate", "--quiet"),
)
#: Version of a package that is missing.
NONE = "none"


def derive(
    environment_file: EnvironmentFile, package: str, version: str, target: Path
) -> EnvironmentFile:
    """Write ``target``: ``environment_file`` with ``version`` of ``package`` or of its build.
    Raises :class:`ConfigError` with uv's message if there is none for its Python."""
    name, _, old = environment_file.pin(package).partition("==")
    heads = [entry.partition("==")[0] for entry in environment_file.packages]
    # Plugins are released with their framework, and neither needs the other.
    known = pins(environment_file)
    plugins = {head for head in known if head.startswith(f"{bare(name)}-") and known[head] == old}
    of_release = {bare(name), *plugins}
    asked = [f"{head}=={version}" if bare(head) in of_release else head for head in heads]
    with temporary.folder() as folder:
        # uv prefers the versions in an existing output file. The first call fills it with the
        # builds that the file itself would get, for example for CPUs.
        file = Path(folder, "pins.txt")
        arguments = (*COMPILE, "--output-file", str(file))
        locking.compiled(
            environment_file, environment_file.packages, arguments, environment_file.path.name
        )
        locking.compiled(environment_file, asked, arguments, f"{name}=={version}")
        _write(environment_file, bounded.read_text(file), target)
    return read_environment_file(target, hashed=False)


def write_with(environment_file: EnvironmentFile, pins: Sequence[str], target: Path) -> None:
    """Write ``target``: ``environment_file`` with more ``pins`` and what they need.
    Raises :class:`ConfigError` with uv's message if they do not go together."""
    asked = [*environment_file.packages, *pins]
    _write(
        environment_file,
        locking.compiled(
            environment_file, asked, COMPILE, f"{environment_file.path.name} with {pins}"
        ),
        target,
    )


def _write(environment_file: EnvironmentFile, compiled: str, target: Path) -> None:
    """Write ``target``: ``environment_file`` with the pins that uv ``compiled``."""
    found = re.findall(r"^([^\s#]+==[^\s;+]+)", compiled, re.MULTILINE)
    content = read_mapping(environment_file.path)
    dependencies = []
    for entry in content["dependencies"]:
        if isinstance(entry, dict):
            options = [line for line in map(str, entry["pip"]) if line.startswith("--")]
            entry = {"pip": [*options, *sorted(found)]}
        dependencies.append(entry)
    text = yaml.safe_dump({**content, "dependencies": dependencies}, sort_keys=False)
    write_whole(target, text)


def moved(environment_file: EnvironmentFile, other: EnvironmentFile) -> dict[str, str]:
    """Return the changed versions by package, as ``0.28.0 -> 0.27.0``; ``none`` if missing."""
    before, after = pins(environment_file), pins(other)
    return {
        name: f"{before.get(name, NONE)} -> {after.get(name, NONE)}"
        for name in sorted({*before, *after})
        if before.get(name) != after.get(name)
    }


def pins(file: EnvironmentFile) -> dict[str, str]:
    """Return the version of each package."""
    return {bare(entry): entry.partition("==")[2] for entry in file.packages}
