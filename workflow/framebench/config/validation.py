"""Data and its schema in, clear errors out: each names the file, the key, what was found and what
is allowed."""

from __future__ import annotations

import copy
import difflib
import math
import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import yaml
from jsonschema.exceptions import ValidationError, best_match

SCHEMAS = Path(__file__).parents[2] / "schemas"


class ConfigError(ValueError):
    """Bad input; the message is meant for the user and names file, key, found and allowed."""


@cache
def _schema_of(name: str) -> Any:
    return yaml.safe_load((SCHEMAS / name).read_text())


def load_schema(name: str, choices: Mapping[str, Iterable[str]]) -> dict[str, Any]:
    """A schema of ``workflow/schemas`` whose ``$defs`` named in ``choices`` get these enums."""
    schema: dict[str, Any] = copy.deepcopy(_schema_of(name))
    for definition, values in choices.items():
        if definition in schema["$defs"]:
            schema["$defs"][definition]["enum"] = list(values)
    return schema


def _is_whole(_: Any, value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(_: Any, value: Any) -> bool:
    return _is_whole(_, value) or (isinstance(value, float) and math.isfinite(value))


#: Stricter than the standard: 2.0 is no whole number, and neither "nan" nor "inf" is a number.
_Validator = jsonschema.validators.extend(  # type: ignore[no-untyped-call]
    jsonschema.Draft202012Validator,
    type_checker=jsonschema.Draft202012Validator.TYPE_CHECKER.redefine_many(
        {"integer": _is_whole, "number": _is_number}
    ),
)


def from_text(value: Any, schema: Mapping[str, Any]) -> Any:
    """What a text says where the schema allows no text: on the command line all that is within
    lists and mappings, and true and false, arrive as texts."""
    kinds = schema.get("type", ())
    kinds = {kinds} if isinstance(kinds, str) else set(kinds)
    if isinstance(value, Mapping):
        known = schema.get("properties", {})
        return {key: from_text(inner, known.get(key, {})) for key, inner in value.items()}
    if not isinstance(value, str):
        return value
    if "boolean" in kinds and value.lower() in ("true", "false"):
        return value.lower() == "true"
    if "null" in kinds and value == "null":
        return None
    if kinds & {"integer", "number"} and re.fullmatch(r"[-+]?[0-9]{1,18}", value):
        return int(value)
    if "number" in kinds and "string" not in kinds and _NUMBER.fullmatch(value):
        return float(value)
    return value


_NUMBER = re.compile(r"[-+]?[0-9]{1,18}([.][0-9]{1,18})?([eE][-+]?[0-9]{1,4})?")


def check(data: Any, schema: dict[str, Any], source: str) -> None:
    """Raise :class:`ConfigError` with one line per fault, the gravest first."""
    validator = _Validator(schema)
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
    found = f"{key or 'the file'}: found {show(error.instance)}"
    if rule == "enum":
        return f"{found}{_did_you_mean(error.instance, wanted)}; allowed: {_choices(wanted)}"
    return f"{found}; allowed: {_allowed(error)}"


def _schema(error: ValidationError) -> Any:
    return error.schema


def _wanted(error: ValidationError) -> Any:
    return error.validator_value


def _allowed(error: ValidationError) -> str:
    """What the schema calls it (its title), else what the rule says."""
    rule, wanted = str(error.validator), _wanted(error)
    if error.absolute_path and "title" in _schema(error):
        return str(_schema(error)["title"])
    if rule == "anyOf":
        return " or ".join(dict.fromkeys(_schema_words(part) for part in wanted))
    if rule == "type":
        return _type_words(wanted)
    plain = {
        "minimum": f"a number of at least {wanted}",
        "maximum": f"a number of at most {wanted}",
        "exclusiveMinimum": f"a number above {wanted}",
        "exclusiveMaximum": f"a number below {wanted}",
        "minItems": f"at least {wanted} value(s)",
        "minProperties": f"at least {wanted} key(s)",
        "minLength": "a text that is not empty",
        "maxLength": f"a text of at most {wanted} characters",
        "uniqueItems": "each value once",
        "not": "another",
    }
    return plain.get(rule, f"{rule} {wanted}")


def _schema_words(part: dict[str, Any]) -> str:
    if "title" in part:
        return str(part["title"])
    if "const" in part:
        return str(part["const"])
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
        "null": "nothing",
    }
    return words.get(kind, kind) if isinstance(kind, str) else " or ".join(map(_type_words, kind))


def _key(path: Iterable[str | int]) -> str:
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else (f".{part}" if text else str(part))
    return text


def _join(key: str, name: Any) -> str:
    return f"{key}.{name}" if key else str(name)


def show(value: Any) -> str:
    """As it stands in a message, cut where it is long."""
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _choices(values: Iterable[Any]) -> str:
    return ", ".join(map(str, values)) or "nothing (none is installed)"


def _did_you_mean(found: Any, allowed: Iterable[Any]) -> str:
    close = difflib.get_close_matches(str(found), [str(value) for value in allowed], n=1)
    return f" (did you mean {close[0]}?)" if close else ""
