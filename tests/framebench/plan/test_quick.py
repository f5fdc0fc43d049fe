"""Sizes of the suite quick."""

from __future__ import annotations

from pathlib import Path

import pytest
from framebench.config.settings import load_settings
from framebench.config.validation import ConfigError
from framebench.machine.local import Machine
from framebench.plan import noting
from framebench.plan.planning import Plan, make_plan
from framebench.records import expected

from ..settings import CATALOG, CONFIG, changed, settings


def quick(results: Path, cores: int) -> Plan:
    settings = load_settings({**CONFIG, "suite": "quick", "results": str(results)}, CATALOG)
    return make_plan(settings, CATALOG, Machine(cores, 0), None)


@pytest.mark.parametrize("cores", [2, 64])
def test_a_device_is_all_cores_and_its_batch_grows_with_them(tmp_path: Path, cores: int) -> None:
    actual = quick(tmp_path, cores)
    assert actual.capacity.cores_per_device == cores
    batches = {
        (case.model, case.mode, case.batch_per_device // cores)
        for case in actual.folders
        if case not in actual.larger
    }
    assert batches == {
        ("resnet50_v1.5", "train", 2), ("resnet50_v1.5", "inference", 4), ("bert_base", "train", 1),
    }  # fmt: skip
    assert len(actual.larger) > len(CATALOG.frameworks)
    for case, base in actual.larger.items():
        assert case == base._replace(batch_per_device=4 * base.batch_per_device)
    noting.note(actual)
    noted = {entry.case._replace(source="") for entry in expected.load(tmp_path)[0]}
    assert not noted & {*actual.larger}, "nobody misses what only leaders are asked for"


def test_devices_of_a_case_share_the_cores_and_their_batch(tmp_path: Path) -> None:
    suite = changed(devices_per_node=[1, 2], batch_per_device=["3 per core", 5])
    actual = make_plan(settings(tmp_path, suite), CATALOG, Machine(8, 0), None)
    assert {case.batch_per_device for case in actual.folders} == {12, 5}


def test_cores_are_no_measure_of_a_gpu(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="batch_per_device: found '2 per core' on GPUs; allowed"):
        make_plan(
            settings(tmp_path, changed(batch_per_device="2 per core")), CATALOG, Machine(8, 1), None
        )
