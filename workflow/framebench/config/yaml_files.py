"""YAML files of users, and suites among them, without the checks of their content."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from core import bounded
from core.text import shorten

from .. import PROJECT
from ..files.json_files import cause
from . import values
from .validation import ConfigError, NotAllowed, did_you_mean, show

#: Bytes; the longest suite has 8,000.
LARGEST_FILE = 2**19


def configuration_file() -> Path:
    """Return the configuration file of the working directory, or else the project's."""
    own = Path("config", "config.yaml")
    return own if own.exists() else PROJECT / own


def read_yaml(path: Path) -> Any:
    """Parse a YAML file. Raises :class:`ConfigError` if it cannot be read or parsed."""
    try:
        return yaml.load(bounded.read_text(path, LARGEST_FILE), _Loader)
    except yaml.YAMLError as error:
        problem = shorten(" ".join(str(error).split()))
        raise ConfigError(f"{path}: is not valid YAML: {problem}") from None
    except (OSError, ValueError, LookupError, AttributeError, TypeError, RecursionError) as error:
        raise ConfigError(f"{path}: cannot be read: {cause(error)}") from None


def read_mapping(path: Path) -> dict[str, Any]:
    """Parse a YAML file with keys and values. Raises :class:`ConfigError` for another file."""
    data = read_yaml(path)
    if not isinstance(data, dict):
        kind = "nothing" if data is None else type(data).__name__
        raise ConfigError(f"{path}: the file: found {kind}; allowed: a mapping (key: value)")
    return data


def find_suite(name: str, project: Path) -> Path:
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


class _Loader(yaml.SafeLoader):
    """Safe loader that refuses duplicate keys, of which YAML silently takes the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key_node, _ in node.value:
            key = str(self.construct_object(key_node, deep=True))
            if key in seen:
                line = key_node.start_mark.line + 1
                raise yaml.MarkedYAMLError(problem=f"line {line}: key {key!r} is given twice")
            seen.add(key)
        return super().construct_mapping(node, deep)
