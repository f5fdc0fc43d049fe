"""Device sensors during a sustained matmul: recorded values, and this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from framebench.records import record_sets
from harness import nvml
from harness.kinds import sustained
from harness.sensors import CLOCK, ENERGY, Sensors

from ...bench import Bench
from ..bare import BARE
from ..machine.fake_machine import GPU, VARIABLES, FakeNvml, machine, write
from ..validity import assert_valid

CPUINFO = "processor\t: {}\nmodel name\t: x\ncpu MHz\t\t: {}\n\n"


def test_a_cpu_tells_its_clock_and_its_energy(tmp_path: Path) -> None:
    assert Sensors([1], *machine(tmp_path)).clock_and_energy() == {CLOCK: 3000, ENERGY: 6}


def test_what_a_cpu_does_not_tell_is_none(tmp_path: Path) -> None:
    proc, _ = machine(tmp_path / "other")
    assert Sensors([0], proc, str(tmp_path / "nowhere")).clock_and_energy() == {
        CLOCK: None,
        ENERGY: None,
    }
    text = "".join(CPUINFO.format(core, 1000.5 * (core + 1)) for core in range(3))
    write(Path(proc), {"cpuinfo": text})
    read = Sensors([1, 2], proc, str(tmp_path / "nowhere")).clock_and_energy()
    assert read[CLOCK] == 2501.25, "without cpufreq the kernel's list tells, of our cores"


def test_a_gpu_tells_the_same_by_nvml() -> None:
    both = nvml.Gpus(FakeNvml({**GPU, "sm": 7}, GPU), VARIABLES, 2)
    assert both.clock_and_energy(1) == {CLOCK: 1410, ENERGY: 5.25}
    lacking = {key: value for key, value in GPU.items() if key != "millijoules"}
    assert nvml.Gpus(FakeNvml(lacking), VARIABLES, 1).clock_and_energy(0)[ENERGY] is None


def reading(seconds: float, mhz: Any, joules: Any) -> dict[str, Any]:
    return {"seconds": seconds, CLOCK: mhz, ENERGY: joules}


def test_power_is_energy_over_time_and_the_clock_is_read_during_matmuls() -> None:
    readings = [reading(0.0, 4000, 50), reading(1.0, 3000, 150), reading(4.0, 2000, 450)]
    rank = {"readings": readings}
    assert sustained.clock(rank) == 2500, "the clock before the products does not count"
    assert sustained.power(rank) == 100
    untold = {"readings": [reading(0.0, 4000, None), *readings[1:]]}
    assert sustained.power(untold) is None, "not told is no zero"
    workload: Any = type("Workload", (), {"parameters": {"size": 10}})
    metrics = sustained.Sustained().metrics(workload)
    blocks = {"blocks": [{"at": {}, "operations": 5, "seconds": [1.0, 3.0]}]}
    assert metrics["rate"].rank_value(blocks) == pytest.approx(1e-12 * 2000 * 10 / 4)


def test_what_this_machine_tells(toy: Bench) -> None:
    parameters = {"seconds": 0.1, "size": 16, "block_seconds": 0.03}
    record = toy.run("operation=0.01", **BARE, kind="sustained", parameters=parameters).record
    assert_valid(record)
    (rank,) = record["ranks"]
    if record["status"] == "unsupported":
        assert record["reason"] == "this machine reports neither clock nor energy of its device"
        return
    assert record["status"] == "ok", record["reason"]
    assert record["metrics"]["rate"]["value"] <= 1e-12 * 2 * 16**3 / 0.01
    for metric, quantity in {"clock": CLOCK, "power": ENERGY}.items():
        told = rank["readings"][0][quantity] is not None
        assert (metric in record["metrics"]) == told, metric
    loaded = record_sets.load(toy.output.parent)
    assert not loaded.problems, "what a device does not tell makes its record unreadable"
