"""Archives in results/community hold valid records without names, and are listed."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from framebench.features.archive import contents

ROOT = Path(__file__).parents[4]
FOLDER = ROOT / "results" / "community"
SCHEMA = jsonschema_rs.validator_for(
    json.loads((ROOT / "workflow/schemas/record.schema.json").read_text())
)
ARCHIVES = sorted(FOLDER.glob("*.zip"))


def is_record(name: str) -> bool:
    return name.startswith("runs/") and name.endswith(".json")


def check(path: Path) -> list[dict[str, Any]]:
    """Fail for an archive that must not be taken; return its records of runs."""
    with zipfile.ZipFile(path) as archive:
        names = [name for name in archive.namelist() if is_record(name)]
        records = [json.loads(archive.read(name)) for name in names]
    for record in records:
        SCHEMA.validate(record)
        again = contents.HandedOn([]).record(record)
        assert again == record, "it holds what --redact leaves out"
    return records


def row_of(path: Path, records: list[dict[str, Any]]) -> str:
    hardware = records[0]["environment"]["hardware"]
    device = hardware["gpus"][0]["name"] if hardware["gpus"] else hardware["cpu"]
    days = sorted(record["started"][:10] for record in records)
    suite = path.name.partition("-")[0]
    return f"| `{path.name}` | {device} | {suite} | {len(records)} | {days[-1]} |"


@pytest.mark.parametrize("path", ARCHIVES, ids=lambda path: path.name)
def test_an_archive_is_redacted_and_listed(path: Path) -> None:
    records = check(path)
    assert row_of(path, records) in (FOLDER / "README.md").read_text().splitlines()


def test_an_archive_that_names_a_user_is_refused(tmp_path: Path) -> None:
    spoiled = tmp_path / "spoiled.zip"
    with zipfile.ZipFile(ARCHIVES[0]) as archive, zipfile.ZipFile(spoiled, "w") as other:
        name = next(filter(is_record, archive.namelist()))
        record = json.loads(archive.read(name))
        other.writestr(name, json.dumps({**record, "command": ["/home/alice/bin/python"]}))
    with pytest.raises(AssertionError, match="leaves out"):
        check(spoiled)
