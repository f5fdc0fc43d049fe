"""Commands for environments, and the generated page of columns."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .. import PROJECT
from .. import feature_registry as features


def make_hashes(names: Sequence[str], pins: Sequence[str], environments: Path) -> None:
    """Write the hashes of the environments ``names``; by default, of all that are not exempt.

    With ``pins``, write files that add them to ``names``, with their hashes, to the folder
    ``environments``."""
    from ..environments import hashes, locking
    from ..environments.venvs import files_of, read_environment_file

    for file in files_of(PROJECT / "envs", names):
        if pins:
            environment_file = read_environment_file(file, hashed=False)
            print(locking.lock_with(environment_file, pins, environments), flush=True)
        elif reason := "" if names else hashes.exemption(file):
            print(f"{file.name} is exempt: {reason}")
        else:
            print(locking.lock(file), flush=True)


def print_columns() -> None:
    """Print the page docs/columns.md."""
    from ..comparison import compare
    from ..tables import legend, registry

    written = [table for feature in features.known() for table in feature.written_tables()]
    print(legend.columns_page([*registry.known().values(), compare.TABLE, *written]), end="")
