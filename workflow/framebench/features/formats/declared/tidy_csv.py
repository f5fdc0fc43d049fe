"""The project's own table of runs, which ``report`` and ``compare`` read."""

from __future__ import annotations

from collections.abc import Iterator

from ....records import tidy_csv
from ..format import ExportedFile, Format, Results
from ..rows import ImportedFigure
from ..source import ImportedFile


def write(results: Results) -> ExportedFile:
    return ExportedFile(tidy_csv.text_of(results.rows()))


def read(source: ImportedFile) -> Iterator[ImportedFigure]:
    lines = [line for line, _ in source.lines()]
    if lines and source.is_cut_off(lines[-1]):
        source.refuse("found a last line without an end; allowed: a whole file", lines[-1])
    runs, problems = tidy_csv.read_csv(source.path)
    if problems:
        source.refuse(problems[0].message)
    yield from map(ImportedFigure, runs)


FORMATS = [
    Format(
        "csv",
        ".csv",
        "table of runs",
        write=write,
        read=read,
        holds="each repeat of each figure, with case, conditions, status and reason",
        flags="column `flags`; *noisy* is determined again",
        lost="step times, memory, energy, hardware and everything else of a record except its "
        "figures",
        taken="every row",
        not_taken="nothing",
        missing="nothing that it has columns for",
    )
]
