"""Disturbed runs: detection, flags, and reruns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from framebench.machine.local import Machine
from framebench.plan.planning import make_plan
from framebench.records import record_sets
from framebench.records.fields.flags import disturbed

from ..settings import CATALOG, SUITE, settings
from ..watched import GPU, as_suite_asks, made, save, watch


def gpu(**changes: Any) -> dict[str, Any]:
    return watch(gpus=[GPU, {**GPU, **changes}])


NOTHING_KNOWN: dict[str, Any] = {
    "foreign_load": None,
    "machine_foreign_load": None,
    "steal": None,
    "throttle_events": None,
    "memory_bytes": None,
    "memory_available_bytes_min": None,
    "swapped_bytes": None,
}


@pytest.mark.parametrize(
    "seen",
    [
        None,
        watch(),
        watch(**NOTHING_KNOWN),
        watch(machine_foreign_load={"mean": 0.8, "max": 8.0}),
        # Two ticks of a core in a region of 0.1 s, known from the half second around it.
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
        (watch(memory_available_bytes_min=2**28), "only 256 MiB of memory were available"),
        (watch(swapped_bytes=11 * 2**20), "11 MiB were swapped"),
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


def test_a_disturbed_record_is_marked_with_its_reason(tmp_path: Path) -> None:
    save(tmp_path / "calm" / "r1.json", made(watch=watch()))
    save(tmp_path / "loud" / "r1.json", made(watch=watch(steal=0.5)))
    save(tmp_path / "old" / "r1.json", made())
    actual = {run.origin: run for run in record_sets.load(tmp_path).runs}
    assert len(actual) == 3, "a record with a watch is not taken for one"
    told = {origin: list(run.flags) for origin, run in actual.items()}
    flags = {origin: [flag.name for flag in some] for origin, some in told.items()}
    assert flags["loud/r1.json"] == ["disturbed"]
    assert "hypervisor" in told["loud/r1.json"][0].why
    assert flags["calm/r1.json"] == flags["old/r1.json"] == []


def plans(tmp_path: Path, most: int) -> list[tuple[str, str]]:
    """Return names and statuses of the first repeat, as planned with the existing records."""
    loaded = settings(
        tmp_path, {**SUITE, "repeats": 1}, results=str(tmp_path / "out"), rerun_disturbed=most
    )
    runs = tmp_path / "out" / "runs"
    cached = record_sets.load(runs) if runs.is_dir() else None
    plan = make_plan(loaded, CATALOG, Machine(2, 0), cached)
    return [(Path(run.path).name, run.status) for run in plan.runs]


@pytest.mark.parametrize(
    ("there", "most", "planned"),
    [
        ({}, 2, ("r1", "")),
        ({"r1": 0.5}, 0, ("r1", "ok")),
        ({"r1": 0.5}, 2, ("r1-retry1", "")),
        ({"r1": 0.0}, 2, ("r1", "ok")),
        ({"r1": 0.5, "r1-retry1": 0.6}, 2, ("r1-retry2", "")),
        ({"r1": 0.5, "r1-retry1": 0.0}, 2, ("r1-retry1", "ok")),
        ({"r1": 0.5, "r1-retry1": 0.6, "r1-retry2": 0.7}, 2, ("r1-retry2", "ok")),
    ],
)
def test_what_is_disturbed_is_planned_again_within_bounds(
    tmp_path: Path, there: dict[str, float], most: int, planned: tuple[str, str]
) -> None:
    """Fail if disturbed runs are not planned again, or more often than allowed.
    The records are disturbed by steal time."""
    loaded = settings(tmp_path, {**SUITE, "repeats": 1})
    (folder,) = make_plan(loaded, CATALOG, Machine(2, 0), None).folders.values()
    for name, steal in there.items():
        content = as_suite_asks(watch=watch(steal=steal))
        save(tmp_path / "out" / "runs" / folder / f"{name}.json", content)
    assert plans(tmp_path, most) == [planned]
