"""Export of result sets to other tools' formats, and import of their files."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from core import bounded

from ...files.whole_files import write_together, write_whole
from ...records import record_sets, tidy_csv
from ...records.run import RecordsError
from ...tables import formatting
from ...tables.results import CaseResults
from . import file_formats, rows
from .file_formats import ExportedFile, Results
from .source import FormatError, ImportedFile

FOLDER = "export"
#: Most names in one line.
_MOST_NAMES = 12


def export_cases(cases: CaseResults, name: str, target: Path | None, results: Path) -> list[str]:
    """Write cases in the format ``name`` to ``target``, by default below ``results``.

    Returns lines on written and omitted results. Raises ConfigError for an unknown
    format; RecordsError if nothing can be written; OSError if writing fails."""
    form = file_formats.writer(name)
    assert form.write, "one that can be written"
    path = target or results / FOLDER / f"{name}{form.suffix}"
    written = form.write(Results(cases)) if cases else ExportedFile("", is_empty=True)
    missing = [
        f"not in it: {text}" + (f" ({count} times)" if count > 1 else "")
        for text, count in Counter(written.left_out).items()
    ]
    if written.is_empty:
        nothing = f"export: nothing of these results can be written as {name}; no file is made"
        raise RecordsError("\n".join([nothing, *missing]))
    write_together({path: written.content})
    return [*missing, f"{name}: {path}"]


def import_files(name: str, path: Path, results: Path) -> list[str]:
    """Import the figures of a file or folder in the format ``name``.

    Writes ``runs/runs.csv`` below ``results``. Returns lines on imported and omitted figures.
    Raises ConfigError for an unknown format; RecordsError for unreadable files and for results that
    hold something else."""
    form = file_formats.reader(name)
    assert form.read, "one that can be read"
    figures: list[rows.ImportedFigure] = []
    not_taken: list[tuple[str, str]] = []
    refused: list[tuple[str, str]] = []
    paths = _paths(path, (form.suffix, *form.others))
    for place in paths:
        file, shown = ImportedFile(place), str(place).replace(f"{path}/", "")
        try:
            found = list(form.read(file))
        except RecordsError as error:
            if not path.is_dir():
                raise
            refused.append((str(error).removeprefix(f"import: {place}").lstrip(",: "), shown))
            continue
        not_taken += file.left_out
        if path.is_dir():  # files of a folder are repeats
            found = [replace(figure, run=replace(figure.run, repeat=0)) for figure in found]
        figures += found
    left_out = [*_by_reason("not taken", not_taken), *_by_reason("left out", refused)]
    if not figures:
        raise RecordsError(
            "\n".join([(f"import: {path}: has no figure in the format {name}"), *left_out])
        )
    runs = rows.complete(figures)
    text = tidy_csv.text_of(
        row for run in runs for row in tidy_csv.rows_of(run, [flag.name for flag in run.flags])
    )
    target = results / "runs" / record_sets.RUNS
    _check_results(results, target, text)
    write_whole(target, text)
    counts = [(len(runs), "figure"), (len(paths) - len(refused), "file")]
    read = " of ".join(formatting.counted(count, noun) for count, noun in counts)
    return [read, *left_out, f"runs: {target}"]


def _paths(path: Path, suffixes: Sequence[str]) -> list[Path]:
    """Return ``path``, or the files in this folder with one of ``suffixes``, sorted.

    Raises FormatError for a folder without such a file."""
    if not path.is_dir():
        return [path]
    files = sorted(
        file
        for file in path.rglob("*")
        if file.name.endswith(tuple(suffixes)) and not (file.is_dir() or file.name.startswith("."))
    )
    if not files:
        raise FormatError(f"import: {path}: holds no file that ends with {' or '.join(suffixes)}")
    return files


def _check_results(results: Path, target: Path, text: str) -> None:
    """Raise RecordsError if ``results`` holds anything but this import."""
    if target.is_file() and bounded.read_bytes(target) == text.encode():
        return
    if held := sorted(path.name for path in results.glob("[!.]*")):
        raise RecordsError(
            f"import: {results} holds {held[0]} already; allowed: a folder of results in which "
            "nothing is: --results DIR"
        )


def _by_reason(word: str, skipped: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield a line per reason with the first names. ``skipped``: reasons and names."""
    names: dict[str, Counter[str]] = defaultdict(Counter)
    for reason, name in skipped:
        names[reason][name] += 1
    for reason, counted in names.items():
        shown = [f"{name} ({count})" if count > 1 else name for name, count in counted.items()]
        more = [f"and {len(shown) - _MOST_NAMES} more"] if len(shown) > _MOST_NAMES else []
        yield f"{word}: {', '.join([*shown[:_MOST_NAMES], *more])}: {reason}"
