"""Sources of the watcher: kernel files, CPU time of the run, NVIDIA's library."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from harness import nvml
from harness.processes.descendants import Descendants, OwnTime
from harness.sensors import Sensors

from .fake_machine import GPU, VARIABLES, FakeNvml, machine, process, stat, write


def test_every_source_is_read(tmp_path: Path) -> None:
    sensors = Sensors([1], *machine(tmp_path))
    sample = sensors.read()
    assert sample["busy_seconds"] == 20, "the load is not that of the run's cores"
    assert sample["machine_busy_seconds"] == 30, "interrupts count as somebody's work"
    assert (sample["stolen_seconds"], sample["machine_stolen_seconds"]) == (3, 4)
    assert sample["mhz"] == 3000
    assert sample["temperature_celsius"] == 61.5, "the disk's temperature is not the processor's"

    energies = {name: value for name, value in sample.items() if name.endswith("joules")}
    assert energies == {"package-0_joules": 5, "dram-0_joules": 1}, "cores are in their package"
    assert sample["throttle_events"] is None, "core 1 has no throttle counts"
    write(tmp_path, {"sys/class/hwmon/hwmon1/temp1_input": "none\n"})
    assert sensors.read()["temperature_celsius"] is None, "it has stopped to answer"
    both = Sensors([0, 1], str(tmp_path / "proc"), str(tmp_path / "sys")).read()
    assert (both["mhz"], both["throttle_events"]) == (2000, 7), "a median and a sum"
    assert both["busy_seconds"] == both["machine_busy_seconds"] == 30


def test_a_counter_that_starts_again_goes_on(tmp_path: Path) -> None:
    sensors = Sensors([0], *machine(tmp_path))
    collected = []
    for counted in (8_000_000, 1_000_000, 2_000_000, 500_000):  # the counter overflows at 9 J
        energy = {"sys/class/powercap/intel-rapl:0/energy_uj": f"{counted}\n"}
        write(tmp_path, energy)
        collected.append(sensors.read()["package-0_joules"])
    assert collected == [8, 10, 11, 18.5]


def test_what_is_not_there_is_absent_and_not_zero(tmp_path: Path) -> None:
    write(tmp_path, {"proc/stat": stat({0: (1.0, 0.0)})})
    sensors = Sensors([0], str(tmp_path / "proc"), str(tmp_path / "sys"))
    sample = sensors.read()
    reported = {name for name, value in sample.items() if value is not None}
    assert reported == {
        "busy_seconds", "stolen_seconds", "machine_busy_seconds", "machine_stolen_seconds"
    }  # fmt: skip


def test_the_runs_own_time_counts_every_process_once(tmp_path: Path) -> None:
    proc = str(tmp_path)
    process(proc, 1, 0, own=40.0)
    process(proc, 10, 1, own=1.0, children=5.0)  # the launcher
    process(proc, 30, 1, own=70.0)
    own_time = OwnTime(10, proc)
    assert own_time.read() == {"ranks": 5, "launcher": 1}
    process(proc, 20, 10, own=2.0)
    process(proc, 15, 20, own=3.0)  # a process whose lower id the kernel has used again
    process(proc, 22, 30, own=9.0)
    assert own_time.read()["ranks"] == 10
    assert own_time.processes == {20, 15}
    shutil.rmtree(tmp_path / "15")  # the process ended, and its parent waited for it
    process(proc, 20, 10, own=2.5, children=3.25)
    process(proc, 23, 10, own=0.5, state="Z")  # an adopted process that nobody waits for
    assert own_time.read()["ranks"] == 11.25
    shutil.rmtree(tmp_path / "20")  # the rank ended, and the launcher waited for it
    process(proc, 10, 1, own=1.5, children=5.0 + 6.0)
    assert own_time.read() == {"ranks": 11.5, "launcher": 1.5}


def test_what_ended_before_it_was_looked_at_is_looked_for_again(tmp_path: Path) -> None:
    """Fail if a process counts as foreign for ever because its parent ended during a scan."""
    process(str(tmp_path), 10, 1, own=1.0)
    process(str(tmp_path), 20, 19, own=3.0)
    process(str(tmp_path), 21, 1, own=5.0)
    descendants = Descendants(10, apart=None, proc=str(tmp_path))
    assert not descendants.find()
    process(str(tmp_path), 20, 10, own=3.0)  # adopted
    assert [*descendants.find()] == [20]
    process(str(tmp_path), 22, 20, own=1.0)
    assert sorted(descendants.find()) == [20, 22]
    assert not Descendants(10, apart=20, proc=str(tmp_path)).find()


def test_a_gpu_tells_everything() -> None:
    gpus = nvml.Gpus(FakeNvml(GPU), VARIABLES, 1)
    assert gpus.facts == [{"name": "Example GPU", "uuid": "GPU-a", "ecc": True}]
    assert gpus.read(set()) == {
        "gpu-0_sm_mhz": 1410,
        "gpu-0_temperature_celsius": 71,
        "gpu-0_throttle_reasons": 4,
        "gpu-0_joules": 5.25,
        "gpu-0_other_processes": [],
    }


def test_what_a_gpu_does_not_give_is_absent() -> None:
    library = FakeNvml({key: GPU[key] for key in GPU if key not in ("ecc", "millijoules")})
    gpus = nvml.Gpus(library, VARIABLES, 1)
    first, second = gpus.read(set()), gpus.read(set())
    for sample in (first, second):
        assert sample["gpu-0_joules"] is None
    assert gpus.facts[0]["ecc"] is None


def test_every_throttle_reason_is_named() -> None:
    assert nvml.reasons(0) == []
    assert nvml.reasons(0x4 | 0x40 | 0x80) == [
        "sw_power_cap", "hw_thermal_slowdown", "hw_power_brake_slowdown"
    ]  # fmt: skip
    assert nvml.reasons(0x8 | 1 << 20) == ["hw_slowdown", "bit_20"]


def test_others_on_the_device_are_seen() -> None:
    device = {**GPU, "processes": [7]}
    gpus = nvml.Gpus(FakeNvml(device), VARIABLES, 1)
    name = "gpu-0_other_processes"
    assert gpus.read(set())[name] == [7], "who was there before the ranks is somebody else"
    device["processes"] = [7, 20, 9]
    assert gpus.read({20, 21})[name] == [7, 9]
    device["processes"] = [7, 4711]  # ours by the host's number, which is ambiguous
    assert gpus.read({20, 21})[name] == [7]


def test_the_devices_of_the_run_are_watched_and_unknown_ones_are_not() -> None:
    assert nvml.chosen(VARIABLES, 4, 2) == ["0", "1"]
    visible = {**VARIABLES, "CUDA_VISIBLE_DEVICES": "1, GPU-a"}
    assert nvml.chosen(visible, 4, 2) == ["1", "GPU-a"]
    for changed in ({"CUDA_DEVICE_ORDER": "FASTEST_FIRST"}, {"CUDA_VISIBLE_DEVICES": "4"}):
        with pytest.raises(nvml.Unwatchable):
            nvml.chosen({**VARIABLES, **changed}, 4, 1)
