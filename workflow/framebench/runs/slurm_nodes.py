"""Which nodes SLURM has, and on which of them nothing can be measured now."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from ..config.cluster import Cluster
from ..config.validation import ConfigError
from ..files import json_files
from ..files.whole_files import write_whole
from .slurm import SlurmError, told

#: In the results: the nodes that the call that measures has found.
FILE = ".nodes.json"
#: Of a node's state, without the letter that sinfo adds to it.
_OUT_OF_SERVICE = frozenset(
    ("down", "drain", "drained", "draining", "fail", "failing")
    + ("error", "future", "inval", "maint", "unknown")
)
#: A node that does not answer; other letters are of power saving and reservations.
_SILENT = "*"


def nodes(cluster: Cluster) -> dict[str, str]:
    """Those of the cluster's partition, or of SLURM's usual one, by name in SLURM's order, and why
    one cannot be measured now, "" where it can. Raises ConfigError where SLURM does not answer, or
    has none."""
    try:
        listed = told("sinfo", "--noheader", "--Node", "--format=%N|%P|%T|%f|%E")
    except SlurmError as error:
        raise ConfigError(
            f"config: nodes_named: SLURM does not say which there are: {error}"
        ) from None
    found: dict[str, str] = {}
    for line in listed.splitlines():
        name, partition, state, features, why = (*line.split("|", 4), *[""] * 4)[:5]
        is_ours = partition.rstrip("*") == cluster.partition
        if is_ours if cluster.partition else partition.endswith("*"):
            found[name] = _against(state, features, why, cluster.constraint)
    if not found:
        where = f"partition {cluster.partition}" if cluster.partition else "the usual partition"
        raise ConfigError(f"config: nodes_named: SLURM has no node in {where}")
    return found


def note(results: Path, known: Mapping[str, str]) -> None:
    """Leave them to the jobs of this call: a node that goes out of service meanwhile is still one
    of its plan."""
    write_whole(results / FILE, json.dumps(dict(known)))


def noted(results: Path) -> dict[str, str]:
    """What the call that submitted this job has left. Raises OSError where it has not."""
    known: dict[str, str] = json_files.read(results / FILE)
    return known


def _against(state: str, features: str, why: str, constraint: str | None) -> str:
    bare = state.rstrip("*~#!%$@^-+")
    silent = _SILENT in state
    if bare in _OUT_OF_SERVICE or silent:
        reason = f", {why}" if why not in ("", "none") else ""
        return f"SLURM says {state}{reason}"
    simple = constraint is not None and constraint.replace("_", "").replace("-", "").isalnum()
    if simple and constraint not in features.split(","):
        return f"it lacks the feature {constraint}"
    return ""
