"""Archives: complete, with the same tables, and redacted on request."""

from __future__ import annotations

import io
import json
import random
import zipfile
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from framebench import cli
from framebench.features.archive import contents
from framebench.features.archive.contents import make_archive
from framebench.records import sidecars

from ...made_up_records import CASE, record_of
from ...saved_records import save

ROOT = Path(__file__).parents[4]
RECORDS = ROOT / "tests" / "data" / "records"
HOST, ADDRESS, HOME = "gpu07.example.org", "10.20.30.40", "/home/alice"
UUID = "GPU-1b4e28ba-2fa1-11d2-883f-0016d3cca427"
NAMES = ("gpu07", "example", "10.20.30", "alice", "1b4e28ba", "secret-project", "/srv", "quokka")
TWO = {**CASE, "devices_per_node": 2}


def named(record: dict[str, Any]) -> dict[str, Any]:
    """Return a record that says who measured it, and where."""
    environment = record["environment"]
    environment["system"]["host"] = HOST
    environment["prefix"] = f"{HOME}/a b/.venvs/pytorch"
    environment["packages"]["cuda-toolkit"] = "13.0.3.0"
    environment["hardware"]["gpus"] = [{"name": "H200", "uuid": UUID}]
    environment["variables"]["PYTHONPATH"] = f"{HOME}/more:/srv/secret-project"
    record["parameters"]["folder"] = f"{HOME}/scratch quokka"
    record["command"] = [f"{HOME}/a b/.venvs/pytorch/bin/python", f"{HOME}/fb/scripts/harness"]
    for rank in record["ranks"]:
        rank["host"] = HOST
    return record


@pytest.fixture
def results(tmp_path: Path) -> Path:
    rng = random.Random(3)
    folder = tmp_path / "results"
    failed = {
        "status": "failed",
        "reason": f"rank 1 on {HOST} ({ADDRESS}:29500): PermissionError: '/srv/secret-project/x', "
        "gpu07: see https://wiki.example.org/alice; "
        "cuda-toolkit==13.0.3.0 and /usr/lib/libc.so are there",
    }
    cases = [TWO, CASE, {**TWO, "framework": "jax", "compiler": "jit"}]
    for number, case in enumerate(cases):
        for repeat in (1, 2, 3):
            other = failed if (number, repeat) == (0, 3) else {}
            record = named(record_of(rng, case, repeat, **other))
            save(folder, f"runs/case-{number}/r{repeat}.json", record)
    for name in ("environments/pytorch-0", "case-0/r3", "case-0/r3.rank1", "case-0/r2"):
        log = folder / "logs" / f"{name}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text(f"alice on {HOST}\nCUDA error 719\n")
    sidecars.note_call(folder, "mine", f"snakemake --cores all --config results={HOME}/fb/results")
    return folder


def packed(results: Path, into: Path, **options: bool) -> Path:
    before = {*results.glob("archives/*")}
    make_archive(results, **options)
    (archive,) = {*results.glob("archives/*")} - before
    with zipfile.ZipFile(archive) as file:
        file.extractall(into)
    return into


def files(folder: Path) -> dict[str, bytes]:
    paths = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def test_the_same_tables_are_made_of_what_was_handed_on(results: Path, tmp_path: Path) -> None:
    cli.make_report(results / "runs", results)
    (results / "runs" / "truncated.json").write_text('{"format": ')
    archive = packed(results, tmp_path / "elsewhere")
    assert files(archive / "runs") == files(results / "runs"), "a record is not as it was"
    assert (archive / "calls.csv").read_bytes() == (results / "calls.csv").read_bytes()
    cli.make_report(archive / "runs", tmp_path / "again")
    made, handed_on, first = (
        files(path / "tables") for path in (tmp_path / "again", archive, results)
    )
    # an archive's report.html does not link to records
    for name in (name for name in first if name != cli.ARCHIVED):
        assert made[name] == handed_on[name] == first[name], name
    assert {*made} == {*handed_on} == {*first}


def test_nobody_is_named_in_a_redacted_archive(results: Path, tmp_path: Path) -> None:
    whole = packed(results, tmp_path / "whole")
    redacted = packed(results, tmp_path / "redacted", redacts=True)
    for name, content in files(redacted).items():
        text = content.decode()
        assert not [name for name in NAMES if name in text], name
    for name, content in files(whole / "tables").items():
        if name.endswith(".csv"):
            both = (io.BytesIO(content), redacted / "tables" / name)
            pd.testing.assert_frame_equal(
                *(pd.read_csv(entry).select_dtypes("number") for entry in both)
            )
    for logs in (files(whole / "logs"), files(redacted / "logs")):
        assert {*logs} == {"environments/pytorch-0.log", "case-0/r3.log", "case-0/r3.rank1.log"}
        assert all(log.endswith(b"\nCUDA error 719\n") for log in logs.values())
    record = json.loads((redacted / "runs/case-0/r3.json").read_text())
    assert record["environment"]["packages"]["cuda-toolkit"] == "13.0.3.0"
    assert record["command"] == []
    assert {rank["host"] for rank in record["ranks"]} == {record["environment"]["system"]["host"]}
    assert record["reason"].startswith("rank 1 on host-1 (address-1:29500): PermissionError: path")
    assert record["reason"].endswith("cuda-toolkit==13.0.3.0 and /usr/lib/libc.so are there")


def test_a_file_that_cannot_be_redacted_is_left_out_and_told(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (results / "runs" / "truncated.json").write_text(f'{{"host": "{HOST}"')
    archive = packed(results, tmp_path / "redacted", redacts=True)
    assert not (archive / "runs" / "truncated.json").exists()
    assert "left out: runs/truncated.json: is not complete JSON" in capsys.readouterr().err


def test_only_named_fields_go() -> None:
    record = json.loads((RECORDS / "train.json").read_text())
    before = json.loads(json.dumps(record))
    record["secret"] = record["environment"]["system"]["secret"] = "quokka"
    record["ranks"][0]["secret"] = {"deep": ["quokka"]}
    record["environment"]["scheduler"] = {"name": "slurm", "account": "quokka", "nodelist": "q7"}
    record["environment"]["variables"] = {"OMP_NUM_THREADS": "4", "API": "X-Api-Key: quokka"}
    record["command"] = ["python", "--token", "quokka"]
    actual = contents.HandedOn(contents.names_in(record)).record(record)
    assert "quokka" not in json.dumps(actual)
    assert actual["environment"]["scheduler"] == {"name": "slurm"}
    assert actual["environment"]["variables"] == {"OMP_NUM_THREADS": "4", "API": "value-1"}
    for name in ("case", "metrics", "status", "samples", "window_seconds"):
        assert actual[name] == before[name]
    assert actual["ranks"][0]["step_seconds"] == before["ranks"][0]["step_seconds"]


def test_texts_of_frameworks_can_stay_behind(results: Path, tmp_path: Path) -> None:
    archive = packed(results, tmp_path / "figures", figures_only=True)
    record = json.loads((archive / "runs/case-0/r3.json").read_text())
    assert (record["status"], record["reason"]) == ("failed", contents.WITHHELD)
    withheld = (b"PermissionError", b"CUDA error 719")
    assert not [text for text in withheld for content in files(archive).values() if text in content]
