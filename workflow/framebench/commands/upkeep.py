"""Commands for environments, and the generated page of columns."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .. import PROJECT
from .. import feature_registry as features
from ..config.validation import ConfigError, did_you_mean

if TYPE_CHECKING:
    from ..environments.updating import Moved


class ChecksFailed(Exception):
    """Contract tests or a gate that did not pass, with their exit statuses."""


def make_hashes(names: Sequence[str], pins: Sequence[str], environments: Path) -> None:
    """Write the hashes of the environments ``names``; by default, of all that are not exempt.

    With ``pins``, write files that add them to ``names``, with their hashes, to the folder
    ``environments``."""
    from ..environments import added_packages, hashes, locking
    from ..environments.venvs import files_of, read_environment_file

    for file in files_of(PROJECT / "envs", names):
        if pins:
            environment_file = read_environment_file(file, hashed=False)
            print(added_packages.lock(environment_file, pins, environments), flush=True)
        elif reason := "" if names else hashes.exemption(file):
            print(f"{file.name} is exempt: {reason}")
        else:
            print(locking.lock(file), flush=True)


def update(
    framework: str, folder: Path, python: str = "", gate: Sequence[str] | None = None
) -> None:
    """Move the pins of a framework to its newest version, and print what changes.

    Then runs its contract tests, and measures old and new environment in pairs: a gate. Raises
    ChecksFailed if one of them does not pass. ``folder``: for old files and results; ``python``:
    version of Python to move to; ``gate``: its arguments; None leaves out tests and gate."""
    from ..config import catalog
    from ..environments import updating

    known = catalog.load_catalog(PROJECT)
    if framework not in known.frameworks:
        hint, names = did_you_mean(framework, known.frameworks), ", ".join(known.frameworks)
        raise ConfigError(f"FRAMEWORK: found {framework!r}{hint}; allowed: {names}")
    package = known.frameworks[framework]["package"]
    failed = []
    files = [file for on in ("cpu", "cuda") for file in known.environment_files(framework, on)]
    for moved in updating.update(PROJECT, files, package, folder, python):
        if isinstance(moved, str):
            print(moved, flush=True)
            continue
        print(
            f"{moved.file.stem}:",
            *(f"  {name} {what}" for name, what in moved.changes.items()),
            sep="\n",
        )
        checks = {} if gate is None else commands_of_checks(framework, moved, folder, gate)
        for check, arguments in checks.items():
            print(f"$ {shlex.join(arguments)}", flush=True)
            if status := subprocess.run(arguments, check=False, cwd=PROJECT).returncode:
                failed.append(f"{check} of {moved.file.stem} ended with {status}")
    if failed:
        raise ChecksFailed("; ".join(failed))


def commands_of_checks(
    framework: str, moved: Moved, folder: Path, gate: Sequence[str]
) -> dict[str, list[str]]:
    """Return the commands that test an environment and measure it against the one before."""
    accelerator = "cuda" if "-cuda" in moved.file.stem else "cpu"
    results = folder.resolve() / moved.file.stem
    arguments = ["--base", str(moved.before.resolve()), "--candidate", str(moved.file)]
    arguments += ["--results", str(results), "--config", f"frameworks={framework}"]
    arguments += [f"accelerator={accelerator}", *gate]
    tests = ["-m", "pytest", "-q", "tests/frameworks/test_contract.py", "-k", framework]
    program = str(PROJECT / "workflow" / "framebench")
    return {
        "the contract tests": [sys.executable, *tests],
        "the gate": [sys.executable, program, "gate", *arguments],
    }


def write_capabilities(
    name: str, places: Sequence[Path], pattern: str, cudnn: Sequence[Path]
) -> None:
    """Write the row of an environment in ``envs/capabilities.csv``, from the GPU code in the wheels
    and folders ``places``, and in those of cuDNN. Name, framework and version of CUDA stand there
    already."""
    from ..environments import capabilities

    print(capabilities.update(PROJECT, name, places, pattern, cudnn))


def write_recipes(names: Sequence[str], folder: Path) -> None:
    """Write image recipes, and print their paths."""
    from ..environments import recipe

    print("\n".join(recipe.messages(recipe.write(PROJECT / "envs", names, folder))))


def clean(environments: Path, suites: Sequence[Path]) -> None:
    """Remove environments that no file of the project and no variant of its or other ``suites``
    defines any more. Prints the freed space."""
    from ..config import suite_files
    from ..environments import cleaning

    known = [*(PROJECT / "config" / "suites").glob("*.yaml"), *suites]
    own = [path for one in known for path in suite_files.environments(one)]
    added = environments.glob("*.yaml")
    names = cleaning.names([*(PROJECT / "envs").glob("*.yaml"), *added, *own])
    found = list(cleaning.clean(environments, names))
    removed = [leftover for leftover in found if not leftover.why]
    for leftover in found:
        did = f"left, {leftover.why}" if leftover.why else "removed"
        print(f"{leftover.folder}: {did}, {leftover.size / 1e9:.1f} GB")
    freed = sum(leftover.freed for leftover in removed) / 1e9
    shared = sum(leftover.size - leftover.freed for leftover in removed) / 1e9
    print(f"{len(removed)} environments removed, {freed:.1f} GB free", end="")
    print(f"; {shared:.1f} GB more when uv's cache lets go of them: uv cache prune" * bool(shared))


def print_columns() -> None:
    """Print the page docs/columns.md."""
    from ..comparison import compare
    from ..tables import columns_page, registry

    written = [table for feature in features.known() for table in feature.written_tables()]
    print(columns_page.text([*registry.known().values(), compare.TABLE, *written]), end="")
