"""``framebench environment --file F [--marker M]``: build a missing or damaged venv.

It runs during benchmarks, and so imports other modules only if there is something to build.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path

from core import bounded, programs

from ..files import whole_files

PROJECT = Path(__file__).parents[3]
#: Marker file of a complete venv, which lists the installed files.
MARKER = "environment.json"
#: Models, with options, whose training uses the kernels of most other models.
WARM_UP = {"resnet50_v1.5": (), "bert_base": ("--sequence-length", "128")}
PARENT_VARIABLE = "FRAMEBENCH_DIE_WITH_PARENT"
_PR_SET_PDEATHSIG = 1
#: Seconds for the imports of a framework from a cold disk.
_IMPORT_SECONDS = 300
#: Top-level modules in packages that are not libraries.
_NO_LIBRARY = {"benchmarks", "docs", "examples", "scripts", "test", "tests"}


def main(arguments: list[str]) -> int:
    """Return the exit status: 1 with one message on stderr if there is no environment."""
    parser = argparse.ArgumentParser(prog="framebench environment", description=__doc__)
    parser.add_argument("--file", type=Path, required=True, help="envs/NAME.yaml")
    parser.add_argument(
        "--marker", type=Path, help="marker of the built venv (default: in the project's .venvs)"
    )
    parser.add_argument(
        "--without-hashes", action="store_true", help="install any files of the pinned versions"
    )
    options = parser.parse_args(arguments)
    _end_with_parent()
    if options.marker and is_sound(options.marker):
        return 0
    from ..config.validation import ConfigError
    from . import venvs

    hashed = not options.without_hashes
    try:
        name = venvs.read_environment_file(options.file, hashed).name
        ensure(options.file, options.marker or PROJECT / ".venvs" / name / MARKER, hashed)
    except (ConfigError, whole_files.LockError, subprocess.CalledProcessError, OSError) as error:
        print(f"framebench: {error}", file=sys.stderr)
        return 1
    return 0


def _end_with_parent() -> None:
    """Request SIGTERM for this process when its parent ends, if PARENT_VARIABLE has the process id
    of the parent. The id shows whether the parent has ended before the request."""
    parent = os.environ.get(PARENT_VARIABLE)
    if parent:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)
        if str(os.getppid()) != parent:
            os.kill(os.getpid(), signal.SIGTERM)


def ensure(file: Path, marker: Path, hashed: bool = True) -> None:
    """Build the venv of ``file`` in the folder of its ``marker``, which is written last, unless
    another process builds it first. ``hashed``: require the hashes in files next to ``file``.

    Raises :class:`whole_files.LockError`, OSError, :class:`subprocess.CalledProcessError` if uv
    fails (its own message is on stderr), and :class:`ConfigError` if a hash does not match, or a
    package cannot be imported.
    """
    folder = marker.parent
    lock = folder.with_name(f"{folder.name}.lock")
    with whole_files.lock(lock, "give another folder: --config environments=DIR") as held:
        if is_sound(marker):
            return
        if marker.exists():
            print(f"{folder} is damaged: {damage(marker)}. It is built anew.")
        # Processes that remain of a killed build hold the lock until they end.
        _build(file, marker, held.fileno(), hashed)
        _compile_kernels(file, folder)


def _build(file: Path, marker: Path, keep: int, hashed: bool) -> None:
    """Build a venv in its emptied folder. The file descriptor ``keep`` stays open in all build
    processes, which end with this one."""
    from ..config.validation import ConfigError
    from . import venvs

    wanted, folder = venvs.read_environment_file(file, hashed), marker.parent
    marker.unlink(missing_ok=True)
    venvs.make_venv(wanted.python, folder, [keep])
    hash_file = venvs.install_packages(wanted, str(folder / "bin" / "python"), [keep])
    fault = _import_fault(folder, {venvs.bare(pin) for pin in wanted.packages})
    if fault:
        raise ConfigError(
            f"{file}: dependencies: found packages that cannot be imported: {fault}; allowed: "
            "versions and builds that work together"
        )
    content = {
        "file": file.name,
        "packages": wanted.packages,
        "hashes": hash_file,
        "installed": _installed(folder),
    }
    temporary = marker.with_suffix(".tmp")
    temporary.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    temporary.replace(marker)


def _import_fault(folder: Path, packages: Collection[str]) -> str:
    """Return which public modules of ``packages`` cannot be imported in the venv in ``folder``, and
    why; "" if all can. Only modules that are folders are tried: single files may be programs, which
    need packages that were not requested."""
    from .venvs import bare

    found: dict[str, None] = {}
    for path in sorted(folder.glob("lib/python*/site-packages/*.dist-info")):
        if bare(path.name.partition("-")[0]) in packages:
            text = bounded.read_text(path / "RECORD")
            found.update(
                dict.fromkeys(re.findall(r"^([a-zA-Z]\w*)/__init__\.py,", text, re.MULTILINE))
            )
    names = [name for name in found if name not in _NO_LIBRARY]
    try_imports = str(PROJECT / "scripts" / "harness" / "try_imports.py")
    try:
        command = [str(folder / "bin" / "python"), try_imports, *names]
        ended = programs.run(command, timeout=_IMPORT_SECONDS)
        return str(json.loads(ended.stdout).get("found", ""))
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return ""


def _compile_kernels(file: Path, folder: Path) -> None:
    """Train models once if the driver must compile all kernels of an environment for a GPU of this
    machine. That takes up to half an hour and is cached, so it is no part of a time budget."""
    from core import gpus

    from ..config import catalog

    try:
        framework = catalog.compiling(file, gpus.list_gpus())
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


# ---- built venvs ---------------------------------------------------------------------------------


def is_sound(marker: Path) -> bool:
    """Return whether the venv of a marker is built and complete."""
    return marker.exists() and not damage(marker)


def damage(marker: Path) -> str:
    """Return what is missing in a built venv: its interpreter or installed files; "" if nothing.
    Only names are compared with those in the ``marker``, to be fast.
    """
    python = marker.parent / "bin" / "python"
    if not os.access(python, os.X_OK):
        return f"{python} is missing, or what it links to"
    try:
        wanted = set(json.loads(bounded.read_text(marker))["installed"])
    except (OSError, ValueError, KeyError, TypeError):
        return f"{marker} cannot be read"
    missing = sorted(wanted.difference(_installed(marker.parent)))
    if missing:
        others = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        return f"installed files are missing: {missing[0]}{others}"
    return ""


def _installed(folder: Path) -> list[str]:
    """Return the names in the site-packages folder of the venv in ``folder``."""
    listed = (os.listdir(path) for path in folder.glob("lib/python*/site-packages"))
    return sorted({name for names in listed for name in names} - {"__pycache__"})
