"""Software of a framework: an environment made from its file, or one that the user provides."""

from __future__ import annotations

import hashlib
import platform
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..cases.fitting import Capacity
from ..config import keys
from ..config.catalog import Catalog
from ..config.settings import SOURCE, Settings
from ..config.validation import ConfigError, show
from . import locking
from .building import MARKER
from .venvs import EnvironmentFile, read_environment_file

#: Method of ``--sdm`` with images that the user provides.
APPTAINER = "apptainer"


@dataclass(frozen=True)
class Software:
    """Software that a framework runs in. ``install_method``: as in the record; ``python``: command
    that starts its Python; ``identity``: JSON value for the digests of cases; ``file``: environment
    file, built in ``folder`` unless conda builds it; ``image``: URI or path of the user's container
    image; ``image_digest``: digest of a file, else None."""

    install_method: str
    python: tuple[str, ...]
    identity: Any
    file: EnvironmentFile | None = None
    folder: Path | None = None
    image: str = ""
    image_digest: str | None = None

    @property
    def marker(self) -> Path | None:
        """Marker file in ``folder`` of a complete environment."""
        return self.folder and self.folder / MARKER

    def __str__(self) -> str:
        if self.image:
            return f"image {self.image}"
        return f"environment {self.file.path.name}" if self.file else f"Python {self.python[0]}"


def from_file(file: EnvironmentFile, settings: Settings) -> Software:
    """Return the environment of a file, built by conda if requested, else by us."""
    if settings.deployment == "conda":
        # Conda installs its own Python and libraries, unlike a venv with the same packages.
        return Software("conda", ("python",), {"conda": file.digest}, file=file)
    folder = settings.environments / file.name
    return Software("venv", (f"{folder}/bin/python",), file.digest, file=file, folder=folder)


def _from_interpreter(path: str) -> Software:
    return Software("interpreter", (path,), path)


def _from_image(entry: keys.Image) -> Software:
    """Return an image, in which Snakemake starts a container. An image file is identified by its
    size and the time of its last change: to read it whole would take half a minute."""
    path, digest = Path(entry.image), None
    if path.is_file():
        text = f"{path.stat().st_size} {path.stat().st_mtime_ns}"
        digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    identity = {"name": entry.image, "digest": digest, "python": entry.python}
    return Software("container", (entry.python,), identity, image=entry.image, image_digest=digest)


def misfit(name: str, settings: Settings, catalog: Catalog, capacity: Capacity) -> str:
    """Return why no environment of a name's framework works on this machine's GPUs; "" if one does,
    and for software that the user provides."""
    framework, _, variant = name.partition("@")
    is_provided = variant or settings.deployment == APPTAINER or framework in settings.interpreters
    if not framework or is_provided:
        return ""
    return catalog.environment_file(framework, capacity.accelerator, capacity.gpus)[1]


def find_software(name: str, settings: Settings, catalog: Catalog, capacity: Capacity) -> Software:
    """Return the software of a name, see :func:`plan.case_settings.software`. Raises
    :class:`ConfigError` for a framework whose required software is missing."""
    framework, _, variant = name.partition("@")
    if not framework:  # the driver's own Python, for benchmarks without a framework
        return Software("interpreter", (sys.executable,), f"Python {platform.python_version()}")
    # Conda installs by pins, without hashes.
    hashed = settings.require_hashes and settings.deployment != "conda"
    own = settings.suite.variants.get(variant)
    if own and framework in own.interpreters:
        return _from_interpreter(own.interpreters[framework])
    if own and framework in own.environments:
        return from_file(read_environment_file(own.environments[framework], hashed), settings)
    pins = settings.packages.get(framework)
    if pins and (framework in settings.interpreters or settings.deployment == APPTAINER):
        raise ConfigError(
            f"{SOURCE}: packages.{framework}: found {show(pins)}; allowed without --sdm apptainer "
            f"and without interpreters.{framework}, which have packages of their own"
        )
    if settings.deployment == APPTAINER and framework in settings.images:
        return _from_image(settings.images[framework])
    if framework in settings.interpreters:
        return _from_interpreter(settings.interpreters[framework])
    if settings.deployment == APPTAINER:
        raise ConfigError(
            f"{SOURCE}: images: found none for {framework}; allowed with --sdm apptainer: an entry "
            f"like {framework}: /images/{framework}.sif for each framework that runs, or a Python "
            "of its own (interpreters)"
        )
    accelerator = capacity.accelerator
    file, reason = catalog.environment_file(framework, accelerator, capacity.gpus)
    if file is None:
        raise ConfigError(f"{SOURCE}: accelerator: found {accelerator!r}, but {reason}")
    if not pins:
        return from_file(read_environment_file(file, hashed), settings)
    base = read_environment_file(file, hashed=False)
    with_pins = locking.read_with(base, framework, pins, settings.environments, hashed)
    return from_file(with_pins, settings)
