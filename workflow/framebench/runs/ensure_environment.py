"""``framebench environment --file F [--marker M]``: build a missing or damaged venv."""

from __future__ import annotations

import argparse
import ctypes
import os
import signal
import subprocess
import sys
from pathlib import Path

from ..environments import soundness
from ..files import whole_files

PROJECT = Path(__file__).parents[3]
#: Models, with options, whose training uses the kernels of most other models.
WARM_UP = {"resnet50_v1.5": (), "bert_base": ("--sequence-length", "128")}
_PR_SET_PDEATHSIG = 1
PARENT_VARIABLE = "FRAMEBENCH_DIE_WITH_PARENT"


def main(arguments: list[str]) -> int:
    """Return the exit status: 1 with one message on stderr if there is no environment."""
    parser = argparse.ArgumentParser(prog="framebench environment", description=__doc__)
    parser.add_argument("--file", type=Path, required=True, help="envs/NAME.yaml")
    parser.add_argument(
        "--marker", type=Path, help="file that says it is built (default: in the project's .venvs)"
    )
    parser.add_argument(
        "--without-hashes", action="store_true", help="install any files of the pinned versions"
    )
    options = parser.parse_args(arguments)
    _end_with_parent()
    if options.marker and soundness.is_sound(options.marker):
        return 0
    # Loaded only if there is something to build.
    from ..config.validation import ConfigError
    from ..environments import venvs

    hashed = not options.without_hashes
    try:
        name = venvs.read_environment_file(options.file, hashed).name
        marker = options.marker or PROJECT / ".venvs" / name / venvs.MARKER
        ensure(options.file, marker, hashed)
    except (ConfigError, whole_files.LockError, subprocess.CalledProcessError, OSError) as error:
        print(f"framebench: {error}", file=sys.stderr)
        return 1
    return 0


def _end_with_parent() -> None:
    """Request SIGTERM for this process when its parent ends, if the workflow asks for that.

    The variable holds the parent's process id, because the parent may have ended before the
    request.
    """
    parent = os.environ.get(PARENT_VARIABLE)
    if parent:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)
        if str(os.getppid()) != parent:
            os.kill(os.getpid(), signal.SIGTERM)


def ensure(file: Path, marker: Path, hashed: bool = True) -> None:
    """Build the environment of ``file`` around ``marker``, unless another process does so first.

    Raises :class:`whole_files.LockError`, OSError, and all that :func:`environments.build` raises.
    """
    from ..environments import venvs

    lock = marker.parent.with_name(f"{marker.parent.name}.lock")
    with whole_files.lock(lock, "give another folder: --config environments=DIR") as held:
        if soundness.is_sound(marker):
            return
        if marker.exists():
            print(f"{marker.parent} is damaged: {soundness.damage(marker)}. It is built anew.")
        # Processes that remain of a killed build hold the lock until they end.
        venvs.build(file, marker, [held.fileno()], hashed)
        _compile_kernels(file, marker.parent)


def _compile_kernels(file: Path, folder: Path) -> None:
    """Train models once where the driver compiles all kernels of an environment for a GPU of this
    machine, which takes up to half an hour, and keeps them: no time budget pays for it."""
    from core import gpus

    from ..config import gpu_environments

    try:
        framework = gpu_environments.compiling(PROJECT, file, gpus.list_gpus())
    except gpus.GpuError:
        return
    for model, more in WARM_UP.items() if framework else ():
        options = {
            "kind": "train", "framework": PROJECT / "scripts" / "frameworks" / framework,
            "model": model, "batch-per-device": 2, "precision": "amp", "accelerator": "cuda",
            "warmup-steps": 1, "timed-steps": 1, "output": folder / "warm_up" / f"{model}.json",
        }  # fmt: skip
        words = [word for key, value in options.items() for word in (f"--{key}", str(value))]
        variables = {**os.environ, PARENT_VARIABLE: str(os.getpid())}
        command = [f"{folder}/bin/python", f"{PROJECT}/scripts/harness", *words, *more]
        subprocess.run(command, env=variables, check=False)
