"""Made-up base and candidate of a comparison, as runs and as records."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from core.case import Case
from framebench.cases.matrix import rounds
from framebench.records.run import Run

from ..made_up_records import CASE, record_of
from ..made_up_runs import changed, run
from ..saved_records import save

#: Throughputs of seven repeats with little noise.
SEVEN_THROUGHPUTS = (99.2, 99.6, 99.9, 100.0, 100.1, 100.4, 100.9)
#: Seconds between the starts of successive repeats of a case.
ROUND_SECONDS = 60.0
#: Start of the first run, and duration of each, in seconds.
NOON, DURATION = 1.9e9, 8.0
#: Noise of the runs of eight pairs.
PAIR_NOISE = (0.999, 1.002, 0.998, 1.001, 1.0005, 0.9995, 1.003, 0.997)


def write_set(folder: Path, factor: float, began: float = 0, **environment: Any) -> Path:
    """Write records of one case with SEVEN_THROUGHPUTS, ROUND_SECONDS apart; return their folder.
    ``factor``: multiplies the throughputs; ``began``: start in seconds after a fixed date;
    ``environment``: replaced parts."""
    for repeat, value in enumerate(SEVEN_THROUGHPUTS, 1):
        record = record_of(random.Random(7), CASE, repeat)
        slower = 100 / (factor * value)
        record["metrics"]["throughput"]["value"] /= slower
        for part in (record, *record["ranks"]):
            part["window_seconds"] *= slower
        moment = datetime.fromtimestamp(1.9e9 + began + ROUND_SECONDS * repeat, UTC)
        record["started"] = moment.isoformat().replace("+00:00", "Z")
        record["environment"] |= environment
        save(folder, f"runs/pytorch/r{repeat}.json", record)
    return folder / "runs"


def timed_repeats(
    starts: list[float], value: float = 100.0, seconds: float = DURATION
) -> list[Run]:
    """Return a repeat for each start, in seconds since NOON; its throughput identifies it."""
    return [
        run(value + number, repeat=number, started=NOON + start, wall_seconds=seconds)
        for number, start in enumerate(starts, 1)
    ]


def interleaved_sides(
    count: int, cases: int, variants: int, noise: float = 0.2
) -> tuple[list[Run], list[Run]]:
    """Return the repeats of the first case in its first and last variant, in the order of a plan.
    Each run takes DURATION seconds, plus up to the fraction ``noise`` of them."""
    names = [f"v{number}" for number in range(variants)]
    actual = [
        Case("toy", "toy", "train", 1, 1, batch, "fp32", "none", None, name)
        for batch in range(cases)
        for name in names
    ]
    longer = random.Random(1)
    moment = 0.0
    starts: dict[str, list[float]] = {name: [] for name in names}
    for case, _ in rounds(actual, count, seed=1):
        if case.batch_per_device == 0:
            starts[case.variant].append(moment)
        moment += DURATION * longer.uniform(1, 1 + noise)
    return timed_repeats(starts[names[0]]), timed_repeats(starts[names[-1]], 200.0)


def paired_sides(factor: float, apart: float = 1.0, **changes: Any) -> tuple[list[Run], list[Run]]:
    """Return eight interleaved pairs of a case, with throughputs that drift by 30 %.
    ``factor``: of the candidate's throughput; ``apart``: noise, in units of PAIR_NOISE."""
    sides = interleaved_sides(len(PAIR_NOISE), 3, 2)
    drift = [100 * (1 + 0.3 * number / len(PAIR_NOISE)) for number in range(len(PAIR_NOISE))]
    noise = [1 + apart * (value - 1) for value in PAIR_NOISE]
    values = (drift, [factor * value * own for value, own in zip(drift, noise, strict=True)])
    base, candidate = (
        [changed(run, throughput=value, **changes) for run, value in zip(*some, strict=True)]
        for some in zip(sides, values, strict=True)
    )
    return base, candidate
