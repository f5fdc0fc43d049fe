"""Schemas and tables of the documentation agree with what they describe."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml
from core import precisions
from framebench.config import schemas
from framebench.config.cluster import Cluster
from framebench.config.gpu_environments import PTX_DRIVERS
from framebench.config.keys import Keys
from framebench.config.settings import Configuration
from framebench.config.suite import SuiteFile
from framebench.config.suite_axes import MatrixKeys
from framebench.config.tuned import TunedFile, TunedSetting
from framebench.tables import legend

from ..settings import CONFIG, ROOT, SUITE

WRITE = "in workflow/: ../.venv/bin/python -m framebench.config.schemas"
SCHEMAS = {
    Path(name).name.partition(".")[0]: yaml.load((ROOT / name).read_text(), yaml.CSafeLoader)
    for name in schemas.SCHEMAS
}


@pytest.mark.parametrize("name", schemas.SCHEMAS)
def test_the_committed_schema_is_what_models_and_documents_say(name: str) -> None:
    expected = schemas.schema(schemas.SCHEMAS[name])
    assert (ROOT / name).read_text() == expected, f"written anew by: {WRITE}"


@pytest.mark.parametrize(
    "model", [Configuration, SuiteFile, MatrixKeys, Cluster, TunedFile, TunedSetting]
)
def test_every_key_has_a_row_on_its_page(model: type[Keys]) -> None:
    assert sorted(schemas.key_texts(model.__name__)) == sorted(model.model_fields)


@pytest.mark.parametrize("path", sorted((ROOT / "config" / "suites").glob("*.yaml")))
def test_an_editor_accepts_the_suites_that_ship(path: Path) -> None:
    jsonschema_rs.validate(SCHEMAS["suite"], yaml.safe_load(path.read_text()))


@pytest.mark.parametrize(
    ("schema", "data"),
    [
        ("suite", {**SUITE, "repeat": 3}),
        ("suite", {**SUITE, "axes": {**SUITE["axes"], "nodes": [0]}}),
        ("config", {"time_limit": 0}),
    ],
)
def test_an_editor_refuses_what_the_workflow_refuses(schema: str, data: dict[str, Any]) -> None:
    with pytest.raises(jsonschema_rs.ValidationError):
        jsonschema_rs.validate(SCHEMAS[schema], data)


def test_the_configuration_that_ships_is_the_defaults() -> None:
    jsonschema_rs.validate(SCHEMAS["config"], CONFIG)
    defaults = {name: field.default for name, field in Configuration.model_fields.items()}
    assert {name: value for name, value in defaults.items() if value is not None} == CONFIG


def test_the_page_on_gpus_has_each_environment_as_it_is() -> None:
    _, *rows = schemas.table("docs/gpus.md", "gpu_environments")
    with (ROOT / "envs" / "capabilities.csv").open() as file:
        known = list(csv.DictReader(file))
    for own, row in zip(known, rows, strict=True):
        *facts, code, ptx = row
        assert facts == [
            f"`{own['environment']}`", own["version"], own["cuda"], own["minimum_driver"]
        ]  # fmt: skip
        driver = f" (driver {PTX_DRIVERS[own['cuda']]})" if own["cuda"] in PTX_DRIVERS else ""
        assert ptx == (own["ptx"] and own["ptx"] + driver)
        assert code == (own["machine_code"] or "unknown")


def test_the_page_on_verification_has_the_bounds() -> None:
    (_, *names), *rows = schemas.table("docs/measuring.md", "bounds")
    known = precisions.known()
    assert names == [*known]
    written = {
        quantity: {name: float(cell or 0) for name, cell in zip(names, cells, strict=True)}
        for quantity, *cells in rows
    }
    bounds = {name: precision.bounds for name, precision in known.items()}
    for quantity, own in written.items():
        assert own == {name: bounds[name].get(quantity, 0) for name in names}, quantity
    assert {*written} == {quantity for own in bounds.values() for quantity in own}


def test_every_suite_has_a_machine_that_it_is_for() -> None:
    page = "".join((ROOT / "docs" / f"{name}.md").read_text() for name in ("suites", "reproduce"))
    suites = [path.stem for path in (ROOT / "config" / "suites").glob("*.yaml")]
    assert [name for name in suites if f"`{name}`" not in page] == []


def test_every_mark_has_something_to_do_about_it() -> None:
    page = (ROOT / "docs" / "reading.md").read_text()
    assert [flag for flag in legend.FLAGS if f"| `{flag}` |" not in page] == []
