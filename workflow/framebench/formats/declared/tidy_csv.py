"""The project's own table of runs, as ``report``, ``compare`` and ``lint`` read it."""

from __future__ import annotations

from collections.abc import Iterator

from ...records import tidy_csv
from ...records.run import Run
from ..format import Format, Results, Written
from ..source import Source


def write(results: Results) -> Written:
    return Written(tidy_csv.text_of(results.rows()))


def read(source: Source) -> Iterator[Run]:
    for _ in source.lines():
        pass  # whole, and of lines that can be read
    runs, problems = tidy_csv.read_csv(source.path)
    if problems:
        source.refuse(problems[0].message)
    yield from runs


FORMATS = [
    Format(
        "csv",
        ".csv",
        "table of runs",
        write=write,
        read=read,
        marks="column `marks`; *few* and *noisy* follow from the repeats again",
        lost="step times, memory, energy, hardware and everything else of a record but its figures",
        missing="nothing that its columns are for",
    )
]
