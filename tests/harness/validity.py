"""Validity of a record, and of a part of one."""

from __future__ import annotations

import json
from typing import Any

import jsonschema_rs

from ..bench import ROOT


def assert_valid(record: Any, *part: str) -> None:
    """Fail if a record, or the value of ``part`` in one, violates the schema."""
    whole = json.loads((ROOT / "workflow/schemas/record.schema.json").read_text())
    schema = whole
    for key in part:
        schema = schema["properties"][key]
    definitions = {"$defs": whole.get("$defs", {})}
    jsonschema_rs.validator_for({**schema, **definitions}).validate(record)
