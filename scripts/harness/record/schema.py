"""Validator for the keywords of the record's schema, because a framework's environment may lack
one.

Unknown keywords are errors, so that nothing in the schema is silently ignored.
"""

from __future__ import annotations

import os
from typing import Any, Dict, List

from core import bounded

RECORD_SCHEMA = os.path.join(
    os.path.dirname(os.path.realpath(__file__)),
    os.pardir,
    os.pardir,
    os.pardir,
    "workflow",
    "schemas",
    "record.schema.json",
)
_ANNOTATIONS = {"$schema", "title", "description"}
_KNOWN = {
    "type",
    "const",
    "enum",
    "required",
    "properties",
    "additionalProperties",
    "items",
    "minimum",
    "maximum",
    "minLength",
} | _ANNOTATIONS


class SchemaError(Exception):
    """Raised where the record's schema cannot be read."""


def record_schema() -> Dict[str, Any]:
    """Return the record's schema. Raises :class:`SchemaError`."""
    try:
        schema = bounded.read_json(RECORD_SCHEMA)
    except (OSError, ValueError) as error:
        path = os.path.normpath(RECORD_SCHEMA)
        raise SchemaError(f"cannot read the record's schema {path}: {error}") from error
    whole: Dict[str, Any] = _without_references(schema, schema.pop("$defs", {}))
    return whole


def _without_references(part: Any, definitions: Dict[str, Any]) -> Any:
    """Return ``part`` of a schema with each ``{"$ref": "#/$defs/NAME"}`` replaced by its
    definition."""
    if isinstance(part, list):
        return [_without_references(item, definitions) for item in part]
    if not isinstance(part, dict):
        return part
    if set(part) == {"$ref"}:
        part = definitions[part["$ref"].rpartition("/")[2]]
    return {key: _without_references(item, definitions) for key, item in part.items()}


def _is(value: Any, name: str) -> bool:
    if name == "null":
        return value is None
    if name == "boolean":
        return isinstance(value, bool)
    if name == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    if name == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    kinds: Dict[str, type] = {"string": str, "array": list, "object": dict}
    return isinstance(value, kinds[name])


def errors(value: Any, schema: Dict[str, Any], where: str = "record") -> List[str]:
    """Return what is wrong with ``value``, one sentence each; empty if it is valid. Raises
    ValueError for an unknown keyword."""
    unknown = set(schema) - _KNOWN
    if unknown:
        raise ValueError(f"{where}: keywords not implemented: {sorted(unknown)}")
    names = schema.get("type", [])
    names = [names] if isinstance(names, str) else names
    if names and not any(_is(value, name) for name in names):
        return [f"{where} is {value!r}, not {' or '.join(names)}"]
    problems = []
    if "const" in schema and value != schema["const"]:
        problems.append(f"{where} is {value!r}, not {schema['const']!r}")
    if "enum" in schema and value not in schema["enum"]:
        problems.append(f"{where} is {value!r}, not one of {schema['enum']}")
    if "minimum" in schema and _is(value, "number") and not value >= schema["minimum"]:
        problems.append(f"{where} is {value!r}, below {schema['minimum']}")
    if "maximum" in schema and _is(value, "number") and not value <= schema["maximum"]:
        problems.append(f"{where} is {value!r}, above {schema['maximum']}")
    if "minLength" in schema and _is(value, "string") and len(value) < schema["minLength"]:
        problems.append(f"{where} is too short")
    if isinstance(value, dict):
        problems.extend(_object_errors(value, schema, where))
    if isinstance(value, list) and "items" in schema:
        for index, item in enumerate(value):
            problems.extend(errors(item, schema["items"], f"{where}[{index}]"))
    return problems


def _object_errors(value: Dict[str, Any], schema: Dict[str, Any], where: str) -> List[str]:
    properties = schema.get("properties", {})
    problems = [
        f"{where}.{key} is missing" for key in schema.get("required", []) if key not in value
    ]
    others = schema.get("additionalProperties", True)
    for key, item in value.items():
        if key in properties:
            problems.extend(errors(item, properties[key], f"{where}.{key}"))
        elif isinstance(others, dict):
            problems.extend(errors(item, others, f"{where}.{key}"))
        elif others is False:
            problems.append(f"{where}.{key} is not in the schema")
    return problems
