"""Commands for environments, and the generated page of columns."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from core.text import counted

from .. import PROJECT
from .. import feature_registry as features


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


def clean(environments: Path, suites: Sequence[Path]) -> None:
    """Remove environments that no file of the project and no variant of its or other ``suites``
    defines any more. Prints the freed space."""
    from ..config import yaml_files
    from ..environments import cleaning

    known = [*(PROJECT / "config" / "suites").glob("*.yaml"), *suites]
    own = [path for one in known for path in yaml_files.environments_of_suite(one)]
    added = environments.glob("*.yaml")
    names = cleaning.names([*(PROJECT / "envs").glob("*.yaml"), *added, *own])
    found = list(cleaning.clean(environments, names))
    removed = [leftover for leftover in found if not leftover.why]
    for leftover in found:
        did = f"left, {leftover.why}" if leftover.why else "removed"
        print(f"{leftover.folder}: {did}")
    freed = sum(leftover.freed for leftover in removed) / 1e9
    print(
        f"{counted(len(removed), 'environment')} removed, {freed:.1f} GB free; files that uv's "
        "cache shares go with `uv cache prune`"
    )


def print_columns() -> None:
    """Print the page docs/columns.md."""
    from ..comparison import compare
    from ..tables import columns_page, registry

    written = [table for feature in features.known() for table in feature.written_tables()]
    print(columns_page.text([*registry.known().values(), compare.TABLE, *written]), end="")
