"""``lint`` over tables of further kinds: correct ones are accepted, changed ones are found."""

from __future__ import annotations

import csv
import json
import random
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from framebench import cli
from framebench.commands import reporting
from framebench.features.audit import lint_results
from framebench.features.audit.command import lint_own
from framebench.records import record_sets
from framebench.records.sidecars import assumptions

from ...chartless import without_charts
from ...made_up_records import record_of, write_records
from ...made_up_verifications import CASE, run_in, verification_in
from ...odd_results import write_odd_results


def status_of_lint(results: Path) -> int:
    return cli.main(["lint", "--sources", str(results / "runs"), "--results", str(results)])


def test_unverified_figures_are_no_finding(tmp_path: Path) -> None:
    run_in(tmp_path, CASE)
    run_in(tmp_path, {**CASE, "mode": "train"})
    verification_in(tmp_path, CASE)
    with without_charts():
        assert (
            cli.main(["report", "--records", f"{tmp_path}/runs", "--results", str(tmp_path)]) == 0
        )
    assert (tmp_path / "tables" / "summary.md").read_text().count("unverified") == 2
    assert status_of_lint(tmp_path) == 0


def test_costs_are_no_finding(tmp_path: Path) -> None:
    write_records(tmp_path / "runs", frameworks=("pytorch",), repeats=1)
    assumptions.keep(tmp_path, assumptions.Assumptions(3.6, "EUR"))
    with without_charts():
        reporting.make_report(tmp_path / "runs", tmp_path)
    assert (tmp_path / "tables" / "costs.csv").exists()
    linted = lint_own(tmp_path / "runs", tmp_path)
    assert not [finding for finding in linted.findings if finding.table == "costs"]


def test_a_table_of_another_module_is_recomputed(weather: None, tmp_path: Path) -> None:
    runs = write_records(tmp_path / "runs", 1, frameworks=("pytorch",))
    for name in ("truncated.json", "foreign.json"):
        (runs / name).unlink()
    with without_charts():
        assert cli.main(["report", "--records", str(runs), "--results", str(tmp_path)]) == 0
    assert status_of_lint(tmp_path) == 0
    table = tmp_path / "tables" / "weather.csv"
    table.write_text(table.read_text().replace(",293,", ",294,", 1))
    assert status_of_lint(tmp_path) == 1


def test_records_that_cannot_be_read_are_named(
    tmp_path_factory: pytest.TempPathFactory, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = write_odd_results(tmp_path_factory.mktemp("odd")) / "runs"
    assert cli.main(["lint", "--sources", str(runs), "--results", str(tmp_path)]) == 1
    printed = capsys.readouterr()
    assert "findings in results of our own" in printed.err
    for problem in record_sets.load(runs).problems:
        assert problem.origin in printed.out


def found_by_lint(tmp_path: Path, samples: int) -> list[Any]:
    case = {**CASE, "mode": "train", "accumulation": 3}
    record = record_of(random.Random(1), case, 1)
    window = record["window_seconds"]
    record["metrics"]["throughput"]["value"] = samples / window
    path = tmp_path / "runs" / "case" / "r1.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({**record, "samples": samples}))
    (run,) = record_sets.load(tmp_path / "runs").runs
    return [*lint_results.record_agrees(run)]


def test_lint_counts_the_samples_of_all_micro_steps(tmp_path: Path) -> None:
    assert not found_by_lint(tmp_path / "right", 4 * 3 * 100)
    ((*_, note),) = found_by_lint(tmp_path / "wrong", 4 * 100)
    assert note == "samples of 4 x 1 devices x 3 micro-steps x 100 steps"


def test_lint_recomputes_strong_scaling(tmp_path: Path) -> None:
    runs = write_records(tmp_path / "runs", 4, frameworks=("pytorch",), batches=(2, 4))
    for name in ("truncated.json", "foreign.json"):
        (runs / name).unlink()
    with without_charts():
        assert cli.main(["report", "--records", str(runs), "--results", str(tmp_path)]) == 0
    path = tmp_path / "tables" / "strong_scaling.csv"
    with path.open(newline="") as file:
        listed = list(csv.DictReader(file))
    changed = next(entry for entry in listed if entry["communication_estimate"])
    for column, check in (("efficiency", "ratio"), ("communication_estimate", "communication")):
        before = changed[column]
        changed[column] = "0.987654"
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(changed), lineterminator="\n")
            writer.writeheader()
            writer.writerows(listed)
        changed[column] = before
        assert status_of_lint(tmp_path) == 1
        with (tmp_path / "tables" / "lint.csv").open(newline="") as file:
            (finding,) = csv.DictReader(file)
        assert (finding["table"], finding["check"]) == ("strong_scaling", check)
        assert (finding["printed"], finding["recomputed"]) == ("0.987654", before)


# ---- communication ------------------------------------------------------------------------------


def write_measured(runs: Path, step: dict[str, Any], kind: str, devices: int, **other: Any) -> None:
    """Write the record of a micro-benchmark on the machine of the record ``step``."""
    case = dict.fromkeys(step["case"])
    case |= {"nodes": 1, "devices_per_node": devices, **other.pop("case", {})}
    settings = {key: step["settings"][key] for key in ("accelerator", "cores_per_device")}
    rank = {"host": "node-1", "status": "ok", "reason": ""}
    made = {
        **step, "kind": kind, "case": case, "parameters": other.pop("parameters", {}),
        "settings": {**settings, "time_limit": 60, "seed": 1}, "samples": None,
        "window_seconds": None, "ranks": [{**rank, "rank": n} for n in range(devices)],
        "metrics": {
            name: {"value": value, "unit": unit, "better": "higher", **where}
            for name, (value, unit, where) in other["metrics"].items()
        },
    }  # fmt: skip
    home = runs / f"{kind} {devices}"
    home.mkdir()
    (home / "r1.json").write_text(json.dumps(made))


def test_records_make_tables_and_lint_finds_what_was_changed(tmp_path: Path) -> None:
    runs = write_records(tmp_path / "runs", 1, frameworks=("pytorch",))
    for name in ("truncated.json", "foreign.json"):
        (runs / name).unlink()
    files = sorted(runs.rglob("r1.json"))
    for file in files:
        made = json.loads(file.read_text())
        for rank in made["ranks"] if len(made["ranks"]) > 1 else ():
            rank["gradient_all_reduce"] = {"reason": "", "bytes": [4000, 8], "seconds": [0.25]}
        file.write_text(json.dumps(made))
    step = json.loads(files[0].read_text())
    framework = {"framework": "pytorch"}
    write_measured(runs, step, "memory", 1, metrics={"triad": (9.0, "GB/s", {})})
    products = {"case": {**framework, "precision": "fp32"}}
    shape = {"quantity": "rate", "at": {"batch": 1, "m": 512, "k": 768, "n": 3072}}
    write_measured(
        runs, step, "matmul", 1, **products,
        metrics={"highest_rate": (5.0, "TFLOP/s", {}), "rate at x": (0.2, "TFLOP/s", shape)},
    )  # fmt: skip
    times = {
        f"time at {size}": (100.0 + size, "us", {"quantity": "time", "at": {"bytes": size}})
        for size in (8, 4096)
    }
    write_measured(
        runs, step, "collective", 2, case=framework, parameters={"operation": "all_reduce"},
        metrics={"average_bus_bandwidth": (1.0, "GB/s", {}), **times},
    )  # fmt: skip
    assert cli.main(["report", "--records", str(runs), "--results", str(tmp_path)]) == 0
    tables = {
        name: pd.read_csv(tmp_path / "tables" / f"{name}.csv")
        for name in ("roofline", "communication", "matmul_share")
    }
    reached = tables["roofline"].query("precision == 'fp32' and devices_per_node == 1")
    assert len(reached)
    assert (reached["reached"] > 0).all()
    exchanged = tables["communication"].dropna(subset="expected_all_reduce_ms")
    assert set(exchanged["expected_all_reduce_ms"].round(6)) == {4.2 - 0.1 + 0.108}, "of 4000 and 8"
    assert set(exchanged["all_reduce_alone_ms"]) == {250.0}
    assert " 512x3072x768 " in " ".join(tables["matmul_share"]["reason"]), "what to measure"
    page = (tmp_path / "report.html").read_text()
    assert "Roofline: fp32, 1n1g, 1 core" in page
    for name, table in tables.items():
        assert f'id="table-{name}"' in page
        assert len(table)
    assert status_of_lint(tmp_path) == 0
    for name, column in (("roofline", "bound_tflops"), ("communication", "all_reduce_alone_ms"),
                         ("matmul_share", "covered")):  # fmt: skip
        file = tmp_path / "tables" / f"{name}.csv"
        whole = file.read_text()
        changed = pd.read_csv(file, dtype=str, keep_default_na=False)
        changed.loc[changed[column] != "", column] = "7.5"
        changed.to_csv(file, index=False)
        assert status_of_lint(tmp_path) == 1, name
        file.write_text(whole)
