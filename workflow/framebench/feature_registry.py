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
from typing import Any

FOLDER = Path(__file__).parent / "features"


@dataclass(frozen=True)
class Feature:
    """Contribution of a feature to the core. Importing it must be fast.

    ``add_commands``: adds parsers to argparse's sub-commands; the option ``command`` is a function
    of all options, which may return an exit status. ``tables``: tables that its commands write,
    apart from those of the report: the place of each (``FEATURE.MODULE.VARIABLE``) by name.
    ``record_files``: names of files next to records that the report depends on.
    """

    add_commands: Callable[[Any], None] = lambda commands: None
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
