"""Validity of a record."""

from __future__ import annotations

import json
from typing import Any

import jsonschema_rs

from ..bench import ROOT


def assert_valid(record: dict[str, Any]) -> None:
    schema = json.loads((ROOT / "workflow/schemas/record.schema.json").read_text())
    jsonschema_rs.validator_for(schema).validate(record)
