"""Imports of files, and the records that they leave."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from framebench.features.formats import file_formats, transfer
from framebench.records import record_sets
from framebench.records.record_sets import RecordSet
from framebench.records.run import Run

READ = [name for name, form in file_formats.known().items() if form.read]


def brought(name: str, text: str, folder: Path, at: str = "results") -> RecordSet:
    """Return the set that an import of one file leaves, as report and compare read it."""
    file = folder / f"given{file_formats.reader(name).suffix}"
    file.write_text(text)
    transfer.import_files(name, file, folder / at)
    actual = record_sets.load(folder / at / "runs")
    assert not actual.problems
    return actual


def imported(
    name: str, files: Mapping[str, str | bytes], folder: Path
) -> tuple[tuple[Run, ...], list[str]]:
    """Return the runs that an import of a folder with these files leaves, and the printed lines."""
    for path, content in files.items():
        file = folder / "given" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)
    said = transfer.import_files(name, folder / "given", folder / "results")
    actual = record_sets.load(folder / "results" / "runs")
    assert not actual.problems
    return tuple(actual.runs), said


def values_by_case(runs: tuple[Run, ...], metric: str) -> list[list[float | None]]:
    """Return the figures of each case, cases ordered by their first figure."""
    cases: dict[Any, list[float | None]] = defaultdict(list)
    for run in sorted(runs, key=lambda run: run.repeat):
        if run.metrics[0].name == metric:
            cases[run.key].append(run.figure)
    return sorted(cases.values(), key=str)
