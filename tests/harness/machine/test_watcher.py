"""Watcher of a run: its samples, their summary, and other processes in a real record."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from typing import Any

import pytest
from framebench.records.flags import disturbed
from harness import cores, watcher

from ...bench import Bench
from ...processes import hog
from ..validity import assert_valid


def watch_sample(seconds: float, **values: Any) -> dict[str, Any]:
    return {"seconds": seconds, **values}


def summarized(samples: list[dict[str, Any]], start: float, end: float, gpus: int = 0) -> Any:
    """Return the valid summary of samples from ``start`` to ``end``, of a run on two cores."""
    watching = watcher.Watcher([0, 1], {}, gpus)
    watching.gpus = [{"name": "Example GPU", "uuid": f"GPU-{index}"} for index in range(gpus)]
    watching.samples = samples
    actual = watcher.summarize(watching, (start, end))
    assert_valid(actual, "watch")
    return actual


def test_the_window_spans_all_ranks() -> None:
    ranks: list[dict[str, Any]] = [
        {"window_start": 5.0, "window_seconds": 2.0},
        {"window_start": 4.0, "window_seconds": 1.0},
        {"status": "failed"},
    ]
    assert watcher.window_of(ranks) == (4.0, 7.0)
    assert watcher.window_of(ranks[2:]) is None


def load(seconds: float, busy: float, own: float, **more: Any) -> dict[str, Any]:
    return watch_sample(
        seconds,
        busy_seconds=busy,
        own_seconds=own,
        machine_busy_seconds=2 * busy,
        machine_own_seconds=own,
        stolen_seconds=0.1 * seconds,
        **more,
    )


def test_foreign_load_is_what_the_run_did_not_do_itself() -> None:
    # Others use nothing in the first second, 0.5 cores in the second, 0.25 in the third.
    samples = [
        load(10, 100.0, 50.0),
        load(11, 101.0, 51.0),
        load(12, 102.5, 52.0),
        load(13, 103.75, 53.0),
        load(14, 120.0, 53.0),  # after the timed region
    ]
    actual = summarized(samples, 11.0, 13.0)
    assert actual["foreign_load"] == pytest.approx({"mean": 0.375})
    assert actual["machine_foreign_load"]["mean"] == pytest.approx((5.5 - 2) / 2)
    assert actual["steal"] == pytest.approx(0.1)
    assert actual["samples"] == 3
    assert summarized(samples, 11.5, 12.5)["foreign_load"]["mean"] == pytest.approx(0.375)


def test_a_window_between_two_samples_is_known_by_its_counters() -> None:
    both = [
        load(1.0, 10.0, 5.0, mhz=1, **{"package-0_joules": 100.0}),
        load(1.5, 10.4, 5.3, mhz=1, **{"package-0_joules": 150.0}),
    ]
    actual = summarized([load(0.5, 9.0, 4.0), *both, load(2.0, 99.0, 5.3)], 1.2, 1.25)
    assert actual["foreign_load"]["mean"] == pytest.approx(0.2)
    assert actual["samples"] == 0
    assert actual["frequency_mhz"] is None, "no sample was taken in the window"
    assert summarized(both, 1.2, 1.25)["energy_joules"] == pytest.approx({"package-0": 5.0})


def test_energy_is_that_of_a_window_that_the_samples_span() -> None:
    samples = [
        watch_sample(float(second), **{"package-0_joules": 10.0 * second, "gpu-0_joules": joules})
        for second, joules in enumerate([0.0, 100.0, 300.0, 600.0])
    ]
    actual = summarized(samples, 0.5, 2.5, gpus=1)["energy_joules"]
    assert actual == pytest.approx({"package-0": 20.0, "gpu-0": 450.0 - 50.0})
    assert summarized(samples, 2.5, 3.5)["energy_joules"] == {}, "what was not seen is not made up"
    assert summarized([], 0.5, 1.5)["foreign_load"] is None


def test_the_host_is_summed_up() -> None:
    def host(seconds: float, mhz: float, degrees: float, events: int) -> Any:
        return load(seconds, 0.0, 0.0, mhz=mhz, temperature_celsius=degrees, throttle_events=events)

    samples = [host(0, 900, 99, 3), host(1, 2000, 60, 3), host(2, 1500, 70, 4)]
    actual = summarized([*samples, host(3, 800, 99, 6)], 0.5, 2.5)
    assert actual["frequency_mhz"] == {"min": 1500, "median": 1750, "max": 2000}
    assert actual["temperature_celsius_max"] == 70
    assert actual["throttle_events"] == 3


def test_gpus_are_summed_up_one_by_one() -> None:
    def gpu(seconds: float, reasons: int, others: list[int], mhz: int) -> Any:
        first = {"sm_mhz": mhz, "throttle_reasons": reasons, "other_processes": others}
        return watch_sample(seconds, **{f"gpu-0_{name}": value for name, value in first.items()})

    samples = [gpu(0, 1, [], 9), gpu(1, 4, [], 1400), gpu(2, 4 | 64, [5], 1300)]
    actual = summarized([*samples, gpu(3, 1, [6], 9)], 0.5, 2.5, gpus=2)["gpus"]
    assert actual[0]["throttle_reasons"] == {"sw_power_cap": 1.0, "hw_thermal_slowdown": 0.5}
    assert actual[0]["sm_mhz"] == {"min": 1300, "median": 1350, "max": 1400}
    assert actual[0]["other_processes"] == [5, 6]
    assert actual[1]["throttle_reasons"] is actual[1]["other_processes"] is None
    assert actual[1]["uuid"] == "GPU-1"


def test_a_long_run_keeps_a_bounded_number_of_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watcher, "INTERVAL_SECONDS", 0.0001)
    monkeypatch.setattr(watcher, "MOST_SAMPLES", 10)
    with watcher.Watcher(cores.allowed(), {}, 0) as watching:
        while watching.interval < 0.0008:
            time.sleep(0.01)
    moments = [taken["seconds"] for taken in watching.samples]
    assert len(moments) <= 12
    assert moments == sorted(moments)
    assert "watcher" not in watching.absent


def test_a_sensor_that_hangs_does_not_stop_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    forever = threading.Event()
    monkeypatch.setattr(watcher.Watcher, "take", lambda self: forever.wait() and {})
    monkeypatch.setattr(watcher, "PATIENCE_SECONDS", 0.05)
    with watcher.Watcher(cores.allowed(), {}, 0) as watching:
        pass
    forever.set()
    assert "answered" in watching.absent["watcher"]


def test_a_watcher_that_fails_does_not_spoil_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: watcher.Watcher) -> None:
        raise RuntimeError("no sensors today")

    monkeypatch.setattr(watcher.Watcher, "open", fail)
    with watcher.Watcher(cores.allowed(), {}, 0) as watching:
        pass
    ranks = [{"window_start": time.perf_counter() - 1, "window_seconds": 1.0}]
    actual = watcher.summary(watching, ranks)
    assert actual is not None
    assert_valid(actual, "watch")
    assert actual["absent"] == {"watcher": "RuntimeError: no sensors today"}
    assert actual["foreign_load"] is None
    assert disturbed(actual) == ""


def test_the_watcher_leaves_the_runs_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    moved: list[set[int]] = []
    monkeypatch.setattr(watcher.os, "sched_getaffinity", lambda process: {4, 5, 6, 7})
    monkeypatch.setattr(watcher.os, "sched_setaffinity", lambda process, to: moved.append(to))
    monkeypatch.setattr(watcher, "siblings", lambda core: [core // 2 * 2, core // 2 * 2 + 1])
    for used in ([4], [4, 6]):
        watcher.Watcher(used, {}, 0).open()
    assert moved == [{6, 7}], "not where a sibling of the run's cores is, and nowhere if all are"


def test_the_work_of_a_run_is_its_own() -> None:
    burn = "import time\nwhile time.process_time() < 0.5: pass"
    with watcher.Watcher(cores.allowed(), {}, 0) as watching:
        subprocess.run([sys.executable, "-c", burn], check=True)
    first, *_, last = watching.samples
    assert last["own_seconds"] - first["own_seconds"] >= 0.45
    assert last["machine_own_seconds"] - first["machine_own_seconds"] >= 0.45


def test_a_hog_on_the_runs_core_is_seen(toy: Bench) -> None:
    with hog(cores.allowed()[0]):
        watch = toy.run("sleep=0.1", timed_steps=15).record["watch"]
    assert watch["cores"] == [cores.allowed()[0]]
    assert watch["foreign_load"]["mean"] > 0.5, watch
    assert "of the run's cores (1) busy" in disturbed({"watch": watch})
