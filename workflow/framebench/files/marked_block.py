"""Generated part of a text between lines ``<!-- NAME -->`` and ``<!-- /NAME -->``."""

from __future__ import annotations

import re


def replaced(text: str, name: str, block: str) -> str:
    """Return ``text`` with ``block`` between the comments.
    Raises ValueError unless both comments are there once and in order."""
    begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    found = re.findall(rf"^{begin}\n.*?^{end}$", text, re.MULTILINE | re.DOTALL)
    if len(found) != 1 or text.count(begin) != 1 or text.count(end) != 1:
        raise ValueError(f"found no lines {begin} and {end}; allowed: each once, in this order")
    return text.replace(found[0], f"{begin}\n\n{block.strip()}\n\n{end}")
