"""Values of command lines."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from .. import PROJECT
from . import values
from .validation import NotAllowed


def share(text: str) -> float:
    """Return a percentage or fraction from the command line."""
    try:
        return values.share(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"found {text!r}; allowed: {values.SHARE}") from None


def whole(least: int, most: int) -> Callable[[str], int]:
    """Return the parser of a whole number in a range."""

    def parse(text: str) -> int:
        number = int(text) if text.isascii() and text.isdecimal() and len(text) <= 18 else -1
        if not least <= number <= most:
            raise argparse.ArgumentTypeError(
                f"found {text!r}; allowed: a whole number from {least} to {most}"
            )
        return number

    return parse


def records(text: str) -> Path:
    """Return the path of records: ``runs`` in a results folder, else the path itself."""
    path = Path(text)
    return path / "runs" if (path / "runs").is_dir() else path


def suite(text: str) -> Path:
    """Return the file of a suite, given by its name or as a file."""
    from .yaml_files import find_suite  # here: other commands read no YAML

    try:
        return find_suite(text, PROJECT)
    except NotAllowed as error:
        shown = error.shown or repr(text)
        raise argparse.ArgumentTypeError(f"found {shown}; allowed: {error.allowed}") from None
