"""Files of a command are all written, or none is, also on a full disk."""

from __future__ import annotations

import csv
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from framebench import cli
from framebench.files.whole_files import write_together

from .saved_records import ROW

#: File size limit in bytes: more than a table of one case, less than a page.
LIMIT = 40_000


@contextmanager
def full_disk(size: int = LIMIT) -> Iterator[None]:
    """Limit files to ``size`` bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def write_runs(path: Path, throughput: float) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, ROW)
        writer.writeheader()
        for repeat in range(1, 4):
            writer.writerow({**ROW, "repeat": repeat, "throughput": throughput + repeat})
    return path


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_files_that_belong_together_are_replaced_together(tmp_path: Path) -> None:
    names = [tmp_path / "a" / "table", tmp_path / "b" / "page", tmp_path / "c"]
    write_together(dict.fromkeys(names, "former"))
    before = contents(tmp_path)
    with full_disk(1000), pytest.raises(OSError, match=r"large.*b/page"):
        write_together({names[0]: "new", names[1]: "x" * 2000, names[2]: b"new"})
    assert contents(tmp_path) == before, "a part was written, or left beside"
    names[2].unlink()
    names[2].mkdir()
    with pytest.raises(IsADirectoryError):
        write_together({names[0]: "new", names[2]: "new"})
    assert names[0].read_text() == "former"
    write_together({names[0]: "new", names[1]: b"new"})
    assert [name.read_text() for name in names[:2]] == ["new", "new"]


@pytest.mark.parametrize("command", ["report", "compare", "history"])
def test_a_disk_that_fills_up_leaves_the_former_tables_and_page(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = tmp_path / "results"

    def made_of(throughput: float) -> int:
        runs = write_runs(tmp_path / "now" / "runs.csv", throughput)
        earlier = write_runs(tmp_path / "earlier" / "runs" / "runs.csv", 3000)
        words = {
            "report": ["--records", runs],
            # A folder with a folder ``runs`` counts as results.
            "compare": ["--base", earlier.parents[1], "--candidate", runs],
            "history": ["--by", "name", "--sets", earlier, runs],
        }
        return cli.main([command, *map(str, words[command]), "--results", str(results)])

    assert made_of(3000) == 0
    before = contents(results)
    assert any(len(one) > LIMIT for one in before.values()), "nothing would fail"
    with full_disk():
        assert made_of(4000) == 1
    assert "cannot write" in capsys.readouterr().err
    tables = {path: text for path, text in before.items() if path.name[0] != "."}
    after = contents(results)
    assert {path: after[path] for path in tables} == tables, "new tables beside the former page"
    assert made_of(4000) == 0
    assert contents(results) != before
