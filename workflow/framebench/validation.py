"""YAML in, clear errors out: each names the file, the key, what was found and what is allowed."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import jsonschema
import yaml
from jsonschema.exceptions import ValidationError, best_match

SCHEMAS = Path(__file__).parent.parent / "schemas"


class ConfigError(ValueError):
    """Bad input; the message is meant for the user and names file, key, found and allowed."""


class _StrictLoader(yaml.SafeLoader):
    """Refuses a key given twice, which YAML would resolve silently to the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, (str, int, float)) and key in seen:
                line = key_node.start_mark.line + 1
                raise yaml.MarkedYAMLError(problem=f"line {line}: key {key!r} is given twice")
            if isinstance(key, (str, int, float)):
                seen.add(key)
        return super().construct_mapping(node, deep)


def read_yaml(path: Path) -> Any:
    """Parse a YAML file. Raises :class:`ConfigError` if it cannot be read or parsed."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from None
    try:
        return yaml.load(text, _StrictLoader)
    except yaml.YAMLError as error:
        problem = " ".join(str(error).split())
        raise ConfigError(f"{path}: is not valid YAML: {problem}") from None


def load_schema(name: str, choices: Mapping[str, Iterable[str]]) -> dict[str, Any]:
    """A schema of ``workflow/schemas`` whose ``$defs`` named in ``choices`` get these enums."""
    schema: dict[str, Any] = yaml.safe_load((SCHEMAS / name).read_text())
    for definition, values in choices.items():
        if definition in schema["$defs"]:
            schema["$defs"][definition]["enum"] = list(values)
    return schema


def check(data: Any, schema: dict[str, Any], source: str) -> None:
    """Raise :class:`ConfigError` with one line per fault, the gravest first."""
    validator = jsonschema.Draft202012Validator(schema)
    errors = list(validator.iter_errors(data))
    if errors:
        lines = dict.fromkeys(f"{source}: {describe(_innermost(error))}" for error in errors)
        raise ConfigError("\n".join(lines))


def _innermost(error: ValidationError) -> ValidationError:
    """The part of an ``anyOf`` error that the user meant: the branch of the right type."""
    while error.context:
        typed = [e for e in error.context if e.validator not in ("const",)]
        deeper = [e for e in typed if len(e.absolute_path) > len(error.absolute_path)]
        not_types = [e for e in typed if e.validator != "type"]
        if not deeper and not not_types:
            return error
        inner = best_match(deeper or not_types)
        if inner is None:
            return error
        error = inner
    return error


def describe(error: ValidationError) -> str:
    """``key: found X; allowed: Y`` for one schema violation."""
    key = _key(error.absolute_path)
    rule, wanted = str(error.validator), _wanted(error)
    if rule == "additionalProperties" and isinstance(error.instance, dict):
        allowed = list(_schema(error).get("properties", {}))
        unknown = [name for name in error.instance if name not in allowed]
        return (
            f"unknown key {_join(key, unknown[0])}{_did_you_mean(unknown[0], allowed)}; "
            f"allowed: {', '.join(allowed)}"
        )
    if rule == "required" and isinstance(error.instance, dict):
        missing = [name for name in wanted if name not in error.instance]
        return f"key {_join(key, missing[0])} is missing"
    found = f"{key or 'the file'}: found {_show(error.instance)}"
    if rule == "enum":
        return f"{found}{_did_you_mean(error.instance, wanted)}; allowed: {_choices(wanted)}"
    return f"{found}; allowed: {_allowed(error)}"


def _schema(error: ValidationError) -> Any:
    return error.schema


def _wanted(error: ValidationError) -> Any:
    return error.validator_value


def _allowed(error: ValidationError) -> str:
    rule, wanted = str(error.validator), _wanted(error)
    if rule in ("type", "pattern") and error.absolute_path and "title" in _schema(error):
        return str(_schema(error)["title"])
    if rule == "anyOf":
        return " or ".join(dict.fromkeys(_schema_words(part) for part in wanted))
    if rule == "type":
        return _type_words(wanted)
    plain = {
        "minimum": f"a number of at least {wanted}",
        "maximum": f"a number of at most {wanted}",
        "exclusiveMinimum": f"a number above {wanted}",
        "minItems": f"at least {wanted} value(s)",
        "minProperties": f"at least {wanted} key(s)",
        "minLength": "a text that is not empty",
        "uniqueItems": "each value once",
        "pattern": "a path without { and }",
    }
    return plain.get(rule, f"{rule} {wanted}")


def _schema_words(part: dict[str, Any]) -> str:
    if "title" in part:
        return str(part["title"])
    if "const" in part:
        return str(part["const"])
    if "$ref" in part:
        return "a list of whole numbers" if part["$ref"].endswith("counts") else "a list of names"
    if part.get("type") == "object":
        return "a mapping from model to a list of whole numbers"
    if part.get("type") == "array":
        return "a list of names"
    return _type_words(part.get("type", "value")) + (
        f" of at least {part['minimum']}" if "minimum" in part else ""
    )


def _type_words(kind: str | list[str]) -> str:
    words = {
        "integer": "a whole number",
        "number": "a number",
        "string": "a text",
        "array": "a list",
        "object": "a mapping",
        "boolean": "true or false",
    }
    return words.get(kind, kind) if isinstance(kind, str) else " or ".join(map(_type_words, kind))


def _key(path: Iterable[str | int]) -> str:
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else (f".{part}" if text else str(part))
    return text


def _join(key: str, name: Any) -> str:
    return f"{key}.{name}" if key else str(name)


def _show(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _choices(values: Iterable[Any]) -> str:
    return ", ".join(map(str, values)) or "nothing (none is installed)"


def _did_you_mean(found: Any, allowed: Iterable[Any]) -> str:
    close = difflib.get_close_matches(str(found), [str(value) for value in allowed], n=1)
    return f" (did you mean {close[0]}?)" if close else ""
