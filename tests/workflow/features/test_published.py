"""Published figures next to records that cannot be read: tables fail, and none is lost."""

from __future__ import annotations

from ..conftest import Project


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
    again = measured.medians()
    assert again.returncode == 0, again.stdout
    assert "of other records" not in runs.read_text(), "the tables were not made"
