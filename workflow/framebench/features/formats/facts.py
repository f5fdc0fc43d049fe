"""Facts of a case that the user may state for imported files."""

from __future__ import annotations

import argparse

from ...config.arguments import whole
from ...config.validation import did_you_mean

#: Names of facts, which are fields of a case.
FACTS = (
    "framework", "framework_version", "model", "precision", "compiler", "nodes",
    "devices_per_node", "batch_per_device",
)  # fmt: skip
#: Facts that are numbers.
COUNTS = ("nodes", "devices_per_node", "batch_per_device")


def fact(text: str) -> tuple[str, str | int]:
    """Return name and value of a fact, written as ``nodes=2``."""
    name, separator, value = text.partition("=")
    if name not in FACTS:
        raise argparse.ArgumentTypeError(
            f"found {name!r}{did_you_mean(name, FACTS)}; allowed: {', '.join(FACTS)}"
        )
    if not separator or not value:
        raise argparse.ArgumentTypeError(f"found {text!r}; allowed: {name}=VALUE")
    return name, whole(1, 1_000_000)(value) if name in COUNTS else value
