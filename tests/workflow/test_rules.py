"""Rules of tables: meaning of targets, ``--until``, ``--forcerun`` and ``--rulegraph``."""

from __future__ import annotations

import os
import shutil
import time

from ..commands import read_rows
from .conftest import CASES, SUITE, Project

RULES = (
    *("benchmark", "peak_flops", "runs"),
    *("medians", "speedups", "weak_scaling", "strong_scaling", "tables"),
)


def test_each_family_of_tables_is_a_target(measured: Project) -> None:
    results, records = measured.folder / "results", measured.records()
    tables = results / "tables"
    whole = (tables / "summary.csv").read_text()
    shutil.rmtree(tables)
    (results / "report.html").unlink()
    ran = measured.run("--cores", "all", "medians", check=True)
    assert (tables / "summary.csv").read_text() == whole
    assert not (tables / "weak_scaling.csv").exists(), "another family was made too"
    ran = measured.run(
        "--cores", "all", "--until", "weak_scaling", "--forcerun", "weak_scaling", check=True
    )
    assert (tables / "weak_scaling.csv").exists(), ran.stdout
    assert not (results / "report.html").exists(), "a rule behind weak_scaling ran"
    assert measured.records() == records, "a table touched records"


def test_a_table_is_never_one_of_fewer_runs(measured: Project) -> None:
    results = measured.folder / "results"
    summary = results / "tables" / "summary.csv"
    next((results / "runs").rglob("r2.json")).unlink()
    dry = measured.run("--cores", "all", "medians", "-n")
    assert {"benchmark", "medians"} <= {line.split(" ")[0] for line in dry.stdout.splitlines()}
    assert "benchmark" in measured.run("medians", "--rulegraph").stdout
    before = summary.read_text()
    measured.medians(check=True)
    assert summary.read_text() != before, "the table is of the removed run"
    assert [row["repeats"] for row in read_rows(summary)] == ["2"] * CASES
    next((results / "runs").rglob("r2.json")).unlink()
    measured.write_suite({**SUITE, "repeats": 1})
    tomorrow = time.time() + 24 * 3600
    for path in (results / "tables").iterdir():
        os.utime(path, (tomorrow, tomorrow))  # as if written by a machine whose clock is ahead
    assert measured.medians().returncode == 0
    assert sorted(row["repeats"] for row in read_rows(summary)) == ["1", "2"], "a removed record"
    assert "Nothing to be done" in measured.medians().stdout


def test_an_edited_input_changes_the_table_made_of_it(measured: Project) -> None:
    results = measured.folder / "results"
    summary, runs = results / "tables" / "summary.csv", results / "runs.csv"
    lines = runs.read_text().splitlines(keepends=True)
    runs.write_text("".join(line for line in lines if "/r2.json" not in line))
    measured.medians(check=True)
    assert [row["repeats"] for row in read_rows(summary)] == ["1"] * CASES
    os.utime(next((results / "runs").rglob("r2.json")))
    assert measured.medians().returncode == 0
    assert [row["repeats"] for row in read_rows(summary)] == ["2"] * CASES, "a record was touched"
    assert "Nothing to be done" in measured.medians().stdout


def test_existing_records_are_shown_with_their_rules(measured: Project) -> None:
    drawn = measured.run("--rulegraph").stdout
    assert all(f'label = "{rule}"' in drawn for rule in RULES), drawn
    listed = measured.run("--summary").stdout.splitlines()
    rows = [line.split("\t") for line in listed if "/runs/" in line]
    assert len(rows) == len(measured.records())
    assert {(row[2], *row[-2:]) for row in rows} == {("benchmark", "ok", "no update")}
    assert "Nothing to be done" in measured.run("--cores", "all", "-n").stdout


def test_a_record_is_a_target_that_cannot_be_forced(measured: Project) -> None:
    record = next((measured.folder / "results" / "runs").rglob("r1.json"))
    content, name = record.read_bytes(), str(record.relative_to(measured.folder))
    assert "Nothing to be done" in measured.run("--cores", "all", name).stdout
    for arguments in (["--forcerun", name], [name, "--forceall"]):
        ran = measured.run("--cores", "all", *arguments)
        assert ran.returncode == 1, ran.stdout
        assert f"{name}: found among what is forced" in ran.stdout
        assert record.read_bytes() == content
    ran = measured.run("--cores", "all", name.replace("r1.json", "r99.json"))
    assert ran.returncode == 1
    assert "r99.json: found among the targets" in ran.stdout
    assert "Traceback" not in ran.stdout


def test_a_plan_changes_nothing_and_tables_that_fail_leave_the_former(measured: Project) -> None:
    results = measured.folder / "results"
    runs = results / "logs" / "files" / "read_files.csv"
    runs.write_text("of other records\n")
    assert measured.run("plan").returncode == 0
    assert runs.read_text() == "of other records\n", "plan has changed it"
    made = [results / "report.html", *(results / "tables").glob("*.[cm][sd]*")]
    before = {path: path.read_text() for path in made}
    assert len(before) > 10
    (results / "runs" / "published.csv").write_text("of,somebody,else\n")
    failed = measured.all()
    assert failed.returncode == 1
    assert "published.csv: found columns of,somebody,else" in failed.stdout
    assert {path: path.read_text() for path in made if path.exists()} == before
    (results / "runs" / "published.csv").unlink()
    measured.medians(check=True)
    assert "of other records" not in runs.read_text(), "the tables were not made"
