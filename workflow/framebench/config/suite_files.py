"""Suite files, without the checks of their content."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from . import values
from .validation import NotAllowed, did_you_mean, show
from .yaml_files import read_mapping


def find(name: str, project: Path) -> Path:
    """Return the file of a suite: a name in ``config/suites/``, or the path of a YAML file.

    Raises :class:`NotAllowed` if there is none.
    """
    folder = project / "config" / "suites"
    by_path = name.endswith((".yaml", ".yml"))
    path = values.path(name if by_path else str(folder / f"{name}.yaml"))
    if not path.is_file():
        known = sorted(file.stem for file in folder.glob("*.yaml"))
        shown = show(name) + did_you_mean(name, known)
        raise NotAllowed(f"{', '.join(known)}, or the path of a YAML file", shown)
    return path


def environments(suite: Path) -> list[Path]:
    """Return the environment files of a suite's variants. Raises ConfigError for invalid YAML."""
    variants = read_mapping(suite).get("variants")
    own = [value.get("environments") for value in _values(variants) if isinstance(value, dict)]
    return [Path(path).expanduser() for files in own for path in _values(files) if path]


def _values(mapping: object) -> list[Any]:
    return list(mapping.values()) if isinstance(mapping, dict) else []
