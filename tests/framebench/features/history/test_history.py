"""History of result sets: finding and reading them, their order, changes, and the page."""

from __future__ import annotations

import json
import random
import re
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from framebench import cli

from ...browser import Browser
from ...comparison import made_up_sides
from ...made_up_records import CASE, record_of
from ...saved_records import save
from ..formats import samples

DAY = 86_400


def write_set(folder: Path, factor: float, day: int, repeats: int = 1, **other: Any) -> Path:
    """Write records of one case; ``other``: changed fields of the record or its environment."""
    of_environment = {name: other.pop(name) for name in ("packages", "system") if name in other}
    for repeat in range(1, repeats + 1):
        record = record_of(random.Random(7), CASE, repeat)
        record["metrics"]["throughput"]["value"] *= factor
        for part in (record, *record["ranks"]):
            part["window_seconds"] /= factor
        moment = datetime.fromtimestamp(1.9e9 + DAY * day + 60 * repeat, UTC)
        record["started"] = moment.isoformat().replace("+00:00", "Z")
        record["environment"]["code"] = {"version": "1", "dirty": False, "commit": f"{day:040x}"}
        record["environment"] |= of_environment
        path = f"runs/pytorch/resnet50_v1.5/case/r{repeat}.json"
        save(folder, path, {**record, **other})
    return folder


SETS, CHANGED = 14, 7


@pytest.fixture
def sets(tmp_path: Path) -> Path:
    """Write one set a day, with folder names in another order, and return their folder.
    On one day the kernel and the figures changed."""
    noise = random.Random(1)
    for day in range(SETS):
        late = day >= CHANGED
        system = {"os": "Debian", "kernel": "6.2.0" if late else "6.1.0"}
        factor = (0.9 if late else 1.0) * noise.gauss(1, 0.005)
        name = f"set-{(day * 5) % SETS}"
        write_set(
            tmp_path / "sets" / name, factor, day, system=system, framework_version=f"2.{day + 1}.0"
        )
    return tmp_path / "sets"


def history(sets: Path, by: str = "date") -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the rows of ``history.csv`` and of ``changes.csv``, made from the sets in a folder."""
    out = sets.parent / "out"
    assert cli.main(["history", "--sets", str(sets), "--by", by, "--results", str(out)]) == 0
    points, changes = (
        pd.read_csv(out / "tables" / f"{name}.csv", dtype={"commit": str, "model_version": str})
        for name in ("history", "changes")
    )
    return points.to_dict("records"), changes.to_dict("records")


def test_a_change_is_found_with_what_else_changed(
    sets: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    points, (change,) = history(sets)
    said = capsys.readouterr().out
    assert f"{SETS} sets, by date" in said
    assert "1 series, 1 change\n" in said
    page = (sets.parent / "out" / "history.html").read_text()
    assert "system.kernel 6.1.0 -> 6.2.0" in page
    assert page.partition("<script")[0].count("<svg") == 1
    assert "worse" in (sets.parent / "out" / "tables" / "changes.md").read_text()
    assert len(points) == SETS, "another version was taken for another case"
    assert change["direction"] == "worse"
    assert (change["points_before"], change["points_after"]) == (CHANGED, SETS - CHANGED)
    assert change["ratio"] == pytest.approx(0.9, abs=0.01)
    assert change["ratio_ci_low"] < change["ratio"] < change["ratio_ci_high"] < 1
    assert change["p_adjusted"] <= 0.05
    assert "system.kernel 6.1.0 -> 6.2.0" in change["differences"]
    assert f"framework_version 2.{CHANGED}.0 -> 2.{CHANGED + 1}.0" in change["differences"]
    assert "packages" not in change["differences"], "what is the same is named"
    begins = [number for number, point in enumerate(points) if point["change"] == "jump"]
    assert begins == [CHANGED]


def test_an_own_model_is_one_series_over_edits_and_its_versions_are_told(tmp_path: Path) -> None:
    for day, version in enumerate(["0" * 8, "1" * 8, "2" * 8]):
        name = f"set-{min(day, 1)}"
        home = write_set(tmp_path / "written", 1.0, day) / "runs" / "pytorch"
        record = json.loads((home / "resnet50_v1.5" / "case" / "r1.json").read_text())
        record["case"]["model"] = f"net@{version}"
        own = {"framework": "pytorch", "source": "/net.py", "sha256": version * 8}
        record["own_model"] = {**own, "commit": f"{day:x}" * 40, "modified": False}
        save(tmp_path / "sets", f"{name}/runs/pytorch/{version}/case/r1.json", record)
        shutil.rmtree(tmp_path / "written")
    points, _ = history(tmp_path / "sets")
    assert [(point["position"], point["model"]) for point in points] == [
        (1, "net"), (2, "net"), (3, "net"),
    ]  # fmt: skip
    assert [point["model_version"] for point in points] == ["0" * 8, "1" * 8, "2" * 8]
    commits = [point["commit"] for point in points]
    assert commits == ["0" * 12, "1" * 12, "2" * 12], "Framebench's commit stands for the model's"


@pytest.mark.parametrize(
    ("by", "first", "last"),
    [
        ("date", "2030-03-17 17:47", "2030-03-30 17:47"),
        ("version", "2.1.0", f"2.{SETS}.0"),
        ("name", "set-0", f"set-{SETS - 1}"),
    ],
)
def test_sets_are_ordered_and_called_as_is_asked(
    by: str, first: str, last: str, sets: Path
) -> None:
    points, _ = history(sets, by)
    labels = [str(point["label"]) for point in points]
    assert (labels[0], labels[-1]) == (first, last)
    order = [point["framework_version"] for point in points]
    by_time = [f"2.{day + 1}.0" for day in range(SETS)]
    assert (order == by_time) == (by != "name")


def test_a_set_without_what_orders_it_is_left_out_and_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_set(tmp_path / "sets" / "set-0", 1.0, 0)
    (tmp_path / "sets" / "set-1.csv").write_text(samples.csv())
    points, _ = history(tmp_path / "sets")
    assert [point["set"] for point in points] == ["set-0"]
    assert re.search(r"set-1\.csv: .* without a known date", capsys.readouterr().err)


def test_a_case_that_one_set_lacks_or_failed_at_is_missing_there(sets: Path) -> None:
    failed = write_set(sets / "failed", 1.0, 3, status="failed", reason="broke")
    record = next(failed.rglob("r1.json"))
    content = json.loads(record.read_text())
    content["metrics"]["throughput"]["value"] = None
    content |= {"samples": None, "window_seconds": None}
    record.write_text(json.dumps(content))
    points, changes = history(sets)
    assert len(points) == SETS + 1
    (row,) = (point for point in points if point["set"] == "failed")
    assert (row["status"], row["reason"]) == ("failed", "broke")
    assert pd.isna(row["median"])
    assert [change["points_before"] for change in changes] == [CHANGED]


def test_folders_of_records_are_sets_too(tmp_path: Path) -> None:
    kept = tmp_path / "sets"
    for number in range(2):
        write_set(tmp_path / "made" / f"set-{number}", 1.0, number)
    kept.mkdir()
    shutil.move(tmp_path / "made" / "set-0", kept / "results")
    shutil.move(tmp_path / "made" / "set-1" / "runs", kept / "records")
    (kept / "notes.txt").write_text("no set")
    (kept / "empty").mkdir()
    points, _ = history(kept)
    assert [point["set"] for point in points] == ["results", "records"]


def test_what_holds_no_results_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("no set")
    for wrong in (tmp_path / "gone", notes):
        assert cli.main(["history", "--sets", str(wrong), "--results", str(tmp_path / "out")]) == 1
        assert "holds no results" in capsys.readouterr().err


def test_few_sets_are_shown_and_said_to_be_too_few(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(3):
        write_set(tmp_path / "sets" / str(number), 1 - 0.3 * (number == 2), number, repeats=7)
    arguments = ["--sets", *map(str, sorted((tmp_path / "sets").iterdir()))]
    assert cli.main(["history", *arguments, "--results", str(tmp_path / "out")]) == 0
    assert "1 series have fewer than 10 sets" in capsys.readouterr().out
    table = pd.read_csv(tmp_path / "out" / "tables" / "history.csv")
    assert table["median_ci_low"].notna().all(), "a point with seven repeats has no interval"
    assert table["repeats"].tolist() == [7, 7, 7]


def test_the_page_of_a_history_is_drawn_and_its_dots_have_values(
    browser: Browser, tmp_path: Path
) -> None:
    for number in range(2):
        made_up_sides.write_set(tmp_path / "sets" / str(number), 1.0, number)
    arguments = ["--sets", str(tmp_path / "sets"), "--results", str(tmp_path)]
    assert cli.main(["history", *arguments]) == 0
    browser.driver.get_log("browser")
    browser.open(tmp_path / "history.html")
    assert browser.driver.get_log("browser") == [], "its script ended in an error"
    assert browser.evaluate("document.querySelectorAll('.unfold').length") == 2
    said = browser.evaluate(
        "[...document.querySelectorAll('figure [data-tip]')].map(one => one.dataset.tip)"
    )
    assert len(said) == 2
    assert all(re.match(r".+: [\d.]+", entry) for entry in said), said
