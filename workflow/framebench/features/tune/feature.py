"""Command ``tune``."""

from __future__ import annotations

from ...feature_registry import Feature, Program

FEATURE = Feature(
    programs={
        "tune": Program("find the fastest batch, precision and compiler of a model", "tune.command")
    },
)
