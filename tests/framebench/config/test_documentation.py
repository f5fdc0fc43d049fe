"""Schemas and generated tables of the configuration agree with its models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from framebench.config import documentation
from framebench.config.cluster import Cluster
from framebench.config.keys import Keys
from framebench.config.settings import Configuration
from framebench.config.suite import SuiteFile
from framebench.config.suite_axes import MatrixKeys
from framebench.config.tuned import TunedFile, TunedSetting
from framebench.tables import legend

from ..settings import CONFIG, ROOT, SUITE

WRITE = "in workflow/: ../.venv/bin/python -m framebench.config.documentation"
SCHEMAS = {
    Path(name).name.partition(".")[0]: yaml.load((ROOT / name).read_text(), yaml.CSafeLoader)
    for name in documentation.SCHEMAS
}


@pytest.mark.parametrize("name", documentation.SCHEMAS)
def test_the_committed_schema_is_what_models_and_documents_say(name: str) -> None:
    expected = documentation.schema(documentation.SCHEMAS[name])
    assert (ROOT / name).read_text() == expected, f"written anew by: {WRITE}"


@pytest.mark.parametrize("name", sorted({*documentation.PAGES.values()}))
def test_generated_tables_of_a_page_are_up_to_date(name: str) -> None:
    assert (ROOT / name).read_text() == documentation.page(name), f"written anew by: {WRITE}"


def nodes(value: Any) -> list[dict[str, Any]]:
    """Return all mappings within a schema."""
    if isinstance(value, dict):
        return [value, *nodes(list(value.values()))]
    return [node for entry in value for node in nodes(entry)] if isinstance(value, list) else []


@pytest.mark.parametrize(
    "model", [Configuration, SuiteFile, MatrixKeys, Cluster, TunedFile, TunedSetting]
)
def test_every_key_has_one_text(model: type[Keys]) -> None:
    rows = documentation.key_tables()[model.__name__]
    explained = [key for row in rows for key in next(iter(row.values())).split(", ")]
    assert sorted(explained) == sorted(model.model_fields)


@pytest.mark.parametrize("name", SCHEMAS)
def test_an_editor_can_use_the_schema(name: str) -> None:
    schema = SCHEMAS[name]
    jsonschema.Draft202012Validator.check_schema(schema)
    assert all(node["enum"] for node in nodes(schema) if "enum" in node)
    assert "](" not in str(schema), "an editor follows no link"
    for key, about in schema["properties"].items():
        assert about["description"], key
        assert ("default" in about) != (key in schema.get("required", ())), key


@pytest.mark.parametrize("path", sorted((ROOT / "config" / "suites").glob("*.yaml")))
def test_an_editor_accepts_the_suites_that_ship(path: Path) -> None:
    jsonschema.validate(yaml.safe_load(path.read_text()), SCHEMAS["suite"])


@pytest.mark.parametrize(
    ("schema", "data"),
    [
        ("suite", {**SUITE, "repeat": 3}),
        ("suite", {**SUITE, "axes": {**SUITE["axes"], "nodes": [0]}}),
        ("config", {"time_limit": 0}),
    ],
)
def test_an_editor_refuses_what_the_workflow_refuses(schema: str, data: dict[str, Any]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(data, SCHEMAS[schema])


def test_the_configuration_that_ships_is_the_defaults() -> None:
    jsonschema.validate(CONFIG, SCHEMAS["config"])
    defaults = {name: field.default for name, field in Configuration.model_fields.items()}
    assert {name: value for name, value in defaults.items() if value is not None} == CONFIG


def test_every_suite_has_a_machine_that_it_is_for() -> None:
    page = "".join((ROOT / "docs" / f"{name}.md").read_text() for name in ("suites", "reproduce"))
    suites = [path.stem for path in (ROOT / "config" / "suites").glob("*.yaml")]
    assert [name for name in suites if f"`{name}`" not in page] == []


def test_every_mark_has_something_to_do_about_it() -> None:
    page = (ROOT / "docs" / "reading.md").read_text()
    assert [flag for flag in legend.FLAGS if f"| `{flag}` |" not in page] == []
