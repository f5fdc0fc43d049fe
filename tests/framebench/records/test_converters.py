"""Records of earlier formats are read as what they are. Those in tests/data/records_1 were measured
by commit fcca341, the last one to write the first formats."""

from __future__ import annotations

import copy
import json
import math
from pathlib import Path
from typing import Any

import fastjsonschema
import pytest
from framebench.records import converters, parity, peaks, record_sets, searches

from ...conftest import ROOT

FORMER = ROOT / "tests" / "data" / "records_1"
NAMES = sorted(path.stem for path in FORMER.glob("*.json"))
VALID = fastjsonschema.compile(
    json.loads((ROOT / "workflow/schemas/record.schema.json").read_text())
)


def former(name: str) -> dict[str, Any]:
    return dict(json.loads((FORMER / f"{name}.json").read_text()))


def place(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / f"{name}.json").write_bytes((FORMER / f"{name}.json").read_bytes())
    return folder


@pytest.mark.parametrize("name", NAMES)
def test_a_former_record_becomes_a_valid_one_and_loses_nothing(name: str) -> None:
    before = former(name)
    given = copy.deepcopy(before)
    after = converters.current(before)
    assert before == given, "what was read is changed in place"
    VALID(after)
    assert after["format"] == "framebench-record-2"
    assert converters.current(after) == after, "a record of today is changed"
    elsewhere = {"format", "case", "throughput", "unit", "settings", "ranks"}
    of_search = {"batch_per_device", "ended_at", "multiple_of", "at_most"}
    for key in set(before) - elsewhere - of_search:
        assert after[key] == before[key], key
    for old, new in zip(before.get("ranks", []), after["ranks"], strict=True):
        assert [*old.values()] == [*new.values()], "a raw value is lost"


def test_former_runs_are_the_runs_that_they_were(tmp_path: Path) -> None:
    names = ("train", "inference-2d", "failed", "mxnet-train")
    found = record_sets.load(place(tmp_path, *names))
    assert not found.problems
    runs = {run.origin.removesuffix(".json"): run for run in found.runs}
    assert set(runs) == set(names)
    for name, run in runs.items():
        before = former(name)
        assert run.case.mode == before["case"]["mode"]
        assert run.throughput == before["throughput"]
        assert (run.unit, run.status) == (before["unit"], before["status"])
        assert run.case.batch_per_device == before["case"]["batch_per_device"]
    assert runs["failed"].throughput is None
    assert runs["train"].split is not None


def test_a_former_probe_is_the_peak_that_it_was(tmp_path: Path) -> None:
    found, problems = peaks.load(place(tmp_path, "peak", "mxnet-peak"))
    assert not problems
    by_framework = {peak.framework: peak for peak in found}
    for name, framework in (("peak", "toy"), ("mxnet-peak", "mxnet")):
        (rank,) = former(name)["ranks"]
        rates = [
            2e-12 * block["size"] ** 3 * block["products"] / min(block["seconds"])
            for block in rank["probe"]
        ]
        assert by_framework[framework].tflops == pytest.approx(max(rates), rel=1e-12)


def test_a_former_search_is_the_search_that_it_was(tmp_path: Path) -> None:
    folder = tmp_path / "toy" / "toy"
    folder.mkdir(parents=True)
    (found,), problems = searches.load(place(folder, "largest_batch").parents[1])
    assert not problems
    before = former("largest_batch")
    assert (found.status, found.batch) == ("ok", before["batch_per_device"])
    assert found.attempts == before["attempts"]
    assert found.parameters == {
        "mode": before["case"]["mode"],
        "multiple_of": before["multiple_of"],
        "at_most": before["at_most"],
    }
    assert found.record["wall_seconds"] == sum(one["seconds"] for one in before["attempts"])


def test_a_former_certificate_is_the_certificate_that_it_was(tmp_path: Path) -> None:
    (certificate,), problems = parity.load(place(tmp_path, "mxnet-parity"))
    assert not problems
    assert (certificate.mode, certificate.status) == ("train", "ok")
    (rank,) = former("mxnet-parity")["ranks"]
    before = {one["quantity"]: one["error"] for one in rank["parity"]}
    after = {name: error for name, error, _ in certificate.errors if name != "products"}
    assert after == before
    assert certificate.passed
    parameters = converters.current(former("mxnet-parity"))["parameters"]
    assert parameters == {"mode": "train", "reference": "/reference"}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("value", [None, [], {}, "x", 7, math.nan, [None], {"mode": []}])
def test_what_is_wrong_with_a_former_record_is_left_to_the_schema(name: str, value: Any) -> None:
    for key in former(name):
        after = converters.current({**former(name), key: value})
        assert isinstance(after, dict)


@pytest.mark.parametrize("odd", [None, [], "x", 7, {}, {"format": []}, {"format": "another"}])
def test_what_is_no_record_stays_as_it_is(odd: Any) -> None:
    assert converters.current(odd) == odd
