"""Commands on a full disk."""

from __future__ import annotations

import csv
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from framebench import cli

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


def check_full_disk(
    results: Path,
    capsys: pytest.CaptureFixture[str],
    words: Callable[[Path, Path], list[str | Path]],
) -> None:
    """Fail if a command on a full disk changes its former tables and page.
    ``words``: the command of a table of runs now, and of the folder of an earlier one."""

    def made_of(throughput: float) -> int:
        runs = write_runs(results.parent / "now" / "runs.csv", throughput)
        # A folder with a folder ``runs`` counts as results.
        earlier = write_runs(results.parent / "earlier" / "runs" / "runs.csv", 3000)
        given = words(runs, earlier)
        return cli.main([*map(str, given), "--results", str(results)])

    assert made_of(3000) == 0
    before = contents(results)
    assert any(len(content) > LIMIT for content in before.values()), "nothing would fail"
    with full_disk():
        assert made_of(4000) == 1
    assert "cannot write" in capsys.readouterr().err
    tables = {path: text for path, text in before.items() if path.name[0] != "."}
    after = contents(results)
    assert {path: after[path] for path in tables} == tables, "new tables beside the former page"
    assert made_of(4000) == 0
    assert contents(results) != before
