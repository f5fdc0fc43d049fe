"""Table of formats for docs/formats.md, generated from the declarations."""

from __future__ import annotations

from collections.abc import Sequence

from .format import Format
from .registry import known

OUT = ("format", "file", "written for", "content", "flags", "left out")
IN = ("format", "file", "written by", "imported", "not imported", "missing in its files")


def text() -> str:
    """Return the tables of export and import formats in Markdown, each below its heading."""
    forms = known().values()
    out = [
        (f"`{one.name}`", f"`{one.suffix}`", one.tool, one.holds, one.flags, one.lost)
        for one in forms
        if one.write
    ]
    read = [
        (f"`{one.name}`", _files(one), one.tool, one.taken, one.not_taken, one.missing)
        for one in forms
        if one.read
    ]
    return f"### Out\n\n{_table(OUT, out)}\n### In\n\n{_table(IN, read)}"


def _files(form: Format) -> str:
    return ", ".join(f"`{suffix}`" for suffix in (form.suffix, *form.others))


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
