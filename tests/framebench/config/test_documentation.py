"""What editors and documents say of the configuration's keys is what the models say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from core import precisions
from framebench.config import documentation
from framebench.config.cluster import Cluster
from framebench.config.fields import Keys
from framebench.config.settings import Configuration
from framebench.config.suite import AxesKeys, SuiteFile
from framebench.tables import legend

from ..settings import CONFIG, ROOT, SUITE

WRITE = "in workflow/: ../.venv/bin/python -m framebench.config.documentation"
SCHEMAS = {
    Path(name).name.partition(".")[0]: yaml.safe_load((ROOT / name).read_text())
    for name in documentation.SCHEMAS
}


def nodes(value: Any) -> list[dict[str, Any]]:
    """All mappings within a schema."""
    if isinstance(value, dict):
        return [value, *nodes(list(value.values()))]
    return [node for one in value for node in nodes(one)] if isinstance(value, list) else []


@pytest.mark.parametrize("name", documentation.SCHEMAS)
def test_the_committed_schema_is_what_models_and_documents_say(name: str) -> None:
    expected = documentation.schema(documentation.SCHEMAS[name])
    assert (ROOT / name).read_text() == expected, f"written anew by: {WRITE}"


@pytest.mark.parametrize(
    ("document", "models"),
    [("config/README.md", [Configuration, SuiteFile, AxesKeys]), ("docs/cluster.md", [Cluster])],
)
def test_no_table_explains_a_key_that_is_none(document: str, models: list[type[Keys]]) -> None:
    text = (ROOT / document).read_text()
    tables = re.findall(r"^\| (?:key|axis) \|.*\n((?:\|.*\n)+)", text, re.M)
    named = re.findall(r"^\| (`[^|]*) \|", "".join(tables), re.M)
    explained = re.findall(r"`(\w+)`", " ".join(named))
    assert sorted(explained) == sorted(key for model in models for key in model.key_names())


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
    "suite",
    [
        {**SUITE, "axes": {**SUITE["axes"], "mode": "train", "batch_per_device": "max"}},
        {**SUITE, "repeats": {"at_least": 7, "at_most": 30, "width": "1%"}},
        {**SUITE, "variants": {"a": None, "b": {"variables": {"A": 1}}}},
    ],
)
def test_an_editor_accepts_short_forms(suite: dict[str, Any]) -> None:
    jsonschema.validate(suite, SCHEMAS["suite"])


@pytest.mark.parametrize(
    ("schema", "data"),
    [
        ("suite", {**SUITE, "repeat": 3}),
        ("suite", {**SUITE, "repeats": {"at_least": 7}}),
        ("suite", {**SUITE, "axes": {**SUITE["axes"], "nodes": [0]}}),
        ("config", {"time_limit": 0}),
        ("config", {"fail_on": "5 percent"}),
        ("config", {"accelerator": "tpu"}),
    ],
)
def test_an_editor_refuses_what_the_workflow_refuses(schema: str, data: dict[str, Any]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(data, SCHEMAS[schema])


def test_the_configuration_that_ships_is_the_defaults() -> None:
    jsonschema.validate(CONFIG, SCHEMAS["config"])
    defaults = {name: field.default for name, field in Configuration.model_fields.items()}
    assert {name: value for name, value in defaults.items() if value is not None} == CONFIG


def test_the_bounds_of_the_page_are_those_that_are_checked() -> None:
    text = (ROOT / "docs" / "measuring.md").read_text()
    (table,) = re.findall(r"^\| quantity \|.*\n(?:\|.*\n)+", text, re.M)
    rows = [[cell.strip() for cell in row.split("|")[1:-1]] for row in table.splitlines()]
    names = dict.fromkeys(rows[0][1:-1])
    assert set(names) == set(precisions.known())
    worst, total = ": the worst", ", all together"
    quantities = {
        "outputs, loss": ["outputs", "loss"],
        f"gradients{worst} parameter{total}": ["gradients", "gradients, total"],
        f"first update{worst} parameter{total}": ["first update", "first update, total"],
        f"running statistics after it{worst}{total}": [
            "running statistics",
            "running statistics, total",
        ],
        "losses over five steps": ["losses"],
    }
    written: dict[str, dict[str, float]] = {name: {} for name in names}
    for row in rows[1:]:
        for name, cell in zip(names, row[1:-1], strict=True):
            bounds = (
                [float(one) for one in cell.split(", ")] if row[0] in quantities and cell else []
            )
            for position, quantity in enumerate(quantities.get(row[0], ())):
                if bounds:  # one number is that of both
                    written[name][quantity] = bounds[min(position, len(bounds) - 1)]
    assert written == {name: dict(one.bounds) for name, one in precisions.known().items()}


def test_every_suite_has_a_machine_that_it_is_for() -> None:
    page = (ROOT / "docs" / "operations.md").read_text()
    suites = [path.stem for path in (ROOT / "config" / "suites").glob("*.yaml")]
    assert [name for name in suites if f"`{name}`" not in page] == []


def test_every_mark_has_something_to_do_about_it() -> None:
    page = (ROOT / "docs" / "reading-a-report.md").read_text()
    assert [mark for mark in legend.FLAGS if f"| `{mark}` |" not in page] == []


def test_the_table_of_keys_has_their_bounds() -> None:
    """In the column of values: the least and the most, as the messages have them."""
    text = (ROOT / "config" / "README.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| ([^|]*) \|", text, re.MULTILINE))
    shown = {key: values.replace("10^12", str(10**12)) for key, values in rows.items()}
    properties = SCHEMAS["config"]["properties"]
    lacking = [
        f"{key}: {bound}"
        for key, about in properties.items()
        for node in nodes({**about, "description": ""})
        for kind in ("minimum", "maximum")
        if (bound := node.get(kind)) is not None and f"{bound:g}" not in shown[key]
        if f"{bound:.0f}" not in shown[key]
    ]
    assert not lacking
