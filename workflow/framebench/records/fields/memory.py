"""Memory of a run, and whether others held what it lacked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import by_node

#: Least part of a run's memory limit that others hold where a lack of memory is theirs, and largest
#: part that the run itself has reached then.
_OTHERS, _OWN = 0.25, 0.75


def crowded_out(record: Mapping[str, Any]) -> bool:
    """Return whether on a node others held much of the memory, and the run clearly less than its
    limit; False for older records, which do not tell."""
    return any(
        memory.get("others_bytes", 0) > _OTHERS * memory["limit_bytes"]
        and memory["peak_bytes"] < _OWN * memory["limit_bytes"]
        for _, memory in by_node.parts(record, "memory")
    )
