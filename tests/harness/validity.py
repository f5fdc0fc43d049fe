"""Validity of a record."""

from __future__ import annotations

import json
from typing import Any

import fastjsonschema

from ..bench import ROOT


def assert_valid(record: dict[str, Any]) -> None:
    schema = json.loads((ROOT / "workflow/schemas/record.schema.json").read_text())
    fastjsonschema.compile({**schema, "$schema": "http://json-schema.org/draft-07/schema#"})(record)
