"""Command ``tune``."""

from __future__ import annotations

from ...feature_registry import Feature, Program


def _tune(arguments: list[str]) -> int:
    from . import command

    return command.main(arguments)


FEATURE = Feature(
    programs={"tune": Program("find the fastest batch, precision and compiler of a model", _tune)},
)
