"""Registry of formats: every module in ``declared`` contributes its FORMATS."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from ...config.validation import ConfigError, did_you_mean
from . import declared
from .format import Format


@cache
def known() -> Mapping[str, Format]:
    """Return all formats by name, in the order of their names."""
    modules = [
        import_module(f"{declared.__name__}.{module.name}")
        for module in iter_modules(declared.__path__)
    ]
    formats = {one.name: one for module in modules for one in module.FORMATS}
    return dict(sorted(formats.items()))


def writer(name: str) -> Format:
    """Return the export format of this name. Raises :class:`ConfigError` if there is none."""
    return _chosen(name, {key: one for key, one in known().items() if one.write})


def reader(name: str) -> Format:
    """Return the import format of this name. Raises :class:`ConfigError` if there is none."""
    return _chosen(name, {key: one for key, one in known().items() if one.read})


def _chosen(name: str, formats: Mapping[str, Format]) -> Format:
    if name in formats:
        return formats[name]
    raise ConfigError(
        f"--format: found '{name}'{did_you_mean(name, formats)}; allowed: {', '.join(formats)}"
    )
