"""Kernels of a framework's build on an NVIDIA GPU: its cuBLAS, and machine code for the GPU or PTX.

``envs/capabilities.csv`` tells what each environment's build has; records have the environment and
the compute capability.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .. import PROJECT
from ..config.gpu_environments import GpuEnvironment, load


def library(record: Mapping[str, Any], root: Path = PROJECT) -> tuple[str, str]:
    """Return the libraries and kernels of the framework on the record's GPUs, and what could help
    where they are not machine code for these.

    What the record does not tell is left out, as for a build that no environment of ours has."""
    environment = record["environment"]
    packages = environment["packages"].items()
    cublas = [number for name, number in packages if name.startswith("nvidia-cublas")]
    known = [f"cuBLAS {number}" for number in cublas[:1]]
    build, capability = _build(record, root), _capability(environment["hardware"])
    stated = next((rank.get("settings", {}).get("kernels") for rank in record["ranks"]), None)
    kernels = _kernels(build, capability) if build and capability else stated
    if kernels:
        known.append(f"own kernels: {kernels}")
    is_slow = bool(build and capability and not build.machine_code_for(capability))
    return "; ".join(known), _remedy(build, capability, root) if build and is_slow else ""


def _build(record: Mapping[str, Any], root: Path) -> GpuEnvironment | None:
    """Return the environment of ours that the record was measured in, if its code is known."""
    environment = record["environment"]
    name = Path(environment["prefix"]).name.rpartition("-")[0]
    release = record["framework_version"].partition("+")[0]
    return next(
        (
            gpu_environment
            for gpu_environment in load(root)
            if environment["install_method"] == "venv"
            and (gpu_environment.environment, gpu_environment.version) == (name, release)
            if gpu_environment.machine_code or gpu_environment.ptx
        ),
        None,
    )


def _capability(hardware: Mapping[str, Any]) -> str:
    """Return the compute capability of a record's GPUs; "" if unknown, or if they differ.

    Other programs' records may list GPUs by their names alone."""
    listed = hardware.get("gpus")
    gpus = listed if isinstance(listed, list) else []
    found = {gpu.get("capability") if isinstance(gpu, Mapping) else None for gpu in gpus}
    return str(found.pop() or "") if len(found) == 1 else ""


def _kernels(build: GpuEnvironment, capability: str) -> str:
    code, ptx = build.machine_code_for(capability), build.ptx_for(capability)
    if code:
        return f"machine code for {code}"
    here = f"compute capability {capability}"
    if ptx:
        return f"no machine code for {here}, PTX for {ptx} that CUDA's JIT compiles at first use"
    return f"none for {here}"


def _remedy(build: GpuEnvironment, capability: str, root: Path) -> str:
    others = [
        environment.environment
        for environment in load(root)
        if environment.framework == build.framework and environment.machine_code_for(capability)
    ]
    remedy = " or ".join(others) or "an image or a Python of your own"
    return f"a build with machine code for {capability}: {remedy}"
