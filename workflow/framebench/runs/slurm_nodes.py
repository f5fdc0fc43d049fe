"""Nodes that SLURM knows, and the reasons why some cannot be measured now."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from ..config.cluster import Cluster
from ..config.validation import ConfigError
from ..files import json_files
from ..files.whole_files import write_whole
from .slurm import SlurmError, output_of

#: File in the results: the nodes that the measuring call found.
FILE = ".nodes.json"
#: States of nodes out of service, without the letter that sinfo appends.
_OUT_OF_SERVICE = frozenset(
    ("down", "drain", "drained", "draining", "fail", "failing")
    + ("error", "future", "inval", "maint", "unknown")
)
#: Suffix of nodes that do not answer; other suffixes stand for power saving and reservations.
_SILENT = "*"


def nodes(cluster: Cluster) -> dict[str, str]:
    """Return the nodes of the cluster's or the default partition, in SLURM's order.

    The value is the reason why a node cannot be measured now, "" if it can. Raises ConfigError if
    SLURM does not answer or has no node there.
    """
    try:
        listed = output_of("sinfo", "--noheader", "--Node", "--format=%N|%P|%T|%E")
    except SlurmError as error:
        raise ConfigError(
            f"config: nodes_named: SLURM does not say which there are: {error}"
        ) from None
    results: dict[str, str] = {}
    for line in listed.splitlines():
        name, partition, state, why = (*line.split("|", 3), *[""] * 3)[:4]
        is_ours = partition.rstrip("*") == cluster.partition
        if is_ours if cluster.partition else partition.endswith("*"):
            results[name] = _against(state, why)
    if not results:
        where = f"partition {cluster.partition}" if cluster.partition else "the usual partition"
        raise ConfigError(f"config: nodes_named: SLURM has no node in {where}")
    return results


def note(results: Path, known: Mapping[str, str]) -> None:
    """Write the nodes for the jobs of this call; nodes that fail meanwhile stay in its plan."""
    write_whole(results / FILE, json.dumps(dict(known)))


def noted(results: Path) -> dict[str, str]:
    """Read the nodes that the submitting call wrote. Raises OSError if there are none."""
    known: dict[str, str] = json_files.read(results / FILE)
    return known


def _against(state: str, why: str) -> str:
    bare = state.rstrip("*~#!%$@^-+")
    silent = _SILENT in state
    if bare in _OUT_OF_SERVICE or silent:
        reason = f", {why}" if why not in ("", "none") else ""
        return f"SLURM says {state}{reason}"
    return ""
