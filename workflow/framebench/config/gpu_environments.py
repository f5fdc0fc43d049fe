"""Environments of a framework for CUDA, and the GPUs and drivers that each works on.

``envs/capabilities.csv`` has a row for each, the preferred one of a framework first. Its machine
code and PTX are what both the framework's build and its cuDNN have, which 9.10 was the last to have
for Volta.
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
#: Configuration with the images of frameworks that have no environment for GPUs, and what they run
#: on.
IMAGES = "config/images-cuda.yaml, for compute capability 6.0 to 9.0"


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

    def misfit(self, gpus: Iterable[Gpu]) -> str:
        """Return why the environment does not work on one of these GPUs; "" if it works on all."""
        for gpu in gpus:
            if gpu.driver and version(gpu.driver)[0] < int(self.minimum_driver):
                return (
                    f"CUDA {self.cuda} needs driver {self.minimum_driver} or newer, found "
                    f"{gpu.driver}"
                )
            if gpu.capability and not self.has_kernels(gpu.capability):
                return (
                    f"it has no kernels for {gpu.name}, compute capability {gpu.capability}, but "
                    f"for {', '.join((*self.machine_code, *self.ptx))}"
                )
        return ""

    def has_kernels(self, capability: str) -> bool:
        """Return whether the build has kernels of the generation of a GPU, no newer than it.

        Machine code runs within a generation alone. The driver would compile PTX for later ones,
        too, but a framework that generates code of its own does not know them.
        """
        known = [version(one) for one in (*self.machine_code, *self.ptx)]
        wanted = version(capability)
        return not known or any(one[0] == wanted[0] and one <= wanted for one in known)

    def machine_code_for(self, capability: str) -> str:
        """Return the newest machine code that a GPU of this compute capability runs; "" if none."""
        return _newest(self.machine_code, capability, 1)

    def ptx_for(self, capability: str) -> str:
        """Return the newest PTX that the driver compiles for such a GPU; "" if none."""
        return _newest(self.ptx, capability, 0)


def _newest(codes: Iterable[str], capability: str, digits: int) -> str:
    """Return the newest of these compute capabilities that is not newer than ``capability`` and
    equals it in the first ``digits`` numbers; "" if there is none."""
    wanted = version(capability)
    fits = [
        code
        for code in codes
        if version(code) <= wanted and version(code)[:digits] == wanted[:digits]
    ]
    return max(fits, key=version, default="")


@lru_cache
def load(root: Path) -> tuple[GpuEnvironment, ...]:
    """Return the environments of a project. Raises ValueError for other columns."""
    header, *rows = csv.reader(bounded.read_text(root / FILE).splitlines())
    if tuple(header) != GpuEnvironment._fields:
        raise ValueError(f"{FILE}: columns are {header}; allowed: {GpuEnvironment._fields}")
    return tuple(
        GpuEnvironment(
            environment, framework, release, cuda, driver, tuple(code.split()), tuple(ptx.split())
        )
        for environment, framework, release, cuda, driver, code, ptx in rows
    )


def files(root: Path, framework: str) -> list[Path]:
    """Return the environment files of a framework for CUDA, the preferred one first.

    The file of a framework without a row, such as a user's own, is ``envs/FRAMEWORK-cuda.yaml``.
    """
    names = [one.environment for one in load(root) if one.framework == framework]
    plain = root / "envs" / f"{framework}-cuda.yaml"
    return [root / "envs" / f"{name}.yaml" for name in names] or [plain] * plain.exists()


def choose(root: Path, framework: str, gpus: Sequence[Gpu]) -> tuple[Path | None, str]:
    """Return the environment file of a framework for these GPUs, or None and the reason.

    The reason says what helps: a driver, or software of the user's. Nothing is checked without a
    row.
    """
    known = {one.environment: one for one in load(root) if one.framework == framework}
    faults = {name: one.misfit(gpus) for name, one in known.items()}
    for file in files(root, framework):
        if not faults.get(file.stem):
            return file, ""
    if not known:
        return None, (
            f"there is no environment of {framework} for CUDA; allowed: an image (--sdm apptainer, "
            f"as in {IMAGES}), or a Python of your own (interpreters)"
        )
    drivers = [
        int(one.minimum_driver)
        for one in known.values()
        if not one.misfit(gpu._replace(driver="") for gpu in gpus)
    ]
    way = f"driver {min(drivers)} or newer" if drivers else "an image, or a Python of your own"
    why = "; ".join(f"{name}: {fault}" for name, fault in faults.items())
    return None, f"{why}; allowed: {way}"
