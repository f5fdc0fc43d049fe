"""Memory of a run, and whether others held what it lacked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import by_node

#: Least part of what a run may hold that others hold where a lack of memory is theirs, and largest
#: part that the run itself has reached then.
_OTHERS, _OWN = 0.25, 0.75


def crowded_out(record: Mapping[str, Any]) -> bool:
    """Return whether on a node others held much of the memory, and the run clearly less than its
    limit or, without one, than all; False for older records, which do not tell."""
    return any(
        memory.get("others_bytes", 0) > _OTHERS * _most(memory)
        and memory["peak_bytes"] < _OWN * _most(memory)
        for _, memory in by_node.parts(record, "memory")
    )


def _most(memory: Mapping[str, int]) -> int:
    """Return the bytes that a run might hold."""
    return memory["limit_bytes"] if "limit_bytes" in memory else memory["total_bytes"]
