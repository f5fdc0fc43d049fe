"""Text of kernel files and output of short commands, where they exist."""

from __future__ import annotations

import subprocess
from typing import List, Mapping, Optional


def file_text(path: str) -> Optional[str]:
    """Return the text of a file; None where it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return None


def file_line(path: str) -> Optional[str]:
    """Return the text of a file of one line; None where it is empty or cannot be read."""
    text = file_text(path)
    return text.strip() if text else None


def file_number(path: str) -> Optional[float]:
    """Return the number in a file; None where it holds none or cannot be read."""
    try:
        return float(file_text(path) or "")
    except ValueError:
        return None


def file_entry(path: str, key: str) -> Optional[str]:
    """Return the first value of ``key`` in a file of lines ``key: value``; None where there is
    none."""
    for line in (file_text(path) or "").splitlines():
        name, _, value = line.partition(":")
        if name.strip() == key:
            return value.strip()
    return None


def command_output(
    command: List[str],
    environment: Optional[Mapping[str, str]] = None,
    seconds: float = 30.0,
) -> Optional[str]:
    """Return the output of a command; None where it fails, is missing, or takes more than
    ``seconds``."""
    try:
        finished = subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=seconds,
            errors="replace",
            encoding="utf-8",
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return finished.stdout if finished.returncode == 0 else None
