"""``envs/NAME.hashes.txt``: the SHA-256 of every file that a venv may be built from.

:mod:`locking` writes these files, with the digest of their environment file.
``NAME+cpu.hashes.txt`` is for builds whose version ends in ``+cpu``, if an index has them; it is
tried before ``NAME.hashes.txt``.
"""

from __future__ import annotations

import glob
import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from core import bounded

from ..config.validation import ConfigError

SUFFIX = ".hashes.txt"
#: Command that writes the hashes, followed by the name of the environment.
COMMAND = ".venv/bin/python workflow/framebench hashes"
#: Instruction to use only the main index, which has the wheels for each processor.
MAIN_INDEX = (
    "PIP_EXTRA_INDEX_URL= PIP_FIND_LINKS= before the command, which leave only the main index"
)
WITHOUT = "require_hashes: false, which installs these versions from the index without checks"
_DIGEST = re.compile(r"^# .* sha256:([0-9a-f]{64})$", re.MULTILINE)
_EXEMPT = re.compile(r"^# exempt: (.+)$", re.MULTILINE)
#: Messages of uv about a file or package that the hashes do not cover.
_REFUSED = re.compile(r"hash mismatch|trusted hash|must have a hash|matching hash", re.IGNORECASE)


@dataclass(frozen=True)
class Hashes:
    """Hashes of an environment.
    ``files``: in the order in which they are tried; ``exempt``: reason for installing without
    hashes, else ""; ``digest``: digest of the content of all files."""

    files: tuple[Path, ...]
    exempt: str
    digest: str


def digest_of(environment: Path) -> str:
    """Return the SHA-256 of an environment file, in hexadecimal."""
    return hashlib.sha256(bounded.read_bytes(environment)).hexdigest()


def read(environment: Path) -> Hashes:
    """Return the hashes next to an environment file.

    Raises :class:`ConfigError` if there are no hashes, or if they are for other pins.
    """
    files = _files(environment)
    if not files:
        missing = environment.with_name(environment.stem + SUFFIX)
        raise ConfigError(f"{missing}: there is no such file; allowed: {_remedy(environment)}")
    texts = [bounded.read_text(file) for file in files]
    exempt, wanted = exemption(environment), digest_of(environment)
    for file, text in zip(files, texts, strict=True):
        if not exempt and _DIGEST.findall(text)[:1] != [wanted]:
            raise ConfigError(
                f"{file}: is out of date: {environment.name} has changed since it was written; "
                f"allowed: {_remedy(environment)}"
            )
    return Hashes(files, exempt, hashlib.sha256("".join(texts).encode()).hexdigest())


def exemption(environment: Path) -> str:
    """Return the stated reason why an environment has no hashes; "" if none is stated."""
    texts = map(bounded.read_text, _files(environment))
    return " ".join(match[1] for text in texts if (match := _EXEMPT.search(text)))


def _files(environment: Path) -> tuple[Path, ...]:
    stem = environment.with_suffix("")
    plain = stem.with_name(stem.name + SUFFIX)
    local = sorted(glob.glob(f"{glob.escape(str(stem))}+*{SUFFIX}"))
    return (*map(Path, local), *([plain] if plain.is_file() else []))


def are_there(environment: Path) -> bool:
    """Return whether an environment file has hashes next to it."""
    return bool(_files(environment))


def is_absent(message: str) -> bool:
    """Return whether uv says that no index has a requested version."""
    return "there is no version of" in message and not _REFUSED.search(message)


def check(message: str, file: Path, environment: Path) -> None:
    """Raise :class:`ConfigError` if uv's ``message`` reports a hash mismatch."""
    if not _REFUSED.search(message):
        return
    raise ConfigError(
        f"{file}: refused: {' '.join(message.split())}\nYour package index has other files, or "
        "builds for other devices, such as +cpu. Nothing was installed; allowed: "
        f"{MAIN_INDEX}, or {_remedy(environment)}"
    )


def _remedy(environment: Path) -> str:
    name = environment.stem if environment.parent.name == "envs" else environment
    return f"what `{COMMAND} {name}` writes, or {WITHOUT}"
