"""Registry of features: each package of ``features`` declares its ``FEATURE``.

The core imports no feature by name and works without the folder ``features``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

FOLDER = Path(__file__).parent / "features"


@dataclass(frozen=True)
class Feature:
    """Contribution of a feature to the core. Importing its package must be fast.

    ``add_commands``: adds parsers to argparse's sub-commands; the option ``command`` is a function
    of all options, which may return an exit status. ``tables``: tables that its commands write,
    apart from those of the report, as ``FEATURE.MODULE.VARIABLE``. ``record_files``: names of files
    next to records that the report depends on. ``report_tables``: makes further tables of a report,
    as data frames by table, from the folder of its records and the inputs of its tables.
    """

    add_commands: Callable[[Any], None]
    tables: tuple[str, ...] = ()
    record_files: tuple[str, ...] = ()
    report_tables: Callable[[Path, Any], Mapping[Any, Any]] = lambda *_: {}

    def written_tables(self) -> list[Any]:
        """Return the tables that its commands write."""
        places = (place.rpartition(".") for place in self.tables)
        return [
            getattr(import_module(f".{FOLDER.name}.{module}", __package__), name)
            for module, _, name in places
        ]


@cache
def known() -> tuple[Feature, ...]:
    """Return all features, ordered by name."""
    return tuple(
        import_module(f".{FOLDER.name}.{package.name}", __package__).FEATURE
        for package in iter_modules([str(FOLDER)])
    )
