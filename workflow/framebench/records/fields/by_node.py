"""Parts of a record by node of its run: the record itself on one node, else its ``nodes``.

Standard library only, because it is also used between two attempts of a run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def parts(record: Mapping[str, Any], part: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield name and ``part`` (``watch`` or ``memory``) of each node that has it.

    The name is "" for a run on a single node.
    """
    for node in record.get("nodes") or [{**record, "node": ""}]:
        if node.get(part) is not None:
            yield node["node"], node[part]
