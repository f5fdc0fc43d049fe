"""Figures whose verification failed: tables show them, and comparisons exclude them."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from framebench import cli

from .made_up_records import record_of
from .made_up_verifications import CASE, changed, verification_in
from .saved_records import save
from .table_rows import rows_of

PACKAGES = {name: {"numpy": "2.3.4", name: "1"} for name in ("jax", "pytorch", "tensorflow")}
DIFFERS = "outputs differ from the reference by 0.9 (allowed 0.0001)"


def make_set(folder: Path, fast: float = 1.0, wrong: bool = True) -> Path:
    """Write records of three frameworks in fp32 and amp, of one and two devices, with 8 repeats.
    JAX leads. Its verification in fp32 passes, or fails if ``wrong``. ``fast``: JAX's factor."""
    rng = random.Random(1)
    for framework, packages in PACKAGES.items():
        for precision, devices in (("fp32", 1), ("amp", 1), ("fp32", 2)):
            case = {**CASE, "framework": framework, "precision": precision}
            case |= {"devices_per_node": devices}
            for repeat in range(1, 9):
                record = changed(record_of(rng, case, repeat), packages=packages)
                if framework == "jax":
                    record["window_seconds"] /= fast
                    record["metrics"]["throughput"]["value"] *= fast
                save(folder, f"runs/{framework}/{precision}{devices}/r{repeat}.json", record)
            error = 0.9 if wrong and (framework, precision) == ("jax", "fp32") else 1e-6
            verification_in(folder, {**case, "devices_per_node": 1}, error, packages=packages)
    return folder / "runs"


def test_no_comparison_takes_a_figure_whose_verification_failed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    records = make_set(tmp_path)
    assert cli.main(["report", "--records", str(records), "--results", str(tmp_path)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    excluded = f"JAX, BERT-base inference, fp32: {DIFFERS}"
    assert f"Excluded: {excluded}" in said

    (row,) = rows_of(tmp_path, "fastest", precision="fp32", devices_per_node="1")
    assert (row["framework"], row["next_framework"]) == ("pytorch", "tensorflow")
    assert (row["verdict"], row["compared"], row["tried"]) == ("faster", "2", "3")
    assert row["excluded"] == excluded
    assert f"Excluded: {excluded}" in " ".join((tmp_path / "report.html").read_text().split())

    for figure in rows_of(tmp_path, "overview", precision="fp32", devices_per_node="1"):
        assert float(figure["median"]) > 0
        wrong = figure["framework"] == "jax"
        assert ("incorrect" in figure["flags"].split()) == wrong
        assert (figure["part_of_best"] == "1.0") == (figure["framework"] == "pytorch")
        assert bool(figure["part_of_best"]) != wrong

    (gain,) = rows_of(tmp_path, "precision_speedup", framework="jax", precision="amp")
    assert (gain["speedup"], gain["verdict"]) == ("", "")
    assert "incorrect: " in gain["reason"]
    for row in rows_of(tmp_path, "weak_scaling", framework="jax", precision="fp32"):
        assert (row["speedup"], row["verdict"]) == ("", "")
    assert rows_of(tmp_path, "weak_scaling", framework="pytorch", devices="2")[0]["speedup"]


def test_sets_are_not_compared_by_such_a_figure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = make_set(tmp_path / "good", wrong=False)
    wrong = make_set(tmp_path / "wrong", fast=0.5)
    words = ["compare", "--results", str(tmp_path)]
    assert cli.main([*words, "--base", str(good), "--candidate", str(wrong)]) == 0
    cells = {"framework": "jax", "precision": "fp32", "devices_per_node": "1"}
    (row,) = rows_of(tmp_path, "compare", **cells)
    assert (row["ratio"], row["verdict"]) == ("", "cannot tell")
    assert row["reason"] == f"candidate is incorrect: {DIFFERS}"
    gate = ["gate", "--results", str(tmp_path), "--base", str(good), "--candidate", str(wrong)]
    assert cli.main([*gate, "--fail-on", "90%"]) == 4
    assert rows_of(tmp_path, "gate", **cells)[0]["verdict"] == "broken"
    sets = [str(folder) for folder in (tmp_path / "good", tmp_path / "wrong")]
    assert cli.main(["history", "--results", str(tmp_path), "--by", "name", "--sets", *sets]) == 0
    statuses = [row["status"] for row in rows_of(tmp_path, "history", **cells)]
    assert statuses == ["ok", "incorrect"]
    capsys.readouterr()
