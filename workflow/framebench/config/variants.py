"""The variants of a suite: the sides of an A/B test."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import brought, paths
from .validation import ConfigError, show

#: Environment variables that the harness sets for each rank, whatever they were.
OF_RANKS = (
    "RANK",
    "LOCAL_RANK",
    "WORLD_SIZE",
    "MASTER_ADDR",
    "MASTER_PORT",
    "TMPDIR",
    "FRAMEBENCH_ADDRESSES",
    "FRAMEBENCH_CORES",
    "FRAMEBENCH_RUN",
)


@dataclass(frozen=True)
class Variant:
    """One side of an A/B test: what it has instead of the usual. Environment files and interpreters
    by framework, and environment variables of the ranks."""

    environments: dict[str, Path]
    interpreters: dict[str, str]
    variables: dict[str, str]


def variant(value: Mapping[str, Any], place: str) -> Variant:
    """A variant as the checked suite has it. Raises :class:`ConfigError` at ``place`` for files
    that do not exist, and for variables that would have no effect."""
    files = {}
    for name, text in value.get("environments", {}).items():
        files[name] = paths.given(f"{place}.environments.{name}", text)
        if not files[name].is_file():
            raise ConfigError(
                f"{place}.environments.{name}: found {show(text)}; "
                "allowed: the path of an environment file like those in envs/"
            )
    interpreters = {
        name: brought.interpreter(f"{place}.interpreters.{name}", path)
        for name, path in value.get("interpreters", {}).items()
    }
    variables = {name: str(text) for name, text in value.get("variables", {}).items()}
    for name, text in variables.items():
        if name in OF_RANKS:
            raise ConfigError(
                f"{place}.variables: found {name}, which the harness sets for each rank; allowed: "
                f"all but {', '.join(OF_RANKS)}"
            )
        if "\0" in text:
            raise ConfigError(
                f"{place}.variables.{name}: found {show(text)}; allowed: a text without NUL"
            )
    return Variant(files, interpreters, variables)
