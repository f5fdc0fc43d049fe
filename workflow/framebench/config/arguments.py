"""Values of command lines."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from . import values


def share(text: str) -> float:
    """Return a percentage or fraction from the command line."""
    try:
        return values.share(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"found {text!r}; allowed: {values.SHARE}") from None


def facts(text: str) -> dict[str, Any]:
    """Return the facts of imported files, given as a JSON object."""
    from .fields import FACTS  # other commands do not need pydantic
    from .validation import did_you_mean

    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise argparse.ArgumentTypeError(f"found {text!r}; allowed: a JSON object")
    for name, value in found.items():
        if name not in FACTS:
            raise argparse.ArgumentTypeError(
                f"found {name!r}{did_you_mean(name, FACTS)}; allowed: {', '.join(FACTS)}"
            )
        if not isinstance(value, (str, int, float)):
            raise argparse.ArgumentTypeError(
                f"{name}: found {value!r}; allowed: a text or a number"
            )
    return found


def records(text: str) -> Path:
    """Return the path of records: ``runs`` in a results folder, else the path itself."""
    path = Path(text)
    return path / "runs" if (path / "runs").is_dir() else path
