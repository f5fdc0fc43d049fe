"""``input``: source of the samples of a step, from the suite to the tables."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from core import axes
from framebench.config.validation import ConfigError
from framebench.plan import targets
from framebench.plan.plan_text import describe
from framebench.records import record_sets
from framebench.records.run import Run
from framebench.runs import commands
from framebench.tables.declared.summary import limit

from ..made_up_records import record_of
from ..made_up_runs import build
from ..made_up_verifications import CASE
from ..saved_records import save
from ..settings import CATALOG, plan, plan_of_axes
from ..table_rows import only

ALL = {"input": ["synthetic", "synthetic_host", "data", "dali"]}
IDENTITY = "0123456789ab"


def test_both_modes_have_all_inputs(tmp_path: Path) -> None:
    made = plan_of_axes(tmp_path, mode=["train", "inference"], **ALL)
    actual = sorted((case.mode, case.input) for case in made.folders)
    modes = ("train", "inference")
    assert actual == sorted((mode, name) for mode in modes for name in axes.INPUTS)
    assert "input synthetic_host, input data, input dali" in describe(made)


def test_commands_say_what_is_read(tmp_path: Path) -> None:
    made = plan_of_axes(tmp_path, given={"data": str(tmp_path)}, **ALL)
    first = [run for run in made.runs if run.repeat == 1]
    text = {run.case.input: " ".join(commands.arguments(made, run)) for run in first}
    assert "--input" not in text["synthetic"]
    assert "--data" not in text["synthetic"] + text["synthetic_host"]
    assert "--input synthetic_host" in text["synthetic_host"]
    assert f"--input data --data {tmp_path}" in text["data"]
    assert f"--input dali --data {tmp_path}" in text["dali"]


def test_cases_that_read_data_need_a_folder(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cases that read data, but no folder is named"):
        targets.check_data(plan_of_axes(tmp_path, **ALL), CATALOG)
    nowhere = {"data": str(tmp_path / "nowhere")}
    with pytest.raises(ConfigError, match="nowhere', which is not a folder"):
        targets.check_data(plan_of_axes(tmp_path, given=nowhere, **ALL), CATALOG)
    targets.check_data(plan_of_axes(tmp_path, given={"data": str(tmp_path)}, **ALL), CATALOG)
    targets.check_data(plan_of_axes(tmp_path), CATALOG)


def test_the_kind_reads_the_folder_of_the_configuration(tmp_path: Path) -> None:
    suite = {"measurements": {"input": {"framework": ["pytorch"], "model": ["resnet50_v1.5"],
                                        "batch_per_device": [4], "workers": [0, 2]}}}  # fmt: skip
    made = plan(tmp_path, suite, data=str(tmp_path))
    assert [dict(case.parameters)["workers"] for case in made.folders] == [0, 2]
    arguments = " ".join(commands.arguments(made, made.runs[0]))
    assert f"--data {tmp_path}" in arguments
    assert "--input" not in arguments
    own = suite["measurements"]["input"]
    both = {"measurements": {"input": {**own, "workers": [1], "input": ["data", "dali"]}}}
    other = plan(tmp_path, both, data=str(tmp_path))
    said = [" ".join(commands.arguments(other, run)) for run in other.runs if run.repeat == 1]
    assert sorted("--input dali" in text for text in said) == [False, True]
    assert not any("--input data" in text for text in said), "the kind reads data by default"
    elsewhere = plan(tmp_path, suite, data=str(tmp_path.parent))
    assert set(made.folders.values()).isdisjoint(elsewhere.folders.values())


# ---- records ------------------------------------------------------------------------------------


def fed_run(tmp_path: Path, source: str | None, identity: str = IDENTITY, **rank: Any) -> Run:
    case = {**CASE, "mode": "train", **({"input": source} if source else {})}
    record = record_of(random.Random(1), case, 1)
    if source in axes.READING:
        record["settings"]["data"] = {"folder": "/d", "identity": identity}
    record["ranks"][0].update(rank)
    path = save(tmp_path, f"{len(list(tmp_path.iterdir()))}/r1.json", record)
    actual = record_sets.load(path.parent)
    assert not actual.problems, actual.problems
    return actual.runs[0]


def timed_input(loader: float | None = 2.0) -> dict[str, Any]:
    """Return timings of four steps of 0.5 s, and of 8 samples loaded in ``loader`` seconds."""
    actual: dict[str, Any] = {
        "wait_seconds": [0.1, 0.2, 0.9],
        "copy_seconds": [0.01, 0.03, 0.02],
        "compute_step_seconds": [0.5] * 4,
    }
    if loader is not None:
        actual |= {"loader_samples": 8, "loader_seconds": loader}
    return actual


def test_records_without_an_input_are_synthetic_and_data_sets_are_distinguished(
    tmp_path: Path,
) -> None:
    runs = [fed_run(tmp_path, source) for source in (None, "synthetic", "synthetic_host", "data")]
    runs += [fed_run(tmp_path, source, "abcdefabcdef") for source in ("data", "dali")]
    actual = [one.conditions.input for one in runs]
    assert actual[:4] == ["native", "native", "synthetic_host", "data@01234567"]
    assert actual[4:] == ["data@abcdefab", "dali@abcdefab"]
    cases = [str(one.case) for one in runs]
    assert ["input" in case for case in cases] == [False, False, True, True, True, True]
    assert " input data " in cases[3]
    assert " input dali " in cases[5]


def test_loading_and_computing_stand_apart(tmp_path: Path) -> None:
    skipped = {"data_set": {"images": 9, "skipped": 3}}
    one = fed_run(tmp_path, "data", input_pipeline=timed_input(), **skipped)
    assert one.input_pipeline is not None
    # 4 samples per step on one device
    assert (one.input_pipeline.compute, one.input_pipeline.loader, one.input_pipeline.skipped) == (
        8.0,
        4.0,
        3,
    )
    row = only(build([one, fed_run(tmp_path, "synthetic")])["input_pipeline"])
    assert row["total_throughput"] == one.throughput
    assert (row["compute_throughput"], row["loader_throughput"], row["limited_by"]) == (
        8,
        4,
        "loader",
    )
    assert (row["wait_ms"], row["copy_ms"], row["skipped_images"]) == (200, 20, 3)
    assert row["of_compute"] == pytest.approx((one.throughput or 0) / 8)


@pytest.mark.parametrize(
    ("compute", "loader", "expected"),
    [(100, 90, "loader"), (90, 100, "compute"), (100, 97, "both"), (97, 100, "both")],
)
def test_the_slower_of_loader_and_device_is_named_as_the_limit_if_clear(
    compute: float, loader: float, expected: str
) -> None:
    assert limit(compute, loader) == expected
