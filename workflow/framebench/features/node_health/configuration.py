"""Configuration keys of node health."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from ...config import values
from ...config.fields import Keys, ReadAs, Text

_File = Annotated[Path, ReadAs(Text, values.existing_file)]


class NodeHealthKeys(Keys):
    """Configuration keys that name the files by which nodes are judged."""

    node_rules: _File | None = None
    node_baseline: _File | None = None


KEYS = NodeHealthKeys
TEXTS = (
    {
        "key": "node_rules",
        "values": "YAML file",
        "meaning": "[Rules](../docs/node-health.md#rules) by which nodes are judged; "
        "`config/node_rules.yaml` by default. Kept with the results.",
    },
    {
        "key": "node_baseline",
        "values": "JSON file",
        "meaning": "[Baseline](../docs/node-health.md#a-kept-baseline) for nodes. Kept "
        "with the results.",
    },
)
