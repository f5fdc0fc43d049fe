"""Environments of a framework for CUDA, and the GPUs and drivers that each works on.

``envs/capabilities.csv`` has a row for each, the preferred one of a framework first. Its machine
code and PTX are those that both the framework's build and its cuDNN contain; cuDNN 9.10 was the
last with code for Volta.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from core import bounded
from core.gpus import Gpu
from core.precisions import version

FILE = Path("envs", "capabilities.csv")
#: Newest compute capability that the compiler of every CUDA here knows.
_NEWEST = (9, 0)
#: First CUDA whose compiler knows GPUs after compute capability 9.0, from its release notes.
_BLACKWELL = (12, 8)
#: Oldest driver that compiles the PTX of a release of CUDA: the release's own driver, by the table
#: in its release notes. Older drivers of the same major release run only machine code.
PTX_DRIVERS = {
    "12.0": 525, "12.1": 530, "12.2": 535, "12.3": 545, "12.4": 550, "12.5": 555, "12.6": 560,
    "12.8": 570, "12.9": 575, "13.0": 580,
}  # fmt: skip


class GpuEnvironment(NamedTuple):
    """Environment for CUDA.

    ``environment``: name of its file in ``envs``; ``minimum_driver``: oldest driver that CUDA's
    libraries in it work with; ``machine_code``, ``ptx``: compute capabilities that the framework's
    build has kernels for, as binaries and as PTX; both empty if unknown.
    """

    environment: str
    framework: str
    version: str
    cuda: str
    minimum_driver: str
    machine_code: tuple[str, ...]
    ptx: tuple[str, ...]

    def driver_for(self, gpus: Sequence[Gpu]) -> int:
        """Return the oldest driver for these GPUs; newer than ``minimum_driver`` where a GPU has
        kernels only as PTX."""
        least = int(self.minimum_driver)
        return max(least, PTX_DRIVERS.get(self.cuda, least)) if self.compiles_ptx(gpus) else least

    def compiles_ptx(self, gpus: Iterable[Gpu]) -> bool:
        """Return whether one of these GPUs has kernels only as PTX, which the driver compiles at
        their first use."""
        known = (gpu.capability for gpu in gpus if gpu.capability and self.ptx)
        return not all(_newest(self.machine_code, capability) for capability in known)

    def works_on(self, gpus: Sequence[Gpu]) -> bool:
        """Return whether kernels and drivers are for these GPUs, as far as they are known."""
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
        return all(_newest((*self.machine_code, *self.ptx), item) for item in wanted)


def _major(gpu: Gpu) -> int:
    return version(gpu.driver)[0]


def _newest(codes: Iterable[str], capability: str) -> str:
    """Return the newest of these compute capabilities of the same generation as ``capability`` that
    is not newer; "" if there is none."""
    wanted = version(capability)
    older = (code for code in codes if version(code) <= wanted)
    return max((code for code in older if version(code)[0] == wanted[0]), key=version, default="")


@lru_cache
def load(root: Path) -> tuple[GpuEnvironment, ...]:
    """Return the environments of a project."""
    _, *rows = csv.reader(bounded.read_text(root / FILE).splitlines())
    return tuple(
        GpuEnvironment(name, framework, own, cuda, driver, tuple(code.split()), tuple(ptx.split()))
        for name, framework, own, cuda, driver, code, ptx in rows
    )


def compiling(root: Path, file: Path, gpus: Iterable[Gpu]) -> str:
    """Return the framework of an environment file whose kernels the driver compiles for these GPUs
    at their first use; "" for another file."""
    known = (own for own in load(root) if own.environment == file.stem)
    return next((own.framework for own in known if own.compiles_ptx(gpus)), "")


def choose(root: Path, framework: str, gpus: Sequence[Gpu]) -> tuple[Path | None, str]:
    """Return the environment file of a framework for these GPUs, or None and the reason.

    The reason says what helps: a driver, or software of the user's. Frameworks that lack the same
    thing have the same reason. The file of a framework without a row, such as a user's own, is
    ``envs/FRAMEWORK-cuda.yaml``.
    """
    known = [own for own in load(root) if own.framework == framework]
    for own in known:
        if own.works_on(gpus):
            return root / "envs" / f"{own.environment}.yaml", ""
    plain = root / "envs" / f"{framework}-cuda.yaml"
    if not known and plain.exists():
        return plain, ""
    if drivers := [own.driver_for(gpus) for own in known if own.has_kernels(gpus)]:
        found = min((gpu for gpu in gpus if gpu.driver), key=_major).driver
        return None, f"needs driver {min(drivers)} or newer, found {found}"
    lacking = "no environment for CUDA"
    if known:
        kinds = sorted({gpu.capability for gpu in gpus if gpu.capability}, key=version)
        lacking = f"no environment has kernels for compute capability {' and '.join(kinds)}"
    return None, f"{lacking}; allowed: an image (docs/gpus.md), or a Python of your own"
