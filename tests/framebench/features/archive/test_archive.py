"""Archives: complete, checked, with the same tables, and redacted on request."""

from __future__ import annotations

import hashlib
import io
import json
import random
import zipfile
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import rocrate
from framebench import cli
from framebench.commands import reporting
from framebench.config.validation import ConfigError
from framebench.features.archive import contents, crate
from framebench.features.archive.command import make_archive
from framebench.features.archive.redaction import Redaction
from framebench.records.sidecars import calls
from rocrate_validator import models, services
from rocrate_validator.utils.http import HttpRequester

from ...made_up_records import record_of

ROOT = Path(__file__).parents[4]
HOST, ADDRESS, HOME = "gpu07.example.org", "10.20.30.40", "/home/alice"
UUID = "GPU-1b4e28ba-2fa1-11d2-883f-0016d3cca427"
NAMES = ("gpu07", "example", "10.20.30", "alice", "1b4e28ba", "secret-project", "/srv", "quokka")
PINS = "dependencies: [python=3.11, pip=25.3, {pip: [numpy==1.26.4]}]\n"
CASE: dict[str, Any] = {
    "mode": "train",
    "framework": "pytorch",
    "model": "resnet50_v1.5",
    "nodes": 1,
    "devices_per_node": 2,
    "batch_per_device": 4,
    "precision": "fp32",
    "compiler": "none",
    "sequence_length": None,
}


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
    cases = [CASE, {**CASE, "devices_per_node": 1}, {**CASE, "framework": "jax", "compiler": "jit"}]
    for number, case in enumerate(cases):
        for repeat in (1, 2, 3):
            other = failed if (number, repeat) == (0, 3) else {}
            path = folder / "runs" / f"case-{number}" / f"r{repeat}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(named(record_of(rng, case, repeat, **other))))
    calls.note(folder, "mine", f"snakemake --cores all --config results={HOME}/fb/results")
    (tmp_path / "mine.yaml").write_text(f"variants:\n  a: {{preload: {HOME}/lib/liballoc.so}}\n")
    return folder


def packed(results: Path, into: Path, redacts: bool = False) -> Path:
    """Return the archive of the results, unpacked."""
    environments = [ROOT / "envs/pytorch.yaml"]
    source = contents.ArchiveSource(results, results.parent / "mine.yaml", environments)
    before = {*results.glob("archives/*")}
    make_archive(source, redacts)
    (archive,) = {*results.glob("archives/*")} - before
    with zipfile.ZipFile(archive) as file:
        file.extractall(into)
    return into


def files(folder: Path) -> dict[str, bytes]:
    paths = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def test_the_same_tables_are_made_of_what_was_handed_on(results: Path, tmp_path: Path) -> None:
    reporting.make_report(results / "runs", results)
    archive = packed(results, tmp_path / "elsewhere")
    reporting.make_report(archive / "runs", tmp_path / "again")
    made, handed_on, first = (
        files(path / "tables") for path in (tmp_path / "again", archive, results)
    )
    for name in (name for name in first if name != reporting.ARCHIVED):  # this one links to records
        assert made[name] == handed_on[name] == first[name], name
    assert {*made} == {*handed_on} == {*first}


def test_all_that_belongs_to_the_results_is_there_with_its_checksum(
    results: Path, tmp_path: Path
) -> None:
    (results / "runs" / "truncated.json").write_text('{"format": ')
    actual = files(packed(results, tmp_path / "elsewhere"))
    sums = actual.pop(contents.CHECKSUMS).decode().splitlines()
    assert sums == [
        f"{hashlib.sha256(actual[name]).hexdigest()}  {name}" for name in sorted(actual)
    ]
    expected = {"suite.yaml", "envs/pytorch.yaml", "calls.csv", "report.html", "CITATION.cff"}
    assert expected <= {*actual}
    for name, content in files(results / "runs").items():
        assert actual[f"runs/{name}"] == content, "a record is not as it was"


def test_the_command_adds_the_environments_of_the_records(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parts = ["archive", "--results", str(results), "--suite"]
    own = results.parent / "own.yaml"
    own.write_text(PINS)
    (results.parent / "mine.yaml").write_text(f"variants: {{a: {{environments: {{jax: {own}}}}}}}")
    added = results.parent / "pytorch-with-0a1b2c3d.yaml"
    added.write_text(PINS)
    file = next((results / "runs").rglob("*.json"))
    record = json.loads(file.read_text())
    record["environment"]["prefix"] = str(results.parent / f"{added.stem}-4e5f6a7b")
    file.write_text(json.dumps(record))
    assert cli.main([*parts, str(results.parent / "mine.yaml")]) == 0
    (path,) = results.glob("archives/*.zip")
    assert f"archive: {path} (" in capsys.readouterr().out
    with zipfile.ZipFile(path) as archive:
        names = {name for name in archive.namelist() if name.startswith("envs/")}
    assert {
        "envs/own.yaml",
        "envs/pytorch-with-0a1b2c3d.yaml",
        "envs/pytorch.yaml",
        "envs/pytorch.hashes.txt",
        "envs/jax.yaml",
    } <= names
    assert cli.main([*parts, "quick"]) == 1
    assert f"--suite: found quick, but {results} was measured by mine" in capsys.readouterr().err
    assert cli.main([*parts, "nosuch"]) == 2
    assert "found 'nosuch'; allowed: " in capsys.readouterr().err


def test_the_same_results_are_the_same_archive(results: Path) -> None:
    source = contents.ArchiveSource(results, results.parent / "mine.yaml", [])
    archives = []
    for _ in range(2):
        make_archive(source, False)
        (path,) = results.glob("archives/*.zip")
        archives.append(path.read_bytes())
    assert archives[0] == archives[1]


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
    record = json.loads((redacted / "runs/case-0/r3.json").read_text())
    assert record["environment"]["packages"]["cuda-toolkit"] == "13.0.3.0"
    assert record["command"] == ["path-2/bin/python", "path-3/scripts/harness"]
    assert {rank["host"] for rank in record["ranks"]} == {record["environment"]["system"]["host"]}
    assert record["reason"].startswith("rank 1 on host-1 (address-1:29500): PermissionError: 'path")
    assert record["reason"].endswith("cuda-toolkit==13.0.3.0 and /usr/lib/libc.so are there")


def test_a_file_that_cannot_be_redacted_is_left_out_and_told(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (results / "runs" / "truncated.json").write_text(f'{{"host": "{HOST}"')
    archive = packed(results, tmp_path / "redacted", redacts=True)
    assert not (archive / "runs" / "truncated.json").exists()
    assert "left out: runs/truncated.json: is no complete JSON" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("12.5 images/s at 10:20:30", "12.5 images/s at 10:20:30"),
        ("PYTHONPATH=/srv/a:/srv/b", "PYTHONPATH=path-1:path-2"),
        ("127.0.0.1 and ::1 and 192.168.0.7", "127.0.0.1 and ::1 and address-1"),
        ("fe80::1ff:fe23:4567:890a", "address-1"),
        ("02:42:ac:11:00:02 of eth0", "address-1 of eth0"),
        ("mail bob@example.org twice: bob@example.org", "mail mail-1 twice: mail-1"),
        ("CUDA_VISIBLE_DEVICES=GPU-1b4e28ba", "CUDA_VISIBLE_DEVICES=uuid-1"),
        ("as /home/carol said, carol.", "as path-1 said, person-1."),
        ("torch 2.13.0+cpu, GLIBC_2.34", "torch 2.13.0+cpu, GLIBC_2.34"),
    ],
)
def test_what_is_a_name(text: str, expected: str) -> None:
    redaction = Redaction()
    redaction.learn({"reason": text})
    assert redaction.text(text) == expected


def test_a_folder_that_a_kind_was_given_is_somebodys() -> None:
    """Fail if a benchmark's folder is not redacted, also with a blank in it."""
    options = {
        "folder": f"{HOME}/big disk",
        "data": "/usr/share/x",
        "operation": "all_reduce",
        "n": 3,
    }
    record = {"parameters": options, "command": [f"folder={HOME}/big disk"]}
    redaction = Redaction()
    redaction.learn(record)
    assert redaction.record(record) == {
        "parameters": {**options, "folder": "path-1"},
        "command": ["folder=path-1"],
    }


def test_what_lies_in_a_folder_that_a_kind_was_given_is_somebodys_too() -> None:
    record = {"parameters": {"folder": "/scratch"}, "reason": "no room in /scratch/alice/x"}
    redaction = Redaction()
    redaction.learn(record)
    assert "alice" not in str(redaction.record(record))


def test_a_framework_is_not_a_host_of_its_name() -> None:
    record = {"case": {"framework": "jax"}, "ranks": [{"host": "jax"}], "reason": "jax is down"}
    redaction = Redaction()
    redaction.learn(record)
    assert redaction.record(record) == {
        "case": {"framework": "jax"},
        "ranks": [{"host": "host-1"}],
        "reason": "host-1 is down",
    }


def test_a_job_of_a_cluster_tells_neither_nodes_nor_whose_it_is() -> None:
    job = {"name": "slurm", "job": "7", "partition": "main", "qos": "high", "exclusive": True}
    named = {"nodelist": "n[1-2]", "account": "vision-lab", "reservation": "gpu-June"}
    redaction = Redaction()
    redaction.learn({"scheduler": {**job, **named}})
    stand_ins = {"nodelist": "host-1", "account": "account-1", "reservation": "reservation-1"}
    assert redaction.record({"scheduler": {**job, **named}}) == {"scheduler": {**job, **stand_ins}}


def test_the_suite_that_replaces_another_on_gpus_is_archived(tmp_path: Path) -> None:
    quick, on_gpus = (
        ROOT / "config" / "suites" / f"{name}.yaml" for name in ("quick", "quick_gpu")
    )
    assert contents.measured_suite(tmp_path, quick) == quick
    calls.note(tmp_path, "quick_gpu", "snakemake")
    assert contents.measured_suite(tmp_path, quick) == on_gpus
    calls.note(tmp_path, "quick", "snakemake")
    assert contents.measured_suite(tmp_path, quick) == quick


def test_results_of_another_suite_are_refused(results: Path) -> None:
    with pytest.raises(ConfigError, match=r"--suite: found quick, .* measured by mine; allowed"):
        contents.check(contents.ArchiveSource(results, Path("quick.yaml"), []))


def test_nothing_measured_is_nothing_to_hand_on(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"results: found .* no record in runs/; allowed"):
        contents.check(contents.ArchiveSource(tmp_path, Path("quick.yaml"), []))
    with pytest.raises(ConfigError, match=f"results: found {tmp_path}, which has no record"):
        make_archive(contents.ArchiveSource(tmp_path, Path("quick.yaml"), []), redacts=False)


class _Context:
    """Context of RO-Crate from the library, so that no test needs a network.
    It equals version 1.1 except for one term."""

    status_code, headers = 200, {"Content-Type": "application/ld+json"}

    def json(self) -> Any:
        text = Path(rocrate.__file__).with_name("data").joinpath("ro-crate.jsonld").read_text()
        context = json.loads(text)
        terms = context["@context"]
        terms["ComputationalWorkflow"] = "https://bioschemas.org/ComputationalWorkflow"
        return context


def test_the_metadata_are_a_workflow_run_crate(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(HttpRequester, "get", lambda *_, **__: _Context(), raising=False)
    archive = packed(results, tmp_path / "elsewhere")

    def issues() -> list[str]:
        actual = services.validate(
            services.ValidationSettings(
                rocrate_uri=str(archive),
                profile_identifier="workflow-run-crate-0.5",
                requirement_severity=models.Severity.REQUIRED,
            )
        )
        return [f"{issue.check.identifier}: {issue.message}" for issue in actual.get_issues()]

    assert issues() == []
    path = archive / crate.FILE
    path.write_text(path.read_text().replace('"mainEntity"', '"somethingElse"'))
    assert issues(), "the validator finds nothing wrong with a crate without a workflow"
