"""Made-up result sets of one case, for histories."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ...made_up_records import record_of

DAY = 86_400
CASE = {
    "framework": "pytorch", "model": "resnet50_v1.5", "mode": "train", "nodes": 1,
    "devices_per_node": 1, "batch_per_device": 4, "precision": "fp32", "compiler": "none",
    "sequence_length": None,
}  # fmt: skip


def write_set(folder: Path, factor: float, day: int, repeats: int = 1, **other: Any) -> Path:
    """Write records of one case; ``other``: changed fields of the record or its environment."""
    home = folder / "runs" / "pytorch" / "resnet50_v1.5" / "case"
    home.mkdir(parents=True)
    of_environment = {name: other.pop(name) for name in ("packages", "system") if name in other}
    for repeat in range(1, repeats + 1):
        record = record_of(random.Random(7), CASE, repeat)
        record["metrics"]["throughput"]["value"] *= factor
        for part in (record, *record["ranks"]):
            part["window_seconds"] /= factor
        moment = datetime.fromtimestamp(1.9e9 + DAY * day + 60 * repeat, UTC)
        record["started"] = moment.isoformat().replace("+00:00", "Z")
        record["environment"]["code"] = {"version": "1", "dirty": False, "commit": f"{day:040x}"}
        record["environment"] |= of_environment
        (home / f"r{repeat}.json").write_text(json.dumps({**record, **other}))
    return folder
