"""Text files from users: defects are reported with their position."""

from __future__ import annotations

import json
from typing import Any

from tasks import TaskError


def read_text(path: str) -> str:
    """Return the text of a UTF-8 file. Raises :class:`TaskError` if it cannot be read as such."""
    try:
        with open(path, "rb") as file:
            content = file.read()
    except OSError as error:
        raise TaskError(f"{path}: {error.strerror}") from None
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise TaskError(f"{path}: line {line}, byte {error.start} is not UTF-8") from None


def read_json(path: str) -> Any:
    """Return the content of a JSON file. Raises :class:`TaskError` if it cannot be read as such."""
    try:
        return json.loads(read_text(path))
    except ValueError as error:  # with line and column
        raise TaskError(f"{path}: is no JSON: {error}") from None
