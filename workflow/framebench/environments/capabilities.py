"""``framebench capabilities``: writes rows of ``envs/capabilities.csv``."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

from core.precisions import version

from ..config.catalog import load_catalog
from ..config.gpu_environments import FILE, GpuEnvironment, load
from ..config.validation import ConfigError
from ..files.whole_files import write_whole
from . import fat_binaries
from .venvs import read_environment_file

#: Oldest driver branch that runs programs of a major version of CUDA ("CUDA Compatibility",
#: minor version compatibility).
DRIVERS = {"11": "450", "12": "525", "13": "580"}
#: Library of cuDNN with the kernels that it always needs. Others have some for few GPUs each.
CUDNN = "libcudnn_ops.so*"


def update(
    root: Path, name: str, places: Sequence[Path], pattern: str, cudnn: Sequence[Path]
) -> str:
    """Write what ``places`` hold into the row of the environment ``name``; return it as text.

    ``cudnn``: its wheel or folder, if it may know fewer GPUs than the build. Raises ConfigError for
    an environment without a row, and for wheels without GPU code."""
    rows = {environment.environment: environment for environment in load(root)}
    if name not in rows:
        raise ConfigError(
            f"NAME: found {name!r}, which has no row in {FILE}; allowed: {', '.join(rows)}, or a "
            "new row with environment, framework and cuda"
        )
    row, code = rows[name], fat_binaries.read(places, pattern)
    machine_code = code.machine_code
    if cudnn:
        machine_code = supported(machine_code, fat_binaries.read(cudnn, CUDNN).machine_code[0])
    environment_file = read_environment_file(root / "envs" / f"{name}.yaml", hashed=False)
    package = load_catalog(root).frameworks[row.framework]["package"]
    rows[name] = row._replace(
        version=environment_file.pin(package).partition("==")[2],
        minimum_driver=DRIVERS[row.cuda.partition(".")[0]],
        machine_code=machine_code,
        ptx=code.ptx,
    )
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(GpuEnvironment._fields)
    writer.writerows(
        (*row[:5], " ".join(row.machine_code), " ".join(row.ptx)) for row in rows.values()
    )
    write_whole(root / FILE, text.getvalue())
    return f"{name}: {code.binaries} fat binaries for {' '.join(machine_code)}"


def supported(capabilities: Sequence[str], oldest: str) -> tuple[str, ...]:
    """Return the capabilities that a library supports, whose ``oldest`` one is given.

    Machine code for an older one runs on it within its generation."""
    least = version(oldest)
    within = [capability for capability in capabilities if version(capability)[0] >= least[0]]
    return tuple(dict.fromkeys(text if version(text) >= least else oldest for text in within))
