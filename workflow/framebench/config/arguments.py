"""Values of a command line."""

from __future__ import annotations

import argparse

from . import values


def share(text: str) -> float:
    """A percentage or a part of the command line."""
    try:
        return values.share(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"found {text!r}; allowed: {values.SHARE}") from None
