"""Software of a framework: an environment made from its file, or one that the user provides."""

from __future__ import annotations

import hashlib
import os
import platform
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from core.gpus import Gpu

from ..config import keys
from ..config.catalog import Catalog
from ..config.settings import SOURCE, Settings
from ..config.validation import ConfigError, show
from . import locking
from .soundness import interpreter_fault, is_sound
from .venvs import MARKER, EnvironmentFile, read_environment_file

WITH_MODULES = Path(__file__).parents[2] / "with_modules.sh"
#: Keys of the configuration that ``--sdm`` methods require, with an example.
PROVIDED = {
    "apptainer": ("images", "/images/pytorch.sif or docker://pytorch/pytorch:2.7.1-cuda12.6"),
    "env-modules": ("modules", "[pytorch/2.7]"),
}
_MIB = 2**20


@dataclass(frozen=True)
class ContainerImage:
    """A container image. ``name``: URI, or absolute path without links; ``digest``: of a file, else
    None; ``python``: command of Python inside."""

    name: str
    digest: str | None
    python: str


@dataclass(frozen=True)
class Software:
    """Software that a framework runs in.
    ``install_method``: as in the record; ``python``: command that starts its Python;
    ``identity``: JSON value for the digests of cases; ``file``: environment file, built in
    ``folder`` unless conda builds it; ``image``, ``modules``: provided by the user."""

    install_method: str
    python: tuple[str, ...]
    identity: Any
    file: EnvironmentFile | None = None
    folder: Path | None = None
    image: ContainerImage | None = None
    modules: tuple[str, ...] = ()

    @property
    def marker(self) -> Path | None:
        """Marker file in ``folder`` of a complete environment."""
        return self.folder and self.folder / MARKER

    def __str__(self) -> str:
        if self.image:
            return f"image {self.image.name}"
        if self.modules:
            return f"modules {' '.join(self.modules)}"
        return f"environment {self.file.path.name}" if self.file else f"Python {self.python[0]}"


def from_file(file: EnvironmentFile, settings: Settings) -> Software:
    """Return the environment of a file, built by conda if requested, else by us."""
    if settings.deployment == "conda":
        # Conda brings its own Python and libraries, unlike a venv of the same file.
        return Software("conda", ("python",), {"conda": file.digest}, file=file)
    folder = settings.environments / file.name
    return Software("venv", (f"{folder}/bin/python",), file.digest, file=file, folder=folder)


def from_interpreter(path: str) -> Software:
    """Return an existing Python, identified by its path."""
    return Software("interpreter", (path,), path)


def from_image(entry: keys.Image) -> Software:
    """Return an image, in which Snakemake starts a container."""
    path = Path(entry.image)
    digest = _digest(path) if path.is_file() else None
    image = ContainerImage(entry.image, digest, entry.python)
    return Software("container", (image.python,), asdict(image), image=image)


def _digest(path: Path) -> str:
    """Return twelve hexadecimal digits that identify the build of an image file.

    They cover its size, and its first and last MiB. The header has an id and the time of the build
    (SIF), or time and size (SquashFS), the end has the tables of all files. Reading the whole file
    would take half a minute whenever Snakemake starts.
    """
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        digest = hashlib.sha256(str(size).encode())
        digest.update(file.read(_MIB))
        file.seek(max(0, size - _MIB), os.SEEK_SET)
        digest.update(file.read(_MIB))
    return digest.hexdigest()[:12]


def from_modules(modules: keys.Modules) -> Software:
    """Return environment modules, loaded only for the run.
    Snakemake's own directive has no wildcards: it would load the same for all frameworks."""
    python = ("bash", str(WITH_MODULES), " ".join(modules.load), modules.python)
    identity = {"names": modules.load, "python": modules.python}
    return Software("modules", python, identity, modules=tuple(modules.load))


def unbuilt(needed: Iterable[Software]) -> list[Software]:
    """Return the software whose environment is to be built: missing ones, and damaged ones."""
    return [some for some in needed if some.file and some.marker and not is_sound(some.marker)]


def misfit(
    name: str, settings: Settings, catalog: Catalog, accelerator: str, gpus: Sequence[Gpu]
) -> str:
    """Return why no environment of a name's framework works on this processor and these GPUs.

    Returns "" if one does, and for software that the user provides.
    """
    framework, _, variant = name.partition("@")
    is_provided = variant or settings.deployment in PROVIDED or framework in settings.interpreters
    if not framework or is_provided:
        return ""
    file, reason = catalog.environment_file(framework, accelerator, gpus)
    return reason if file is None else _no_wheels(file, settings)


def _no_wheels(file: Path, settings: Settings) -> str:
    """Return that an environment file is locked for other processors; "" if it is for this one."""
    own = _read(file, settings).hashes
    if own is None or not own.machines or platform.machine() in own.machines:
        return ""
    others = " ".join(sorted(own.machines))
    return (
        f"{file.name} has no wheels for {platform.machine()}, but for {others}; allowed: an image, "
        "or a Python of your own (interpreters)"
    )


def choose(
    names: Iterable[str],
    settings: Settings,
    catalog: Catalog,
    accelerator: str,
    gpus: Sequence[Gpu] = (),
) -> dict[str, Software]:
    """Return the software of each name (see :func:`plan.software`), for these GPUs.
    Raises :class:`ConfigError` naming all frameworks for which required software is missing."""
    asked = {name: _software(name, settings, catalog, accelerator, gpus) for name in names}
    missing = dict.fromkeys(
        name.partition("@")[0] for name, software in asked.items() if not software
    )
    if missing:
        key, example = PROVIDED[settings.deployment]
        raise ConfigError(
            f"{SOURCE}: {key}: found none for {', '.join(missing)}; allowed with --sdm "
            f"{settings.deployment}: for each framework that runs an entry like "
            f"{next(iter(missing))}: {example}, or a Python of its own (interpreters); "
            "or fewer frameworks"
        )
    return {name: software for name, software in asked.items() if software}


def check_interpreters(known: Mapping[str, Software], settings: Settings) -> None:
    """Start each provided interpreter once.
    Raises :class:`ConfigError` naming all that are no usable Python."""
    faults = []
    for name, software in known.items():
        provided = name and software.install_method == "interpreter"
        fault = interpreter_fault(software.python[0]) if provided else ""
        framework, _, variant = name.partition("@")
        key = f"{SOURCE}: interpreters.{framework}"
        if variant:
            key = f"{settings.suite.path}: variants.{variant}.interpreters.{framework}"
        if fault:
            faults.append(f"{key}: found {software.python[0]!r}, but {fault}; allowed: a Python")
    if faults:
        raise ConfigError("\n".join(faults))


def _software(
    name: str, settings: Settings, catalog: Catalog, accelerator: str, gpus: Sequence[Gpu]
) -> Software | None:
    """Return the software of a name; None if required software was not provided."""
    framework, _, variant = name.partition("@")
    if not framework:  # the driver's own Python, for benchmarks without one
        return Software("interpreter", (sys.executable,), f"Python {platform.python_version()}")
    own = settings.suite.variants.get(variant)
    if own and framework in own.interpreters:
        return from_interpreter(own.interpreters[framework])
    if own and framework in own.environments:
        if settings.deployment in PROVIDED:
            raise ConfigError(
                f"{settings.suite.path}: variants.{variant}.environments.{framework}: found "
                f"{str(own.environments[framework])!r}; allowed with --sdm {settings.deployment}: "
                "interpreters"
            )
        return from_file(_read(own.environments[framework], settings), settings)
    pins = settings.packages.get(framework)
    if pins and (framework in settings.interpreters or settings.deployment in PROVIDED):
        raise ConfigError(
            f"{SOURCE}: packages.{framework}: found {show(pins)}; allowed without --sdm apptainer "
            f"and env-modules, and without interpreters.{framework}, which have packages of their "
            "own"
        )
    if settings.deployment == "apptainer" and framework in settings.images:
        return from_image(settings.images[framework])
    if settings.deployment == "env-modules" and framework in settings.modules:
        return from_modules(settings.modules[framework])
    if framework in settings.interpreters:
        return from_interpreter(settings.interpreters[framework])
    if settings.deployment in PROVIDED:
        return None
    file, reason = catalog.environment_file(framework, accelerator, gpus)
    if file is None:
        raise ConfigError(f"{SOURCE}: accelerator: found {accelerator!r}, but {reason}")
    if not pins:
        return from_file(_read(file, settings), settings)
    base = read_environment_file(file, hashed=False)
    environment_file = locking.read_with(
        base, framework, pins, settings.environments, _hashed(settings)
    )
    return from_file(environment_file, settings)


def _read(path: Path, settings: Settings) -> EnvironmentFile:
    return read_environment_file(path, _hashed(settings))


def _hashed(settings: Settings) -> bool:
    # Conda installs by pins alone.
    return settings.require_hashes and settings.deployment != "conda"
