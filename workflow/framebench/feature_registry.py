"""Registry of features: each folder of ``features`` contributes modules by their name.

The core imports no feature by name and works without the folder ``features``. Modules that the core
knows: ``feature`` with ``FEATURE``, ``report_part`` with the function ``tables``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

FOLDER = Path(__file__).parent / "features"


class Program(NamedTuple):
    """Command that parses its own options. ``module``: of a feature, loaded to run it."""

    help: str
    module: str

    def main(self, arguments: list[str]) -> int:
        """Run the command and return its exit status."""
        module = import_module(f".{FOLDER.name}.{self.module}", __package__)
        return int(module.main(arguments))


@dataclass(frozen=True)
class Feature:
    """Contribution of a feature to the core. Importing it must be fast.

    ``add_commands``: adds parsers to argparse's sub-commands. ``tables``: tables that its commands
    write, apart from those of the report: the place of each (``FEATURE.MODULE.VARIABLE``) by name.
    ``record_files``: names of files next to records that the report depends on. ``programs``:
    commands that parse their own options, with one line of help.
    """

    add_commands: Callable[[Any], None] = lambda commands: None
    programs: Mapping[str, Program] = field(default_factory=dict)
    tables: Mapping[str, str] = field(default_factory=dict)
    record_files: tuple[str, ...] = ()

    def written_tables(self) -> list[Any]:
        """Return the tables that its commands write."""
        places = (place.rpartition(".") for place in self.tables.values())
        return [
            getattr(import_module(f".{FOLDER.name}.{module}", __package__), name)
            for module, _, name in places
        ]


def known() -> tuple[Feature, ...]:
    """Return all features, ordered by name."""
    return tuple(module.FEATURE for module in modules("feature"))


@cache
def modules(name: str) -> tuple[ModuleType, ...]:
    """Return the module ``name`` of every feature that has one, ordered by feature."""
    return tuple(
        import_module(f".{FOLDER.name}.{file.parent.name}.{name}", __package__)
        for file in sorted(FOLDER.glob(f"*/{name}.py"))
    )
