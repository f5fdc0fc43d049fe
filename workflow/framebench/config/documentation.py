"""Schemas for editors and generated tables of the documentation.

``python -m framebench.config.documentation``, in ``workflow/``, writes them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import yaml
from core import axes, bounded, precisions
from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema

from .. import PROJECT
from .gpu_environments import PTX_DRIVERS, load
from .settings import Configuration
from .suite import SuiteFile

SCHEMAS: dict[str, type[BaseModel]] = {
    "workflow/schemas/config.schema.yaml": Configuration,
    "workflow/schemas/suite.schema.yaml": SuiteFile,
}
#: Page of each generated table: by the name of a pydantic model, or of a function below.
PAGES = {
    "Configuration": "config/README.md",
    "MatrixKeys": "config/README.md",
    "SuiteFile": "config/README.md",
    "Cluster": "docs/cluster.md",
    "TunedFile": "docs/frameworks.md",
    "TunedSetting": "docs/frameworks.md",
    "gpu_environments": "docs/gpus.md",
    "bounds": "docs/measuring.md",
}
_KEY_TEXTS = PROJECT / "workflow" / "framebench" / "config" / "key_texts.yaml"
_LINK = re.compile(r"\[([^][]+)\]\([^()]*\)")


class _Schema(GenerateJsonSchema):
    """Schema generator without titles, which repeat the names of keys."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


@cache
def key_tables() -> dict[str, list[dict[str, str]]]:
    """Return the table of keys of each model, by its name: the cells of each row, by header.

    The first cell of a row names its keys, separated by commas; the last is their description."""
    tables: dict[str, list[dict[str, str]]] = yaml.safe_load(bounded.read_text(_KEY_TEXTS))
    tables["MatrixKeys"] += [
        {"axis": axis.name, "default": f"`[{axis.default}]`", "values": axis.values}
        for axis in axes.optional()
    ]
    return tables


def schema(model: type[BaseModel]) -> str:
    """Return the JSON schema of a model as YAML. Raises KeyError for a key without a text."""
    generated = model.model_json_schema(schema_generator=_Schema)
    for name, part in {model.__name__: generated, **generated["$defs"]}.items():
        rows = [[*row.values()] for row in key_tables().get(name, ())]
        texts = {key: row[-1] for row in rows for key in row[0].split(", ")}
        for key, about in part["properties"].items() if texts else ():
            about["description"] = _LINK.sub(r"\1", texts[key])
    dialect = {"$schema": GenerateJsonSchema.schema_dialect}
    text = yaml.safe_dump({**dialect, **generated}, sort_keys=False, allow_unicode=True, width=100)
    return f"# Written by framebench.config.documentation.\n{text}"


def page(name: str) -> str:
    """Return a documentation page with regenerated tables. ``name``: path in the project.

    Raises ValueError for a page without the comments around a table.
    """
    text = bounded.read_text(PROJECT / name)
    for block in (block for block, where in PAGES.items() if where == name):
        table = _TABLES[block]() if block in _TABLES else _key_table(block)
        text = _with_table(text, block, table)
    return text


def _with_table(text: str, name: str, table: str) -> str:
    """Return ``text`` with ``table`` between the lines ``<!-- NAME -->`` and ``<!-- /NAME -->``."""
    begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    found = re.findall(rf"^{begin}\n.*?^{end}$", text, re.MULTILINE | re.DOTALL)
    if len(found) != 1:
        raise ValueError(f"found no lines {begin} and {end}; allowed: each once, in this order")
    return text.replace(found[0], f"{begin}\n\n{table}\n\n{end}")


def _key_table(model: str) -> str:
    """Return the table of a model's keys as Markdown."""
    rows = [
        (f"`{key.replace(', ', '`, `')}`", *cells)
        for key, *cells in (row.values() for row in key_tables()[model])
    ]
    return _markdown([[*key_tables()[model][0]], *rows])


def _bounds() -> str:
    """Return a Markdown table of the largest relative errors, by quantity and precision."""
    known = precisions.known()
    quantities = dict.fromkeys(key for precision in known.values() for key in precision.bounds)
    rows = [("quantity", *known)]
    rows += [
        (key, *(_error(precision.bounds.get(key)) for precision in known.values()))
        for key in quantities
    ]
    return _markdown(rows)


def _error(bound: float | None) -> str:
    """Return a bound as text, empty for a quantity that is not compared."""
    if bound is None:
        return ""
    return f"{bound:.0e}".replace("e-0", "e-") if bound < 0.01 else f"{bound:g}"


def _gpu_environments() -> str:
    """Return a Markdown table of the environments for CUDA and the GPUs that they work on."""
    rows = [("environment", "version", "CUDA", "oldest driver", "machine code for", "PTX for")]
    for own in load(PROJECT):
        code, ptx = " ".join(own.machine_code), " ".join(own.ptx)
        if not code:  # nobody has read its wheels, which have no hashes for the same reason
            hashes = bounded.read_text(PROJECT / "envs" / f"{own.environment}.hashes.txt")
            code = "unknown: " + hashes.partition("\n")[0].removeprefix("# exempt: ")
        if ptx and own.cuda in PTX_DRIVERS:
            ptx += f" (driver {PTX_DRIVERS[own.cuda]})"
        rows.append((f"`{own.environment}`", own.version, own.cuda, own.minimum_driver, code, ptx))
    return _markdown(rows)


def _markdown(rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table; the first row is its header."""
    header, *others = rows
    lines = [header, ["---"] * len(header), *others]
    return "\n".join(f"| {' | '.join(row)} |" for row in lines)


_TABLES: Mapping[str, Callable[[], str]] = {
    "bounds": _bounds,
    "gpu_environments": _gpu_environments,
}

if __name__ == "__main__":
    for file, described in SCHEMAS.items():
        (PROJECT / file).write_text(schema(described), encoding="utf-8")
    for file in dict.fromkeys(PAGES.values()):
        (PROJECT / file).write_text(page(file), encoding="utf-8")
