"""Schemas for editors: ``python -m framebench.config.schemas``, in ``workflow/``, writes them.

Descriptions of keys are those in the tables of the documentation.
"""

from __future__ import annotations

import re
from typing import Any

import yaml
from core import bounded
from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema

from .. import PROJECT
from .settings import Configuration
from .suite import SuiteFile

SCHEMAS: dict[str, type[BaseModel]] = {
    "workflow/schemas/config.schema.yaml": Configuration,
    "workflow/schemas/suite.schema.yaml": SuiteFile,
}
#: Page with the table of a model's keys, between comments with its name.
PAGES = {
    "Configuration": "config/README.md",
    "MatrixKeys": "config/README.md",
    "SuiteFile": "config/README.md",
    "Cluster": "docs/cluster.md",
    "TunedFile": "docs/frameworks.md",
    "TunedSetting": "docs/frameworks.md",
}
_LINK = re.compile(r"\[([^][]+)\]\([^()]*\)")


class _Schema(GenerateJsonSchema):
    """Schema generator without titles, which repeat the names of keys."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def table(page: str, name: str) -> list[list[str]]:
    """Return the cells of a page's table between the comments ``<!-- NAME -->`` and
    ``<!-- /NAME -->``, its head first."""
    _, _, text = bounded.read_text(PROJECT / page).partition(f"<!-- {name} -->\n")
    head, _, *rows = text.partition(f"<!-- /{name} -->")[0].strip().splitlines()
    return [[cell.strip() for cell in row.strip("|").split(" | ")] for row in (head, *rows)]


def key_texts(model: str) -> dict[str, str]:
    """Return the description of each key of a model: the last cell of its row."""
    _, *rows = table(PAGES[model], model)
    return {key.strip("`"): row[-1] for row in rows for key in row[0].split(", ")}


def schema(model: type[BaseModel]) -> str:
    """Return the JSON schema of a model as YAML. Raises KeyError for a key without a text."""
    generated = model.model_json_schema(schema_generator=_Schema)
    for name, part in {model.__name__: generated, **generated["$defs"]}.items():
        texts = key_texts(name) if name in PAGES else {}
        for key, about in part["properties"].items() if texts else ():
            about["description"] = _LINK.sub(r"\1", texts[key])
    dialect = {"$schema": GenerateJsonSchema.schema_dialect}
    text = yaml.safe_dump({**dialect, **generated}, sort_keys=False, allow_unicode=True, width=100)
    return f"# Written by framebench.config.schemas.\n{text}"


if __name__ == "__main__":
    for file, described in SCHEMAS.items():
        (PROJECT / file).write_text(schema(described), encoding="utf-8")
