"""YAML files of users, read strictly and within bounds.

Strict reading rejects values that YAML silently changes; the bounds keep a file from exhausting the
program.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml
from core import bounded
from core.text import shorten

from .. import PROJECT
from ..files.problem import cause
from ..files.text import cut
from .validation import ConfigError

#: Bytes; the longest suite has 8,000.
LARGEST_FILE = 2**19
#: Most values of a file with expanded aliases; no suite comes near it.
MAX_VALUES = 100_000
#: Most digits of a number; Python itself refuses some thousands.
MAX_DIGITS = 18
#: Texts that YAML 1.1 reads as another number: ``010`` as 8, ``1:30`` as 90.
_OCTAL = re.compile(r"[-+]?0[0-7_]+")
_SEXAGESIMAL = re.compile(r"[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?")


def configuration_file() -> Path:
    """Return the configuration file of the working directory, or else the project's."""
    own = Path("config", "config.yaml")
    return own if own.exists() else PROJECT / own


def read_yaml(path: Path) -> Any:
    """Parse a YAML file. Raises :class:`ConfigError` if it cannot be read or parsed."""
    try:
        text = bounded.read_text(path, LARGEST_FILE)
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: cannot be read: {cause(error)}") from None
    try:
        return _parse(text)
    except yaml.YAMLError as error:
        problem = shorten(" ".join(str(error).split()))
        raise ConfigError(f"{path}: is not valid YAML: {problem}") from None
    except RecursionError:
        raise ConfigError(
            f"{path}: found lists or mappings within each other, too many to be read; allowed: a "
            "few levels"
        ) from None


def read_mapping(path: Path) -> dict[str, Any]:
    """Parse a YAML file with keys and values. Raises :class:`ConfigError` for another file."""
    data = read_yaml(path)
    if not isinstance(data, dict):
        kind = "nothing" if data is None else type(data).__name__
        raise ConfigError(f"{path}: the file: found {kind}; allowed: a mapping (key: value)")
    return data


def _parse(text: str) -> Any:
    loader = _StrictLoader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        _measure(node, {})
        return loader.construct_document(node)
    except (ValueError, KeyError, AttributeError, TypeError):
        raise yaml.YAMLError("a value does not fit its tag (!!..)") from None
    finally:
        loader.dispose()


def _measure(node: yaml.Node, known: dict[int, int]) -> int:
    """Return the number of values in a node with expanded aliases.

    Raises :class:`yaml.MarkedYAMLError` for too many, and for a node that contains itself.
    """
    if id(node) in known:
        if not known[id(node)]:
            raise _error(node, "the anchor is used within itself")
        return known[id(node)]
    known[id(node)] = 0
    count = 1
    if isinstance(node, yaml.CollectionNode):
        for inner in node.value:
            for entry in inner if isinstance(inner, tuple) else (inner,):
                count += _measure(entry, known)
                if count > MAX_VALUES:
                    raise _error(node, f"more than {MAX_VALUES} values, with all aliases (*name)")
    known[id(node)] = count
    return count


class _StrictLoader(yaml.SafeLoader):
    """Loader that rejects duplicate keys, merge keys, and octal and base-60 numbers."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                raise _error(key_node, "found a merge key (<<); allowed: the keys written out")
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, (str, int, float)) and key in seen:
                raise _error(key_node, f"key {key!r} is given twice")
            if isinstance(key, (str, int, float)):
                seen.add(key)
        return super().construct_mapping(node, deep)

    def construct_number(self, node: yaml.ScalarNode) -> int | float:
        text = str(node.value)
        shown = cut(text, 40)
        if _OCTAL.fullmatch(text) and node.tag.endswith(":int"):
            raise _error(node, f"found {shown}, which YAML reads as octal; allowed: no leading 0")
        if _SEXAGESIMAL.fullmatch(text):
            raise _error(
                node, f"found {shown}, which YAML reads to the base 60; allowed: a decimal number"
            )
        if node.tag.endswith(":int") and len(text) > MAX_DIGITS:
            raise _error(node, f"found {shown}; allowed: a number of at most {MAX_DIGITS} digits")
        if node.tag.endswith(":int"):
            return self.construct_yaml_int(node)
        return self.construct_yaml_float(node)

    def construct_date(self, node: yaml.ScalarNode) -> Any:
        try:
            return self.construct_yaml_timestamp(node)
        except ValueError:
            raise _error(node, f"found {node.value}, which is no date") from None


_StrictLoader.add_constructor("tag:yaml.org,2002:int", _StrictLoader.construct_number)
_StrictLoader.add_constructor("tag:yaml.org,2002:float", _StrictLoader.construct_number)
_StrictLoader.add_constructor("tag:yaml.org,2002:timestamp", _StrictLoader.construct_date)


def _error(node: yaml.Node, problem: str) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=f"line {node.start_mark.line + 1}: {problem}")
