"""Records that were changed: their throughput is computed from step times, and flagged."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from framebench.records import record_sets
from framebench.records.run import Run

from ..made_up_records import record_of
from ..made_up_verifications import CASE


def read(folder: Path, record: dict[str, Any]) -> Run:
    path = folder / "case" / "r1.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record))
    (run,) = record_sets.load(folder).runs
    return run


def more_samples(record: dict[str, Any]) -> None:
    record["samples"] *= 2


def shorter_window(record: dict[str, Any]) -> None:
    record["window_seconds"] /= 2


def shorter_windows(record: dict[str, Any]) -> None:
    shorter_window(record)
    for rank in record["ranks"]:
        rank["window_seconds"] /= 2


@pytest.mark.parametrize("change", [more_samples, shorter_window, shorter_windows])
@pytest.mark.parametrize("mode", ["train", "inference"])
def test_a_changed_record_has_the_throughput_of_its_steps_and_a_flag(
    tmp_path: Path, mode: str, change: Callable[[dict[str, Any]], None]
) -> None:
    record = record_of(random.Random(1), {**CASE, "mode": mode, "devices_per_node": 2}, 1)
    before = read(tmp_path, record)
    assert "inconsistent" not in {flag.name for flag in before.flags}
    change(record)
    record["metrics"]["throughput"]["value"] = record["samples"] / record["window_seconds"]
    after = read(tmp_path, record)
    assert after.throughput == pytest.approx(before.throughput)
    assert "inconsistent" in {flag.name for flag in after.flags}
    imported = read(tmp_path, record | {"source": "another"})
    assert imported.throughput == pytest.approx(2 * (before.throughput or 0))
    assert not imported.flags
