"""What a record says of each node of its run: on one node the record itself, else its ``nodes``.

Standard library only: it is asked between two attempts of a run, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def found(record: Mapping[str, Any], part: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """``watch`` or ``memory`` of every node that has it, with the node's name ("" where there is
    but one)."""
    for node in record.get("nodes") or [{**record, "node": ""}]:
        if node.get(part) is not None:
            yield node["node"], node[part]
