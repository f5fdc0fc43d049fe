"""An environment file with another version of one package, and of others only where that asks for
it: uv solves it with the file's own pins as what it prefers."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from ..config.yaml_files import read_mapping
from ..files import bounded, temporary
from ..files.whole_files import write_whole
from . import locking
from .venvs import EnvironmentFile, read_environment_file

_COMPILE = (
    *("pip", "compile", "--only-binary", ":all:", "--no-strip-extras"),
    *("--python-platform", "linux", "--no-header", "--no-annotate", "--quiet"),
)


def derive(own: EnvironmentFile, package: str, version: str, target: Path) -> EnvironmentFile:
    """Write ``target``: the file ``own`` with ``version`` of ``package``, or of the build of it
    that it has. Raises :class:`ConfigError` with uv's words where there is none for its Python."""
    name = own.pin(package).partition("==")[0]
    heads = [entry.partition("==")[0] for entry in own.packages]
    asked = [f"{head}=={version}" if _bare(head) == _bare(name) else head for head in heads]
    with temporary.folder() as folder:
        # uv takes what stands in its output file already wherever that fits: of these versions the
        # builds that the file itself would lead to, for CPUs for instance.
        file = Path(folder, "pins.txt")
        words = (*_COMPILE, "--output-file", str(file))
        locking.compiled(own, own.packages, words, own.path.name)
        locking.compiled(own, asked, words, f"{name}=={version}")
        found = re.findall(r"^([^\s#]+==[^\s;+]+)", bounded.read_text(file), re.MULTILINE)
    content = read_mapping(own.path)
    dependencies = []
    for entry in content["dependencies"]:
        if isinstance(entry, dict):
            options = [line for line in map(str, entry["pip"]) if line.startswith("--")]
            entry = {"pip": [*options, *sorted(found)]}
        dependencies.append(entry)
    text = yaml.safe_dump({**content, "dependencies": dependencies}, sort_keys=False)
    write_whole(target, text)
    return read_environment_file(target, hashed=False)


def moved(own: EnvironmentFile, other: EnvironmentFile) -> dict[str, str]:
    """``0.28.0 -> 0.27.0`` by package, of all that have not the same version in both; ``none``
    stands for one that is not there."""
    before, after = _pins(own), _pins(other)
    return {
        name: f"{before.get(name, 'none')} -> {after.get(name, 'none')}"
        for name in sorted({*before, *after})
        if before.get(name) != after.get(name)
    }


def _pins(file: EnvironmentFile) -> dict[str, str]:
    pairs = (entry.partition("==") for entry in file.packages)
    return {_bare(head): version for head, _, version in pairs}


def _bare(head: str) -> str:
    """The name without its extras, as indexes spell it."""
    return re.sub(r"[-_.]+", "-", head.partition("[")[0]).lower()
