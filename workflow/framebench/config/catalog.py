"""Catalog of frameworks, their environments and models: what ``scripts/`` and ``envs/`` declare,
and a user's own model.

Declarations are only read, and files of users only parsed; no framework is ever imported here.

``envs/capabilities.csv`` has a row for each environment for CUDA, the preferred one of a framework
first. Its machine code and PTX are those that both the framework's build and its cuDNN contain;
cuDNN 9.10 was the last with code for Volta. Its sizes are of the wheels, by the index;
PaddlePaddle's is a guess.
"""

from __future__ import annotations

import csv
import math
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from core import bounded, declarations
from core.gpus import Gpu
from core.precisions import version
from harness import own_model as own_model_declaration

from .. import PROJECT
from .validation import ConfigError, NotAllowed

#: Words that a suite may use for a compiler, with the key of framework.json that names it.
WORDS = {"native": "native_compiler", "default": "trained_with"}
#: Scale of the verification of a user's own model, which is compared only with its float64 run.
SCALE = "own float64 run"
#: Newest compute capability that the compiler of every CUDA here knows.
_NEWEST = (9, 0)
#: First CUDA whose compiler knows GPUs after compute capability 9.0, from its release notes.
_BLACKWELL = (12, 8)
#: Newest generation of GPUs for which frameworks without maintained builds for CUDA have any at
#: all: older releases, or NVIDIA's images (MXNet, TensorFlow 1).
_LAST_BUILDS = {"megengine": 8, "mindspore": 8, "oneflow": 8, "mxnet": 9, "tensorflow1": 9}
#: Oldest driver that compiles the PTX of a release of CUDA: the release's own driver, by the table
#: in its release notes. Older drivers of the same major release run only machine code.
PTX_DRIVERS = {
    "12.0": 525, "12.1": 530, "12.2": 535, "12.3": 545, "12.4": 550, "12.5": 555, "12.6": 560,
    "12.8": 570, "12.9": 575, "13.0": 580,
}  # fmt: skip


@dataclass(frozen=True)
class Catalog:
    """Configs by name: each framework's framework.json, each model's JSON file."""

    root: Path
    frameworks: dict[str, dict[str, Any]]
    models: dict[str, dict[str, Any]]

    @cached_property
    def compilers(self) -> list[str]:
        named = {name for framework in self.frameworks.values() for name in framework["compilers"]}
        return ["none", *WORDS, *sorted(named - {"none"})]

    def compiler(self, framework: str, word: str) -> str:
        """Return the compiler that a name, or one of WORDS, stands for. For a framework
        without a native compiler ``native`` is kept, so that the run reports the lack."""
        if word not in WORDS:
            return word
        declared = self.frameworks[framework].get(WORDS[word])
        return str(declared or {"native": "native", "default": "none"}[word])

    def environment_file(
        self, framework: str, accelerator: str, gpus: Sequence[Gpu] = ()
    ) -> tuple[Path | None, str]:
        """Return the environment file of a framework in ``envs``, or None and the reason.

        ``gpus``: GPUs of the machine; without any, the preferred file is returned. The reason says
        what helps: a newer driver, or the user's own software. Frameworks that lack the same thing
        have the same reason. A framework without a row in ``envs/capabilities.csv``, such as a
        user's own, has the file ``envs/FRAMEWORK-cuda.yaml``.
        """
        envs = self.root / "envs"
        if accelerator == "cpu":
            of_processor = envs / f"{framework}-{platform.machine()}.yaml"
            return of_processor if of_processor.is_file() else envs / f"{framework}.yaml", ""
        listed = [own for own in _gpu_environments(self.root) if own.framework == framework]
        known = [own for own in listed if platform.machine() in own.machines]
        for own in known:
            if own.works_on(gpus):
                return envs / f"{own.environment}.yaml", ""
        plain = envs / f"{framework}-cuda.yaml"
        if not listed and plain.exists():
            return plain, ""
        if drivers := [own.driver_for(gpus) for own in known if own.has_kernels(gpus)]:
            found = min((gpu for gpu in gpus if gpu.driver), key=_major).driver
            return None, f"needs driver {min(drivers)} or newer, found {found}"
        kinds = sorted({gpu.capability for gpu in gpus if gpu.capability}, key=version)
        lacking = "no environment for CUDA"
        if known:
            lacking = f"no environment has kernels for compute capability {' and '.join(kinds)}"
        elif listed:
            lacking += f" on {platform.machine()}"
        if kinds and version(kinds[-1])[0] > _LAST_BUILDS.get(framework, math.inf):
            return None, lacking
        return None, f"{lacking}; allowed: an image (docs/gpus.md), or a Python of your own"


def load_catalog(root: Path) -> Catalog:
    """Read every ``scripts/frameworks/*/framework.json`` and ``scripts/models/*.json``. Raises
    :class:`ConfigError` for an invalid framework.json."""
    declared = sorted(root.glob("scripts/frameworks/[!_.]*/framework.json"))
    configs = sorted(root.glob("scripts/models/*.json"))
    try:
        frameworks = {
            file.parent.name: declarations.read_framework(str(file.parent)) for file in declared
        }
    except ValueError as error:
        raise ConfigError(str(error)) from None
    models = [declarations.read_model_config(str(path)) for path in configs]
    return Catalog(root, frameworks, {model["name"]: model for model in models})


@cache
def project_catalog() -> Catalog:
    """Return the catalog of this project, read once."""
    return load_catalog(PROJECT)


def framework_declaration(framework: str) -> dict[str, Any]:
    """Return the framework.json of one of this project's frameworks; {} for another name."""
    return project_catalog().frameworks.get(framework, {})


def framework_title(framework: str) -> str:
    """Return the title of a framework of this project; the name itself for any other."""
    return str(framework_declaration(framework).get("title", framework))


def model_title(model: str) -> str:
    """Return the title of a model of this project; the name itself for any other."""
    title = project_catalog().models.get(model, {}).get("title", model)
    return str(title).removesuffix(" pre-training")


def forward_multiply_adds(
    model_config: dict[str, Any], sequence_length: int | None, training: bool = False
) -> float:
    """Return the multiply-adds of one sample's forward pass, by the model config's polynomial.
    ``training``: include auxiliary heads."""
    terms = model_config["forward_multiply_adds"]
    tokens = sequence_length or 0
    return float(
        terms.get("per_sample", 0)
        + terms.get("per_sample_in_training", 0) * training
        + terms.get("per_token", 0) * tokens
        + terms.get("per_token_pair", 0) * tokens**2
        + terms.get("per_prediction", 0) * max(1, round(20 * tokens / 128)) * bool(tokens)
    )


# ---- environments for CUDA -----------------------------------------------------------------------


class GpuEnvironment(NamedTuple):
    """Environment for CUDA. ``environment``: name of its file in ``envs``; ``minimum_driver``:
    oldest driver that CUDA's libraries in it work with; ``machine_code``, ``ptx``: compute
    capabilities that the framework's build has kernels for, as binaries and as PTX; both empty if
    unknown; ``machines``: architectures with a build for CUDA; ``gigabytes``: size of all
    wheels."""

    environment: str
    framework: str
    version: str
    cuda: str
    minimum_driver: str
    machine_code: tuple[str, ...]
    ptx: tuple[str, ...]
    machines: tuple[str, ...]
    gigabytes: float

    def driver_for(self, gpus: Sequence[Gpu]) -> int:
        """Return the oldest driver with which the environment runs on these GPUs: newer than
        ``minimum_driver`` if a GPU has kernels only as PTX."""
        least = int(self.minimum_driver)
        return max(least, PTX_DRIVERS.get(self.cuda, least)) if self.compiles_ptx(gpus) else least

    def compiles_ptx(self, gpus: Iterable[Gpu]) -> bool:
        """Return whether one of these GPUs has kernels only as PTX, which the driver compiles at
        their first use."""
        known = (gpu.capability for gpu in gpus if gpu.capability and self.ptx)
        return not all(_is_covered(capability, self.machine_code) for capability in known)

    def works_on(self, gpus: Sequence[Gpu]) -> bool:
        """Return whether these GPUs have kernels here and a new enough driver, as far as known."""
        driver = self.driver_for(gpus)
        return self.has_kernels(gpus) and all(_major(gpu) >= driver for gpu in gpus if gpu.driver)

    def has_kernels(self, gpus: Iterable[Gpu]) -> bool:
        """Return whether the build has kernels of each GPU's generation that are not newer than the
        GPU.

        Machine code runs only within a generation. The driver would compile PTX for later
        generations, too, but a framework that generates code does not know them. For an unknown
        build it is only required that its CUDA knows the GPU.
        """
        wanted = [gpu.capability for gpu in gpus if gpu.capability]
        if not (self.machine_code or self.ptx):
            newest = max(map(version, wanted), default=_NEWEST)
            return newest <= _NEWEST or version(self.cuda) >= _BLACKWELL
        return all(_is_covered(item, (*self.machine_code, *self.ptx)) for item in wanted)


def _major(gpu: Gpu) -> int:
    return version(gpu.driver)[0]


def _is_covered(capability: str, codes: Iterable[str]) -> bool:
    """Return whether one of ``codes`` is of this compute capability's generation and not newer."""
    wanted = version(capability)
    return any(code[0] == wanted[0] and code <= wanted for code in map(version, codes))


@lru_cache
def _gpu_environments(root: Path) -> tuple[GpuEnvironment, ...]:
    """Return the environments for CUDA of a project."""
    _, *rows = csv.reader(bounded.read_text(root / "envs" / "capabilities.csv").splitlines())
    return tuple(
        GpuEnvironment(
            *(name, framework, own, cuda, driver),
            *(tuple(code.split()), tuple(ptx.split()), tuple(machines.split())),
            float(gigabytes),
        )
        for name, framework, own, cuda, driver, code, ptx, machines, gigabytes in rows
    )


def gpu_environment(file: Path) -> GpuEnvironment | None:
    """Return the environment for CUDA of an environment file, also of one with added pins; None for
    others."""
    name = file.stem.partition("-with-")[0]
    return next((own for own in _gpu_environments(PROJECT) if own.environment == name), None)


def compiling(file: Path, gpus: Iterable[Gpu]) -> str:
    """Return the framework of an environment file if the driver must compile its kernels for these
    GPUs at their first use; "" otherwise."""
    own = gpu_environment(file)
    return own.framework if own and own.compiles_ptx(gpus) else ""


# ---- a user's own model --------------------------------------------------------------------------


@dataclass(frozen=True)
class OwnModel:
    """A user's own model that replaces all models of a suite: a Python file, or a name in a model
    library. ``source``: as given; ``model_config``: as in ``scripts/models``, with framework and
    content in ``own``."""

    source: str
    model_config: Mapping[str, Any]

    @property
    def name(self) -> str:
        return str(self.model_config["name"])

    @property
    def framework(self) -> str:
        return str(self.model_config["own"]["framework"])

    @property
    def library(self) -> str:
        """Model library that the model is from; "" for a file."""
        return str(self.model_config["own"]["library"])

    def among(self, catalog: Catalog) -> Catalog:
        """Return the catalog with the model added."""
        return replace(catalog, models={**catalog.models, self.name: dict(self.model_config)})


def own_model(source: Any) -> OwnModel:
    """Return the user's own model as described by the harness. Raises :class:`NotAllowed`."""
    if not isinstance(source, str) or {*source} & {*"{}"}:
        raise NotAllowed(f"{own_model_declaration.ALLOWED}, without {{ and }}")
    try:
        return OwnModel(source, own_model_declaration.model_config(source))
    except own_model_declaration.NotAModel as error:
        raise NotAllowed(error.allowed, error.found) from None
