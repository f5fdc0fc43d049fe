"""GPUs that ``nvidia-smi`` lists, and those that CUDA_VISIBLE_DEVICES shows."""

from __future__ import annotations

from pathlib import Path

import pytest
from core.gpus import Gpu, GpuError, kind, list_gpus, visible_gpus
from framebench.machine import identities, local
from harness import hardware

from .. import fake_gpus

TWO = fake_gpus.gpus(2, "NVIDIA A100-SXM4-40GB", 40960, "580.95.05", "8.0")
DIVIDED = fake_gpus.gpus(
    *(1, "NVIDIA A100-SXM4-40GB", 40960, "580.95.05", "8.0", "Enabled"),
    [("3g.20gb", "MIG-b0b8"), ("1g.10gb+me", "MIG-17c2")],
)


@pytest.fixture(autouse=True)
def _ask_anew() -> None:
    hardware.listed.cache_clear()


@pytest.fixture
def listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Gpu]:
    """Return a whole GPU and one that MIG divides."""
    other = {"uuid": "GPU-111", "pci.bus_id": "00000000:11:00.0"}
    both = [*TWO[:1], {**DIVIDED[0], **other}]
    monkeypatch.setenv("PATH", fake_gpus.install(tmp_path, both), prepend=":")
    return list_gpus()


def test_gpus_and_instances_are_listed(listed: list[Gpu]) -> None:
    whole, divided = listed
    assert (whole.name, whole.capability, whole.driver) == (
        *("NVIDIA A100-SXM4-40GB", "8.0", "580.95.05"),
    )
    assert (whole.memory_bytes, whole.instances) == (40960 * 2**20, None)
    assert [
        (instance.name, instance.uuid, instance.memory_bytes)
        for instance in divided.instances or ()
    ] == [
        ("NVIDIA A100-SXM4-40GB MIG 3g.20gb", "MIG-b0b8", 20 * 2**30),
        ("NVIDIA A100-SXM4-40GB MIG 1g.10gb+me", "MIG-17c2", 10 * 2**30),
    ]


@pytest.mark.parametrize(
    ("visible", "uuids"),
    [
        ("0", ["GPU-000"]),
        ("GPU-0", ["GPU-000"]),
        ("MIG-17c2", ["MIG-17c2"]),
    ],
)
def test_cuda_shows_the_named_gpus(listed: list[Gpu], visible: str, uuids: list[str]) -> None:
    assert [gpu.uuid for gpu in visible_gpus(listed, visible)] == uuids


@pytest.mark.parametrize(
    ("visible", "why"),
    [
        (None, "MIG divides .*allowed: CUDA_VISIBLE_DEVICES=MIG-b0b8 .3g.20gb. or"),
        ("", "='' hides all 2 GPUs"),
        ("2", "names '2', which nvidia-smi does not list; allowed: 0, 1, MIG-b0b8"),
        ("0,0", "names GPU-000 twice"),
        ("MIG-b0b8, 0", "names NVIDIA A100-SXM4-40GB and NVIDIA A100-SXM4-40GB MIG 3g.20gb; allo"),
        ("MIG-b0b8,MIG-17c2", "MIG 1g.10gb.me and .* MIG 3g.20gb; allowed: instances of one pro"),
    ],
)
def test_what_cuda_would_not_show_is_refused(
    listed: list[Gpu], visible: str | None, why: str
) -> None:
    with pytest.raises(GpuError, match=why):
        visible_gpus(listed, visible)


@pytest.mark.usefixtures("listed")
@pytest.mark.parametrize("name", ["MIG-b0b8", " MIG-b0"])
def test_records_and_plans_name_an_instance_alike(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", name)
    names = [gpu["name"] for gpu in hardware.describe([0])["gpus"]]
    assert names == ["NVIDIA A100-SXM4-40GB", "NVIDIA A100-SXM4-40GB MIG 3g.20gb"]
    machine = local.detect()
    assert machine.identity.hardware.startswith(", ".join(names))
    assert machine.gpus == 1


def test_instances_of_one_profile_are_devices_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    instances = [("1g.5gb", f"MIG-{letter}") for letter in "abc"]
    whole = fake_gpus.gpus(2, "NVIDIA A100-SXM4-40GB", 40960, "580.95.05", "8.0")
    divided = [{**whole[0], "mig.mode.current": "Enabled", "instances": instances}, whole[1]]
    monkeypatch.setenv("PATH", fake_gpus.install(tmp_path, divided), prepend=":")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "MIG-b,MIG-c")
    machine = local.detect()
    assert [gpu.uuid for gpu in machine.devices] == ["MIG-b", "MIG-c"]
    assert hardware.gpu_addresses(["MIG-b", "1"]) == [gpu["pci.bus_id"] for gpu in whole]


@pytest.mark.parametrize(
    ("listed", "visible", "names"),
    [
        (2, "0,1", ["GPU-000", "GPU-111"]),  # a control group hides the GPUs of other jobs
        (8, "6,7", ["GPU-666", "GPU-777"]),  # no control group
        (8, "GPU-666,GPU-777", ["GPU-666", "GPU-777"]),
        (8, None, [f"GPU-{number}{number}{number}" for number in range(8)]),
    ],
)
def test_jobs_of_slurm_have_the_gpus_that_slurm_gave_them(
    listed: int,
    visible: str | None,
    names: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    of_node = fake_gpus.gpus(listed, "NVIDIA H100 80GB HBM3", 81559, "580.95.05", "9.0")
    monkeypatch.setenv("PATH", fake_gpus.install(tmp_path, of_node), prepend=":")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    machine = local.detect()
    assert [gpu.uuid for gpu in machine.devices] == names
    assert (machine.gpus, machine.fault) == (len(names), "")


def test_a_lowered_power_limit_makes_another_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    limit = {"power.limit": "250.00", "power.default_limit": "400.00", "compute_mode": "Default"}
    names = []
    for state in ({}, {**limit, "power.limit": "400.00"}, limit):
        listed = [{**TWO[0], **state}]
        monkeypatch.setenv("PATH", fake_gpus.install(tmp_path, listed), prepend=":")
        here = local.detect().identity
        hardware.listed.cache_clear()
        recorded = hardware.describe([0])
        assert recorded["gpus"][0]["state"].get("compute_mode") == state.get(
            "compute_mode", "[N/A]"
        )
        environment = {"hardware": recorded, "system": {"host": here.host}}
        of_record = identities.identity(environment).hardware
        assert of_record == here.hardware
        names.append(of_record.partition(",")[0])
    assert names == [*2 * ["NVIDIA A100-SXM4-40GB"], "NVIDIA A100-SXM4-40GB at 250 of 400 W"]


@pytest.mark.parametrize(
    ("name", "usual", "other"),
    [("NVIDIA L40S", "Enabled", "Disabled"), ("NVIDIA RTX A6000", "Disabled", "Enabled")],
)
def test_an_unusual_mode_of_ecc_makes_another_machine(name: str, usual: str, other: str) -> None:
    kinds = [kind(name, {"ecc.mode.current": mode}) for mode in ("[N/A]", usual, other)]
    assert kinds[:2] == [name, name]
    assert kinds[2].startswith(f"{name} (ECC ")
