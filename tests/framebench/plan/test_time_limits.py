"""Runs of the suites that ship end within the time limit on the machines of published figures."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from core.case import Case
from framebench.cases.fitting import Capacity
from framebench.cases.matrix import cases
from framebench.config.settings import Settings, load_settings
from framebench.plan import estimates, repeats

from ..settings import CATALOG, CONFIG, ROOT

PUBLISHED = sorted((ROOT / "results" / "published").glob("*/published.csv"))
GPUS = Capacity("cuda", 16, 4, None)
#: Axes by which a case and a published row are the same work.
AXES = ("model", "mode", "precision", "nodes", "devices_per_node", "batch_per_device")
#: Published rows that the cases of a suite must have, so that the test is not empty.
MATCHED = {"nvidia_electra": 12, "nvidia_resnet50": 4, "dlperf": 20}


def rows(path: Path) -> Iterator[tuple[tuple[str, ...], float]]:
    """Yield what each published throughput is of, and samples per second."""
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            is_rate = row["quantity"] == "throughput" and row["printed"] != "-"
            if is_rate and row["unit"] in ("images/s", "sequences/s"):
                length = re.search(r"seq=(\d+)", row["variant"])
                key = (*(row[axis] for axis in AXES), length[1] if length else "")
                yield key, float(row["printed"])


@pytest.fixture(scope="module")
def slowest() -> dict[tuple[str, ...], float]:
    """Return the slowest published rate of each work."""
    actual: dict[tuple[str, ...], float] = {}
    for path in PUBLISHED:
        for key, rate in rows(path):
            actual[key] = min(rate, actual.get(key, rate))
    return actual


def seconds(case: Case, rate: float, settings: Settings) -> float:
    """Return the seconds of a run at a rate in samples per second."""
    suite = settings.suite
    step = case.samples_of_replica * case.replicas / rate
    breakdown = 2 * repeats.has_breakdown(case, 1, suite)
    timed = max(suite.timed_steps * step, suite.timed_seconds or 0)
    start = estimates.start_of(case.framework, case.mode, case.compiler, GPUS)
    return start + (suite.warmup_steps + breakdown) * step + timed


@pytest.mark.parametrize("name", sorted(path.stem for path in (ROOT / "config/suites").glob("*")))
def test_runs_end_within_the_time_limit_at_published_rates(
    name: str, slowest: dict[tuple[str, ...], float]
) -> None:
    settings = load_settings({**CONFIG, "suite": name}, CATALOG)
    actual = {}
    for case in cases(settings.suite, CATALOG):
        key = tuple(str(getattr(case, axis)) for axis in AXES)
        # DLPerf's and MXNet's rows say no sequence length.
        rate = slowest.get((*key, str(case.sequence_length or ""))) or slowest.get((*key, ""))
        if rate and case.is_step:
            actual[case] = seconds(case, rate, settings)
    too_long = {str(case): took for case, took in actual.items() if took > settings.time_limit}
    assert not too_long
    assert len(actual) >= MATCHED.get(name, 0)
