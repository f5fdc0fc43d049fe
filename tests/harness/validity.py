"""Checks of a record: its validity and its outcome."""

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


def assert_outcome(record: Any, status: str, reason: str = "") -> None:
    """Fail if a record violates the schema, or if its status or reason differ from the given."""
    assert_valid(record)
    assert record["status"] == status, f"{record['status']} ({record['reason']}), not {status}"
    assert reason in record["reason"], f"{record['reason']!r} does not contain {reason!r}"
