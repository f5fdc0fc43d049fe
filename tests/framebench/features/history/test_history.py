"""History of result sets: finding, reading and caching them, their order, changes, and the page."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import sqlite3
import tarfile
import time
import zipfile
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from framebench import cli
from framebench.features.history import index, sources, trends
from framebench.features.history.trends import CaseHistory
from framebench.records.run import RecordsError

from ...browser import Browser
from ...comparison import made_up_sides
from ...full_disk import check_full_disk
from ...imported import packages_behind
from .result_sets import write_set

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


def every(paths: Sequence[Path], file: Path, by: str = "date") -> list[CaseHistory]:
    measured, problems = index.load(sources.find(paths), file)
    actual, unplaced = trends.series_of(measured, by)
    assert not [*problems, *unplaced]
    return actual


def test_a_change_is_found_with_what_else_changed(sets: Path, tmp_path: Path) -> None:
    (series,) = every([sets], tmp_path / "index")
    assert len(series.places) == SETS, "another version was taken for another case"
    frame = trends.changes_frame([series])
    (row,) = frame.to_dict("records")
    assert (row["kind"], row["direction"]) == ("jump", "worse")
    assert (row["points_before"], row["points_after"]) == (CHANGED, SETS - CHANGED)
    assert row["ratio"] == pytest.approx(0.9, abs=0.01)
    assert row["ratio_ci_low"] < row["ratio"] < row["ratio_ci_high"] < 1
    assert row["p_adjusted"] <= 0.05
    assert "system.kernel 6.1.0 -> 6.2.0" in row["differences"]
    assert f"framework_version 2.{CHANGED}.0 -> 2.{CHANGED + 1}.0" in row["differences"]
    assert "packages" not in row["differences"], "what is the same is named"
    assert "jump 0.9" in trends.summary_text([series], frame)
    points = trends.points_frame([series])
    assert points["change"].tolist() == [""] * CHANGED + ["jump"] + [""] * (SETS - CHANGED - 1)


def test_an_own_model_is_one_series_over_edits_and_its_versions_are_told(tmp_path: Path) -> None:
    """Fail if an edited model begins another series, in a set of its own or in the same."""
    for day, version in enumerate(["0" * 8, "1" * 8, "2" * 8]):
        name = f"set-{min(day, 1)}"
        home = write_set(tmp_path / "written", 1.0, day) / "runs" / "pytorch"
        record = json.loads((home / "resnet50_v1.5" / "case" / "r1.json").read_text())
        record["case"]["model"] = f"net@{version}"
        own = {"framework": "pytorch", "source": "/net.py", "sha256": version * 8}
        record["own_model"] = {**own, "commit": f"{day:x}" * 40, "modified": False}
        file = tmp_path / "sets" / name / "runs" / "pytorch" / version / "case" / "r1.json"
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps(record))
        shutil.rmtree(tmp_path / "written")
    (series,) = every([tmp_path / "sets"], tmp_path / "index")
    points = trends.points_frame([series])
    assert points["model"].unique().tolist() == ["net"]
    assert points["model_version"].tolist() == ["0" * 8, "1" * 8, "2" * 8]
    (by_commit,) = every([tmp_path / "sets"], tmp_path / "index", "commit")
    commits = [measured.point.commit for measured in by_commit.measured]
    assert commits == ["0" * 12, "1" * 12, "2" * 12], "Framebench's commit stands for the model's"
    one, other = (measured.point for measured in series.measured[:2])
    assert f"model_version {'0' * 8} -> {'1' * 8}" in trends.describe_differences(one, other)


@pytest.mark.parametrize(
    ("by", "first", "last"),
    [
        ("date", "2030-03-17 17:47", "2030-03-30 17:47"),
        ("commit", "0" * 10, "0" * 10 + f" #{SETS}"),  # all test commits begin alike
        ("version", "2.1.0", f"2.{SETS}.0"),
        ("name", "set-0", f"set-{SETS - 1}"),
    ],
)
def test_sets_are_ordered_and_called_as_is_asked(
    by: str, first: str, last: str, sets: Path, tmp_path: Path
) -> None:
    (series,) = every([sets], tmp_path / "index", by)
    assert (series.labels[0], series.labels[-1]) == (first, last)
    order = [point.point.version for point in series.measured]
    by_time = [f"2.{day + 1}.0" for day in range(SETS)]
    assert (order == by_time) == (by != "name")


def test_a_set_without_what_orders_it_is_left_out_and_named(tmp_path: Path) -> None:
    code = {"version": "1", "dirty": False}
    for number in range(2):
        write_set(tmp_path / f"set-{number}", 1.0 + number / 10, number)
    record = next((tmp_path / "set-1").rglob("r1.json"))
    content = json.loads(record.read_text())
    content["environment"]["code"] = code
    record.write_text(json.dumps(content))
    measured, _ = index.load(sources.find([tmp_path]), tmp_path / "index")
    (series,), problems = trends.series_of(measured, "commit")
    assert len(series.measured) == 1
    assert [problem.origin for problem in problems] == ["set-1"]
    assert "no commit is known" in problems[0].message


def test_a_case_that_one_set_lacks_or_failed_at_is_missing_there(
    sets: Path, tmp_path: Path
) -> None:
    failed = write_set(tmp_path / "sets" / "failed", 1.0, 3, status="failed", reason="broke")
    record = next(failed.rglob("r1.json"))
    content = json.loads(record.read_text())
    content["metrics"]["throughput"]["value"] = None
    content |= {"samples": None, "window_seconds": None}
    record.write_text(json.dumps(content))
    (series,) = every([sets], tmp_path / "index")
    assert len(series.measured) == SETS + 1
    assert len(series.places) == SETS
    frame = trends.points_frame([series])
    (row,) = frame[frame["set"] == "failed"].to_dict("records")
    assert (row["status"], row["reason"]) == ("failed", "broke")
    assert pd.isna(row["median"])
    assert len(trends.changes_frame([series])) == 1


def test_archives_and_folders_of_records_are_sets_too(tmp_path: Path) -> None:
    kept = tmp_path / "sets"
    for number in range(4):
        write_set(tmp_path / "made" / f"set-{number}", 1.0, number)
    kept.mkdir()
    shutil.move(tmp_path / "made" / "set-0", kept / "results")
    shutil.move(tmp_path / "made" / "set-1" / "runs", kept / "records")
    with tarfile.open(kept / "set.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "made" / "set-2", "anything/results")
    with zipfile.ZipFile(kept / "set.zip", "w") as zipped:
        for file in (tmp_path / "made" / "set-3").rglob("*.json"):
            zipped.write(file, file.relative_to(tmp_path / "made" / "set-3"))
    (kept / "notes.txt").write_text("no set")
    (kept / "empty").mkdir()
    actual = sources.find([kept])
    assert [result_set.name for result_set in actual] == [
        "records",
        "results",
        "set.tar.gz",
        "set.zip",
    ]
    (series,) = every([kept], tmp_path / "index")
    days = [point.point.commit[-1] for point in series.measured]
    assert len({*days}) == 1, "commits are shortened"
    assert [point.source.name for point in series.measured] == [
        "results", "records", "set.tar.gz", "set.zip"
    ]  # fmt: skip


def test_an_archive_that_is_none_is_named_and_the_others_count(tmp_path: Path) -> None:
    write_set(tmp_path / "sets" / "good", 1.0, 0)
    (tmp_path / "sets" / "bad.zip").write_bytes(b"PK nothing")
    escaping = tmp_path / "sets" / "escaping.tar"
    with tarfile.open(escaping, "w") as archive:
        archive.add(tmp_path / "sets" / "good", "../../outside")
    measured, problems = index.load(sources.find([tmp_path / "sets"]), tmp_path / "index")
    assert {point.source.name for point in measured} == {"good"}
    assert [problem.origin for problem in problems] == ["bad.zip", "escaping.tar"]
    assert not (tmp_path.parent / "outside").exists()
    with pytest.raises(RecordsError, match="cannot be unpacked"):
        index.load(sources.find([tmp_path / "sets" / "bad.zip"]), tmp_path / "index")


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the list of sets that are read from now on."""
    seen: list[str] = []
    read = sources.read

    def noting(path: Path) -> Any:
        seen.append(path.name)
        return read(path)

    monkeypatch.setattr(sources, "read", noting)
    return seen


def test_only_what_changed_is_read_again(sets: Path, tmp_path: Path, reads: list[str]) -> None:
    file = tmp_path / "index"
    first = every([sets], file)
    assert len(reads) == SETS
    assert trends.points_frame(every([sets], file)).equals(trends.points_frame(first))
    assert len(reads) == SETS, "what is known is read again"
    changed = next((sets / "set-3").rglob("r1.json"))
    content = changed.read_text()
    changed.unlink()
    changed.write_text(content.replace("2.3.4", "9.9.9"))
    (series,) = every([sets], file)
    assert reads[SETS:] == ["set-3"]
    packages = {point.source.name: point.point.facts["packages.numpy"] for point in series.measured}
    assert [name for name, version in packages.items() if version == "9.9.9"] == ["set-3"]
    shutil.rmtree(sets / "set-4")
    (series,) = every([sets], file)
    assert len(series.measured) == SETS - 1, "a set that is gone still counts"
    assert reads[SETS:] == ["set-3"]


def test_an_index_that_is_broken_or_of_other_code_is_made_anew(
    sets: Path, tmp_path: Path, reads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "index"
    expected = trends.points_frame(every([sets], file))
    file.write_bytes(b"no database" * 1000)
    assert trends.points_frame(every([sets], file)).equals(expected)
    content = bytearray(file.read_bytes())
    content[2000:] = bytes(len(content) - 2000)
    file.write_bytes(content)
    assert trends.points_frame(every([sets], file)).equals(expected)
    assert len(reads) == 3 * SETS
    monkeypatch.setattr(index, "code_digest", lambda _: "other")
    assert trends.points_frame(every([sets], file)).equals(expected)
    assert len(reads) == 4 * SETS
    (tmp_path / "file").write_text("")
    assert trends.points_frame(every([sets], tmp_path / "file" / "index")).equals(expected)
    assert sqlite3.connect(file).execute("SELECT count(*) FROM sets").fetchone() == (SETS,)


def changed(file: Path, statement: str) -> None:
    with closing(sqlite3.connect(file)) as kept, kept:
        kept.executescript(statement)


ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x, x, x, x FROM n"


def fifo(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


@pytest.mark.parametrize(
    "spoil",
    [
        fifo,
        lambda file: os.truncate(file, 3 * 2**30),
        lambda file: changed(file, f"DROP TABLE sets; CREATE VIEW sets AS {ENDLESS}"),
        lambda file: changed(file, "CREATE TRIGGER x AFTER INSERT ON sets BEGIN SELECT 1; END"),
        lambda file: changed(file, "UPDATE sets SET problems = 'no JSON'"),
        lambda file: changed(file, "UPDATE texts SET text = '[1, 2, 3]' WHERE id = 1"),
        lambda file: changed(file, f"UPDATE texts SET text = '{'[' * 100_000}' WHERE id = 1"),
        lambda file: changed(file, "DELETE FROM texts"),
    ],
    ids=["fifo", "3 GiB", "view", "trigger", "no JSON", "other JSON", "nested", "no texts"],
)
def test_an_index_that_somebody_else_wrote_is_no_index(
    tmp_path: Path, spoil: Callable[[Path], None]
) -> None:
    write_set(tmp_path / "sets" / "one", 1.0, 0)
    file = tmp_path / "index"
    expected = trends.points_frame(every([tmp_path / "sets"], file))
    spoil(file)
    assert trends.points_frame(every([tmp_path / "sets"], file)).equals(expected)


def test_of_a_thousand_sets_that_are_known_nothing_takes_long(tmp_path: Path) -> None:
    """Fail if a query of 1,000 cached sets is slow.
    benchmarks/history_speed.py has 100,000 records."""
    write_set(tmp_path / "set", 1.0, 0)
    (source,) = sources.find([tmp_path / "set"])
    (point,) = sources.read(source.path)[0]
    many = [sources.ResultSet(tmp_path / str(n), str(n), "state") for n in range(1000)]
    file = tmp_path / "index"
    kept = index.connected(file)
    for result_set in many:
        kept.execute(
            "INSERT INTO sets (path, state, problems) VALUES (?, 'state', '[]')",
            (index.name_of(result_set),),
        )
    key, facts = (
        index.number_of_text(kept, index.text_of_key(point.key)),
        index.number_of_text(kept, "{}"),
    )
    row = (key, "higher", "1", "c", 1.0, "ok", "", 7, 100.0, 99.0, 101.0, "", facts)
    ids = [number for (number,) in kept.execute("SELECT id FROM sets")]
    kept.executemany(
        f"INSERT INTO points VALUES ({', '.join('?' * 14)})", [(number, *row) for number in ids]
    )
    kept.commit()
    kept.close()
    start = time.process_time()
    measured, _ = index.load(many, file)
    assert time.process_time() - start < 1
    assert len(measured) == 1000
    assert measured[0].point.key == point.key


def test_the_command_writes_tables_and_a_page(
    sets: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert cli.main(["history", "--sets", str(sets), "--results", str(out)]) == 0
    said = capsys.readouterr().out
    assert f"{SETS} sets, by date" in said
    assert "1 series, 1 change\n" in said
    page = (out / "history.html").read_text()
    assert "system.kernel 6.1.0 -&gt; 6.2.0" in page
    assert page.partition("<script")[0].count("<svg") == 1
    table = pd.read_csv(out / "tables" / "changes.csv")
    assert table["kind"].tolist() == ["jump"]
    assert len(pd.read_csv(out / "tables" / "history.csv")) == SETS
    assert "jump" in (out / "tables" / "changes.md").read_text()
    notes = tmp_path / "notes.txt"
    notes.write_text("no set")
    for wrong, message in (
        ([tmp_path / "gone"], "does not exist"),
        ([out], "holds no results"),
        ([notes], "holds no results"),
        ([sets, sets], "twice; allowed: each once"),
    ):
        assert cli.main(["history", "--sets", *map(str, wrong), "--results", str(out)]) == 1
        assert message in capsys.readouterr().err


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


def test_a_disk_that_fills_up_leaves_the_former_history(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def words(runs: Path, earlier: Path) -> list[str | Path]:
        return ["history", "--by", "name", "--sets", earlier, runs]

    check_full_disk(tmp_path / "results", capsys, words)


def test_an_index_is_discarded_with_any_code_that_makes_points() -> None:
    assert set(index.CODE) == packages_behind("features.history.index")
