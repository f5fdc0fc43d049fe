"""Tables in the layout of other projects, as Markdown. A layout is a YAML file.

Its ``tables`` have these keys, which ``defaults`` may have for all of them:

- ``title``: may name columns of the first row, such as ``{table}``.
- ``of``: ``cases``, the measured cases, or ``printed``, the cells of ``published.csv``.
- ``where``: pattern, or patterns, that the value of a column has to match.
- ``each``: columns; each combination of their values has its own table.
- ``row``: columns that make up a row.
- ``columns``: heading -> column with the value; or ``printed``, the printed cells with this
  heading; or a mapping with ``value``, ``where``, ``join`` (text between several values),
  ``format``, and ``over``: changed fields of the case by whose figure this one is divided. The
  heading ``*`` stands for all other printed headings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from ...cases.conditions import KEYS
from ...config.keys import read_mapping
from ...config.validation import ConfigError
from ...records import record_sets
from ...tables import frames
from ...tables.columns import Row
from ...tables.formatting import MISSING, escape
from ...tables.table import frame_rows
from .published import PUBLISHED_NAME, read_cells

FOLDER = Path(__file__).parent / "layouts"
_KEYS = {"title", "of", "where", "each", "row", "columns"}
#: Names of the precisions that are not mixed, as NVIDIA prints them.
_FULL = {"tf32": "TF32", "fp32": "FP32"}


def find(name: str) -> Path:
    """Return the file of a layout. Raises ConfigError for an unknown one."""
    known = {path.stem: path for path in sorted(FOLDER.glob("*.yaml"))}
    if name in known:
        return known[name]
    if not name.endswith(".yaml"):
        raise ConfigError(f"layout: found {name!r}; allowed: {', '.join(known)}, or a YAML file")
    return Path(name)


def draw(layout: Path, records: Path) -> str:
    """Return the tables of a layout as Markdown.

    Raises ConfigError for an invalid layout, RecordsError for records that cannot be read."""
    settings = read_mapping(layout)
    lines = [f"# {settings.get('title', layout.stem)}", ""]
    rows: dict[str, Sequence[Row]] = {}
    for own in settings.get("tables", ()):
        table = {**settings.get("defaults", {}), **own}
        if unknown := {*table} - _KEYS:
            raise ConfigError(f"{layout}: tables: found {sorted(unknown)}; allowed: {_KEYS}")
        of = table["of"]
        if of not in rows:
            if of == "printed":
                rows[of] = _printed(records)
            else:
                inputs, _ = frames.inputs_of(record_sets.load(records), records)
                rows[of] = frame_rows(inputs.frame)
        lines += _tables(table, rows[of])
    return "\n".join(lines).rstrip() + "\n"


def _printed(records: Path) -> Sequence[Row]:
    """Return the printed cells as rows, with each ``name=value`` of a variant as a column."""
    rows = []
    for cell in read_cells(records / PUBLISHED_NAME):
        parts = (part.partition("=") for part in cell["variant"].split(";"))
        rows.append({**{name: value for name, sign, value in parts if sign}, **cell})
    return rows


def _tables(table: Mapping[str, Any], rows: Sequence[Row]) -> Iterator[str]:
    chosen = _matching(rows, table.get("where", {}))
    lookup = {tuple(row.get(name) for name in KEYS): row for row in rows}
    for part in _grouped(chosen, table.get("each", ())):
        yield f"## {escape(table['title'].format_map(part[0]))}"
        yield ""
        headings = _headings(table["columns"], part)
        yield from frames.grid(
            [escape(heading) for heading, _ in headings],
            (
                [_cell(heading, spec, some, lookup) for heading, spec in headings]
                for some in _grouped(part, table["row"])
            ),
        )
        yield ""


def _matching(rows: Sequence[Row], where: Mapping[str, Any]) -> list[Row]:
    patterns = {
        name: value if isinstance(value, list) else [value] for name, value in where.items()
    }
    return [
        row
        for row in rows
        if all(
            any(fnmatchcase(str(row.get(name, "")), str(one)) for one in some)
            for name, some in patterns.items()
        )
    ]


def _grouped(rows: Sequence[Row], names: Sequence[str]) -> list[list[Row]]:
    """Return the rows by the values of columns, in the order of their first rows."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row.get(name) for name in names), []).append(row)
    return list(groups.values())


def _headings(columns: Mapping[str, Any], rows: Sequence[Row]) -> list[tuple[str, Any]]:
    """Return headings with their columns; ``{full}`` is replaced by the precision that is not
    mixed."""
    full = next((_FULL[row["precision"]] for row in rows if row["precision"] in _FULL), "")
    named = {heading.replace("{full}", full): spec for heading, spec in columns.items()}
    others = dict.fromkeys(_heading(row) for row in rows)
    made: list[tuple[str, Any]] = []
    for heading, spec in named.items():
        if heading == "*":
            made += [(other, spec) for other in others if other not in named]
        elif spec != "printed" or heading in others:
            made.append((heading, spec))
    return made


def _heading(row: Row) -> str:
    """Return the heading of a printed cell, without the part after a colon, which tells figures of
    one cell apart."""
    return str(row.get("column", "")).partition(": ")[0]


def _cell(heading: str, spec: Any, rows: Sequence[Row], lookup: Mapping[Any, Row]) -> str:
    if spec == "printed":
        cells = [row for row in rows if _heading(row) == heading]
        separator = " and " if any(row["column"] != heading for row in cells) else " / "
        return escape(separator.join(row["printed"] for row in cells)) or MISSING
    given = spec if isinstance(spec, dict) else {"value": spec}
    some = _matching(rows, given.get("where", {}))
    values = [_figure(row, given, lookup) for row in some]
    texts = [given.get("format", "{}").format(value) for value in values if value is not None]
    flags = {flag for row in some for flag in str(row.get("flags", "")).split()}
    marks = "".join(f" *{flag}*" for flag in sorted(flags)) if "format" in given else ""
    text = given.get("join", " / ").join(dict.fromkeys(texts))
    return (escape(text) or MISSING) + marks * bool(text)


def _figure(row: Row, given: Mapping[str, Any], lookup: Mapping[Any, Row]) -> Any:
    """Return a row's value, or with ``over`` its ratio to another case's; None if it is missing."""
    value = row.get(given["value"])
    if "over" not in given or value is None:
        return value
    other = lookup.get(tuple({**row, **given["over"]}.get(name) for name in KEYS), {})
    base = other.get(given["value"])
    return value / base if base else None
