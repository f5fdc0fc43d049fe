"""Registry of formats: every module in ``declared`` contributes its FORMATS."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from ...config.validation import ConfigError, did_you_mean
from . import declared
from .format import Format

#: Columns of the tables in docs/formats.md.
OUT = ("format", "file", "written for", "content", "flags", "left out")
IN = ("format", "file", "written by", "imported", "not imported", "missing in its files")


@cache
def known() -> Mapping[str, Format]:
    """Return all formats by name. Raises ValueError if two share a name."""
    modules = sorted(module.name for module in iter_modules(declared.__path__))
    formats: list[Format] = []
    for name in modules:
        formats += import_module(f"{declared.__name__}.{name}").FORMATS
    names = sorted(one.name for one in formats)
    if len({*names}) < len(names):
        raise ValueError(f"two formats have one name: {names}")
    return {one.name: one for one in sorted(formats, key=lambda one: one.name)}


def writer(name: str | None) -> Format:
    """Return the export format of this name. Raises :class:`ConfigError` if there is none."""
    return _chosen(name, {key: one for key, one in known().items() if one.write})


def reader(name: str | None) -> Format:
    """Return the import format of this name. Raises :class:`ConfigError` if there is none."""
    return _chosen(name, {key: one for key, one in known().items() if one.read})


def _chosen(name: str | None, formats: Mapping[str, Format]) -> Format:
    if name is not None and name in formats:
        return formats[name]
    shown = "nothing" if name is None else f"'{name}'{did_you_mean(name, formats)}"
    raise ConfigError(f"--format: found {shown}; allowed: {', '.join(formats)}")


def tables_text() -> str:
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
