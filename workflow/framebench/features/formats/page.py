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
        (f"`{form.name}`", f"`{form.suffix}`", form.tool, form.holds, form.flags, form.lost)
        for form in forms
        if form.write
    ]
    read = [
        (f"`{form.name}`", _files(form), form.tool, form.taken, form.not_taken, form.missing)
        for form in forms
        if form.read
    ]
    return f"### Out\n\n{_table(OUT, out)}\n### In\n\n{_table(IN, read)}"


def _files(form: Format) -> str:
    return ", ".join(f"`{suffix}`" for suffix in (form.suffix, *form.others))


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
