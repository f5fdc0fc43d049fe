"""Environment files ``envs/NAME.yaml`` (conda format), their hashes, and venvs made of them.

The file is the only source of versions: Snakemake builds a conda environment from it under ``--sdm
conda``; otherwise a venv is built, from packages whose SHA-256 is in ``NAME.hashes.txt``.
:mod:`locking` writes these hashes, with the digest of their environment file.
``NAME+cpu.hashes.txt`` is for builds whose version ends in ``+cpu``, if an index has them; it is
tried before ``NAME.hashes.txt``.
"""

from __future__ import annotations

import glob
import hashlib
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from core import bounded

from ..config.keys import PIN, read_mapping
from ..config.validation import ConfigError, did_you_mean, show
from . import uv

_INDEX = "--extra-index-url "
_SOURCE = "--no-binary "
SUFFIX = ".hashes.txt"
#: Command that writes the hashes, followed by the name of the environment.
COMMAND = ".venv/bin/python workflow/framebench hashes"
_DIGEST = re.compile(r"^# .* sha256:([0-9a-f]{64})$", re.MULTILINE)
_EXEMPT = re.compile(r"^# exempt: (.+)$", re.MULTILINE)
#: Messages of uv about a file or package that the hashes do not cover.
_REFUSED = re.compile(r"hash mismatch|trusted hash|must have a hash|matching hash", re.IGNORECASE)


@dataclass(frozen=True)
class Hashes:
    """Hashes of an environment. ``files``: see :func:`hash_files`; ``exempt``: reason for
    installing without hashes, else ""; ``digest``: digest of the content of all files."""

    files: tuple[Path, ...]
    exempt: str
    digest: str


@dataclass(frozen=True)
class EnvironmentFile:
    """Content of an environment file. ``python``: major.minor; ``packages``: pip requirements
    pinned with ``==``; ``indexes``: addresses of further package indexes, such as a vendor's;
    ``sources``: packages without a wheel, which are built; ``hashes``: None if not required."""

    path: Path
    python: str
    packages: tuple[str, ...]
    indexes: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    hashes: Hashes | None = None

    @cached_property
    def digest(self) -> str:
        """Return eight hexadecimal digits of the SHA-256 of the file's content."""
        return digest_of(self.path)[:8]

    @property
    def is_hashed(self) -> bool:
        """Return whether the environment is built only from files with known hashes."""
        return self.hashes is not None and not self.hashes.exempt

    @property
    def name(self) -> str:
        """Name of the venv's folder, which depends on pins and hashes. Cases are identified by pins
        alone, so new hashes of the same versions repeat no measurement."""
        if self.hashes is None or not self.is_hashed:
            return f"{self.path.stem}-{self.digest}"
        both = f"{self.digest} {self.hashes.digest}"
        return f"{self.path.stem}-{hashlib.sha256(both.encode()).hexdigest()[:8]}"

    def pin(self, package: str) -> str:
        """Return the requirement that pins ``package``, or a build of it such as
        ``tensorflow-cpu``. It has no extras, as in ``torch==2.13.0``."""
        pins = dict(re.sub(r"\[.*?\]", "", entry).split("==") for entry in self.packages)
        builds = sorted(name for name in pins if name.startswith(f"{package}-"))
        for name in (package, *builds):
            if name in pins:
                return f"{name}=={pins[name]}"
        raise ConfigError(f"{self.path}: pip packages: found no {package}; allowed: {package}==..")


def files_of(envs: Path, names: Sequence[str]) -> list[Path]:
    """Return the environment files of ``names`` in the folder ``envs``, or at these paths; without
    names, all in ``envs``. Raises :class:`ConfigError` for a name that is neither."""
    known = {path.stem: path for path in sorted(envs.glob("*.yaml"))}
    for name in names:
        if name not in known and not Path(name).is_file():
            raise ConfigError(
                f"NAME: found {show(name)}{did_you_mean(name, known)}; allowed: "
                f"{', '.join(known)}, or the path of an environment file"
            )
    return [known.get(name, Path(name)) for name in names] or [*known.values()]


def read_environment_file(path: Path, hashed: bool = True) -> EnvironmentFile:
    """Read a conda environment file with a pip section, and its hashes if ``hashed``. Raises
    :class:`ConfigError` for content that a venv cannot reproduce exactly, and for hashes that are
    missing or of other pins."""
    if not path.is_file():
        raise ConfigError(
            f"{path.name}: there is no such file in envs/: this framework has no environment; "
            "allowed: other frameworks, or an interpreter of your own (interpreters)"
        )
    entries = read_mapping(path).get("dependencies")
    python = ""
    lines: list[str] = []
    others: list[Any] = []
    for entry in entries if isinstance(entries, list) else [entries]:
        if isinstance(entry, dict) and isinstance(entry.get("pip"), list) and len(entry) == 1:
            lines += map(str, entry["pip"])
        elif match := re.fullmatch(r"python=(\d+\.\d+)", str(entry)):
            python = match[1]
        elif not str(entry).startswith("pip="):
            others.append(entry)
    # The section may have options of pip's requirement files, because conda makes one of it.
    indexes, sources = _values(_INDEX, lines), _values(_SOURCE, lines)
    packages = tuple(line for line in lines if not line.startswith((_INDEX, _SOURCE)))
    others += [entry for entry in packages if not re.fullmatch(PIN, entry)]
    if others or not python:
        raise ConfigError(
            f"{path}: dependencies: found {show(others[0]) if others else 'no python'}; allowed: "
            "python=X.Y, pip=.. and a pip section of exact pins"
        )
    known = _read_hashes(path) if hashed else None
    return EnvironmentFile(path, python, packages, indexes, sources, known)


def _values(option: str, entries: Sequence[str]) -> tuple[str, ...]:
    return tuple(
        entry.removeprefix(option).strip() for entry in entries if entry.startswith(option)
    )


def bare(pin: str) -> str:
    """Return a package's name without extras and version, in the spelling of indexes."""
    return re.sub(r"[-_.]+", "-", re.split(r"\[|==", pin)[0]).lower()


# ---- hashes ------------------------------------------------------------------------------------


def digest_of(environment: Path) -> str:
    """Return the SHA-256 of an environment file, in hexadecimal."""
    return hashlib.sha256(bounded.read_bytes(environment)).hexdigest()


def _read_hashes(environment: Path) -> Hashes:
    """Return the hashes next to an environment file. Raises :class:`ConfigError` if there are none,
    or if they are for other pins."""
    files = hash_files(environment)
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
    texts = map(bounded.read_text, hash_files(environment))
    return " ".join(match[1] for text in texts if (match := _EXEMPT.search(text)))


def hash_files(environment: Path) -> tuple[Path, ...]:
    """Return the files of hashes of an environment file, in the order in which they are tried."""
    stem = environment.with_suffix("")
    plain = stem.with_name(stem.name + SUFFIX)
    local = sorted(glob.glob(f"{glob.escape(str(stem))}+*{SUFFIX}"))
    return (*map(Path, local), *([plain] if plain.is_file() else []))


def _remedy(environment: Path) -> str:
    name = environment.stem if environment.parent.name == "envs" else environment
    return (
        f"what `{COMMAND} {name}` writes, or require_hashes: false, which installs these versions "
        "from the index without checks"
    )


# ---- venvs --------------------------------------------------------------------------------------


def install_packages(wanted: EnvironmentFile, python: str, keep: Sequence[int]) -> str:
    """Install the packages. Returns the name of the file of hashes used, "" without hashes.

    Raises :class:`ConfigError` if a hash does not match, and
    :class:`subprocess.CalledProcessError` if uv fails otherwise."""
    settings = uv.pip_settings()
    variables = uv.variables(settings, wanted.indexes)
    command = ["pip", "install", "--quiet", "--python", python]
    if wanted.hashes is None or wanted.hashes.exempt:
        why = wanted.hashes.exempt if wanted.hashes else "require_hashes is false"
        print(f"{wanted.path.name} is installed without hashes: {why}", file=sys.stderr)
        # A vendor's index may have other versions of packages than the default index; then all
        # indexes are used.
        found = uv.arguments(settings, any_index=bool(wanted.indexes))
        uv.run([*command, *found, *wanted.packages], variables, keep).check_returncode()
        return ""
    command += [*uv.arguments(settings), "--require-hashes", "--only-binary", ":all:"]
    for file in wanted.hashes.files:
        arguments = ["--requirement", str(file)]
        # Packages needed to build from source are locked, too.
        arguments += ["--build-constraints", str(file)] if wanted.sources else []
        installing = uv.run([*command, *arguments], variables, keep, capture=True)
        is_refused = _REFUSED.search(installing.stderr)
        if is_refused or "there is no version of" not in installing.stderr:
            break
    if installing.returncode:
        print(installing.stderr, file=sys.stderr, end="")
        if is_refused:
            raise ConfigError(
                f"{file}: refused: {' '.join(installing.stderr.split())}\nYour package index has "
                "other files, or builds for other devices, such as +cpu. Nothing was installed; "
                "allowed: PIP_EXTRA_INDEX_URL= PIP_FIND_LINKS= before the command, which leave "
                f"only the main index, or {_remedy(wanted.path)}"
            )
        installing.check_returncode()
    return file.name


def make_venv(version: str, folder: Path, keep: Sequence[int] = ()) -> None:
    """Make an empty venv of this major.minor version of Python: one on the PATH or of pyenv, or one
    that uv downloads. Raises :class:`subprocess.CalledProcessError`, with uv's message on
    stderr."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    others = sorted(map(str, pyenv.glob(f"{version}.*/bin")), reverse=True)
    variables = {**uv.variables(), "PATH": os.pathsep.join([*os.get_exec_path(), *others])}
    command = ["venv", "--quiet", "--clear", "--no-project", "--python", version, str(folder)]
    uv.run(command, variables, keep).check_returncode()
