"""The configuration's schemas for editors: the models, with what the documents say of each key.

``python -m framebench.config.documentation``, in ``workflow/``, writes them anew.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema

from ..files import bounded
from .settings import Configuration
from .suite import SuiteFile
from .tuned import TunedFile

PROJECT = Path(__file__).parents[3]
SCHEMAS: dict[str, type[BaseModel]] = {
    "workflow/schemas/config.schema.yaml": Configuration,
    "workflow/schemas/suite.schema.yaml": SuiteFile,
    "workflow/schemas/tuned.schema.yaml": TunedFile,
}
#: Where a table has a row for each key of a model: the document and, where it has tables of several
#: models, the heading that they stand under.
DOCUMENTS = {
    "Configuration": ("config/README.md", "# Configuration"),
    "SuiteFile": ("config/README.md", "## Suites"),
    "AxesKeys": ("config/README.md", "## Suites"),
    "Cluster": ("docs/cluster.md", ""),
    "TunedFile": ("docs/frameworks.md", ""),
    "TunedSetting": ("docs/frameworks.md", ""),
}


class _Schema(GenerateJsonSchema):
    """Titles are only those that say what is allowed."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def schema(model: type[BaseModel]) -> str:
    """The JSON schema of a model, as YAML. Raises KeyError for a key that no table explains."""
    generated = model.model_json_schema(schema_generator=_Schema)
    for name, part in {model.__name__: generated, **generated["$defs"]}.items():
        explained = meanings(*DOCUMENTS[name]) if name in DOCUMENTS else {}
        for key, about in part["properties"].items() if explained else ():
            about["description"] = explained[key]
    dialect = {"$schema": GenerateJsonSchema.schema_dialect}
    text = yaml.safe_dump({**dialect, **generated}, sort_keys=False, allow_unicode=True, width=100)
    return f"# Written by framebench.config.documentation from models and documents.\n{text}"


def meanings(document: str, heading: str = "") -> dict[str, str]:
    """What the last column of a document's tables, or of those under a heading, says of each key,
    which the first one names."""
    text = bounded.read_text(PROJECT / document)
    if heading:
        _, _, behind = f"\n{text}".partition(f"\n{heading}\n")
        text, _, _ = behind.partition("\n## ")
    lines = text.splitlines()
    rows = [line[2:-2].split(" | ") for line in lines if line.startswith("| `")]
    return {
        # An editor has no links to follow.
        key: re.sub(r"\[([^][]+)\]\([^()]*\)", r"\1", row[-1])
        for row in rows
        for key in re.findall(r"`(\w+)`", row[0])
    }


if __name__ == "__main__":
    for file, described in SCHEMAS.items():
        (PROJECT / file).write_text(schema(described), encoding="utf-8")
