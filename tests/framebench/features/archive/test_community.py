"""Archives in results/community hold valid records without names, and are listed."""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path

import jsonschema_rs
import pytest
from framebench.features.archive import contents

ROOT = Path(__file__).parents[4]
FOLDER = ROOT / "results" / "community"
SCHEMA = jsonschema_rs.validator_for(
    json.loads((ROOT / "workflow/schemas/record.schema.json").read_text())
)
ARCHIVES = sorted(FOLDER.glob("*.zip"))


@pytest.mark.parametrize("path", ARCHIVES, ids=lambda path: path.name)
def test_an_archive_is_redacted_and_listed(path: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        names = [name for name in archive.namelist() if re.match(r"runs/.*\.json$", name)]
        records = [json.loads(archive.read(name)) for name in names]
    for record in records:
        SCHEMA.validate(record)
        assert contents.HandedOn([]).record(record) == record, "it has what --redact leaves out"
    hardware = records[0]["environment"]["hardware"]
    device = hardware["gpus"][0]["name"] if hardware["gpus"] else hardware["cpu"]
    last_day = max(record["started"][:10] for record in records)
    suite = path.name.partition("-")[0]
    row = f"| `{path.name}` | {device} | {suite} | {len(records)} | {last_day} |"
    assert row in (FOLDER / "README.md").read_text().splitlines()
