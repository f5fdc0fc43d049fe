"""Paths as people write them."""

from __future__ import annotations

import os
from pathlib import Path

from .validation import ConfigError, show


def given(place: str, text: str) -> Path:
    """The path that ``text`` names, ``~`` expanded, whether there is something or not. Raises
    :class:`ConfigError` at ``place`` for one that cannot be looked at."""
    if any(ord(character) < 32 or ord(character) == 127 for character in text):
        raise ConfigError(
            f"{place}: found {show(text)}; allowed: a path without control characters (line "
            "breaks, tabs)"
        )
    try:
        path = Path(text).expanduser()
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return path
    except RuntimeError:
        raise ConfigError(
            f"{place}: found {show(text)}; allowed: ~ or ~USER of a user who has a home folder"
        ) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(
            f"{place}: found {show(text)} ({reason}); allowed: a path that can be looked at"
        ) from None
    return path
