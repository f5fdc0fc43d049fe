"""Disturbed runs: detection and flags."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from framebench.records import record_sets
from framebench.records.flags import disturbed

from ..saved_records import save
from ..watched import GPU, made, watch


def gpu(**changes: Any) -> dict[str, Any]:
    return watch(gpus=[GPU, {**GPU, **changes}])


NOTHING_KNOWN: dict[str, Any] = {
    "foreign_load": None,
    "machine_foreign_load": None,
    "steal": None,
    "throttle_events": None,
}


@pytest.mark.parametrize(
    "seen",
    [
        None,
        watch(),
        watch(**NOTHING_KNOWN),
        watch(machine_foreign_load={"mean": 0.8, "max": 8.0}),
        # A load of two clock ticks in a region of 0.1 s, sampled over the half second around the
        # region.
        watch(window_seconds=0.1, foreign_load={"mean": 0.17, "max": 0.2}),
        watch(gpus=[GPU]),
        gpu(throttle_reasons={"sw_power_cap": 1.0, "applications_clocks_setting": 1.0}),
        gpu(throttle_reasons=None, other_processes=None),
    ],
)
def test_a_calm_run_is_not_disturbed(seen: dict[str, Any] | None) -> None:
    assert disturbed({"watch": seen}) == ""


@pytest.mark.parametrize(
    ("seen", "why"),
    [
        (watch(foreign_load={"mean": 0.12, "max": 0.2}), "0.12 of the run's cores (2) busy"),
        (watch(machine_foreign_load={"mean": 0.9, "max": 1}), "0.90 of the machine's cores (8)"),
        (watch(steal=0.1), "the hypervisor took 2.5% of the run's cores"),
        (watch(throttle_events=3), "throttled for its heat (3 events)"),
        (gpu(throttle_reasons={"hw_slowdown": 0.05}), "GPU 1 was throttled: hw_slowdown in 5%"),
        (gpu(other_processes=[41, 42]), "GPU 1 had other processes: 41, 42"),
    ],
)
def test_what_disturbs_is_said(seen: dict[str, Any], why: str) -> None:
    assert why in disturbed({"watch": seen})
    assert ";" not in disturbed({"watch": seen}), "one cause was told twice"


@pytest.mark.parametrize(
    ("number", "more"), [(1, ""), (128, "; 127 further nodes, see the record")]
)
def test_of_many_disturbed_nodes_the_first_is_named(number: int, more: str) -> None:
    nodes = [{"node": f"n{n}", "watch": watch(throttle_events=n % 2)} for n in range(2 * number)]
    heat = "the processor was throttled for its heat (1 events)"
    assert disturbed({"nodes": nodes}) == f"node n1: {heat}{more}"


def test_a_disturbed_record_is_flagged_with_its_reason(tmp_path: Path) -> None:
    save(tmp_path, "calm/r1.json", made(watch=watch()))
    save(tmp_path, "loud/r1.json", made(watch=watch(steal=0.5)))
    save(tmp_path, "old/r1.json", made())
    actual = {run.origin: run for run in record_sets.load(tmp_path).runs}
    assert len(actual) == 3, "a record with a watch is not taken for one"
    told = {origin: list(run.flags) for origin, run in actual.items()}
    flags = {origin: [flag.name for flag in some] for origin, some in told.items()}
    assert flags["loud/r1.json"] == ["disturbed"]
    assert "hypervisor" in told["loud/r1.json"][0].why
    assert flags["calm/r1.json"] == flags["old/r1.json"] == []
