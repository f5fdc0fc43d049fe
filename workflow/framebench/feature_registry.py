"""Registry of features: each folder of ``features`` contributes modules by their name.

The core imports no feature by name and works without the folder ``features``.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType

FOLDER = Path(__file__).parent / "features"


@cache
def modules(name: str) -> tuple[ModuleType, ...]:
    """Return the module ``name`` of every feature that has one, ordered by feature."""
    return tuple(
        import_module(f".{FOLDER.name}.{file.parent.name}.{name}", __package__)
        for file in sorted(FOLDER.glob(f"*/{name}.py"))
    )
