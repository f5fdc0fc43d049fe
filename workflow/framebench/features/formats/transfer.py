"""Export of result sets to other tools' formats, and import of their files."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from core import bounded

from ...files.whole_files import write_whole, write_whole_bytes
from ...records import record_sets, tidy_csv
from ...records.record_sets import RecordsError
from ...tables import formatting
from ...tables.results import CaseResults
from . import names, registry, rows
from .format import ExportedFile, Format, Results
from .source import MOST_ROWS, ImportedFile, sources

FOLDER = "export"
#: Most names in one line.
_MOST_NAMES = 12


def export_cases(cases: CaseResults, name: str, target: Path | None, results: Path) -> list[str]:
    """Write cases in the format ``name`` to ``target``, by default below ``results``.

    Returns lines about what was written and what was left out. Raises ConfigError for an unknown
    format; RecordsError if nothing can be written; OSError if writing fails."""
    form = registry.writer(name)
    assert form.write, "of those that can be written"
    path = target or results / FOLDER / f"{form.name}{form.suffix}"
    results_of = Results(tuple(cases.values()), names.names_of(cases))
    written = form.write(results_of) if cases else ExportedFile("", (), is_empty=True)
    missing = [
        f"not in it: {text}" + (f" ({count} times)" if count > 1 else "")
        for text, count in Counter(written.left_out).items()
    ]
    if written.is_empty:
        nothing = f"export: nothing of these results can be written as {form.tool}; no file is made"
        raise RecordsError("\n".join([nothing, *missing]))
    content = written.content
    content = content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content
    if path.is_dir():
        raise RecordsError(f"export: {path} is a folder; allowed: the path of a file")
    write_whole_bytes(path, content)
    lost = [f"never in it: {form.lost}"] if form.lost else []
    return [*missing, *lost, f"{form.tool}: {path}"]


def import_files(name: str, path: Path, results: Path) -> list[str]:
    """Import the figures of a file or folder in the format ``name``.

    Writes ``runs/runs.csv`` below ``results``. Returns lines about what was read and what was left
    out. Raises ConfigError for an unknown format; RecordsError for unreadable files and for results
    that hold something else."""
    form = registry.reader(name)
    files = sources(path, (form.suffix, *form.others))
    figures, refused = _figures_of(files, form)
    if not figures:
        raise RecordsError(_nothing_read(path, files, refused, form))
    if len(figures) > MOST_ROWS:
        raise RecordsError(f"import: {path}: holds {len(figures)} figures; allowed: {MOST_ROWS}")
    completed = rows.complete(figures)
    text = tidy_csv.text_of(
        row for run in completed for row in tidy_csv.rows_of(run, [flag.name for flag in run.flags])
    )
    target = results / "runs" / record_sets.CSV_NAME
    _check_results(results, target, text)
    write_whole(target, text)
    found, problems = tidy_csv.read_csv(target)
    if problems:
        target.unlink()
        raise RecordsError(f"import: {path}: {problems[0].message}")
    read = len(files) - len(refused)
    lines = [f"{formatting.counted(len(found), 'figure')} of {formatting.counted(read, 'file')}"]
    return [*lines, *_left_out(path, files, refused), f"runs: {target}"]


def _check_results(results: Path, target: Path, text: str) -> None:
    """Raise RecordsError if ``results`` holds anything but this import.

    Repeating an import is allowed."""
    if target.is_file() and bounded.read_bytes(target) == text.encode():
        return
    for folder in (target.parent, results):
        held = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
        held = [
            text for text in held if folder / text != target.parent and not text.startswith(".")
        ]
        if held:
            raise RecordsError(
                f"import: {folder} holds {held[0]} already; allowed: a folder of results in which "
                "nothing is: --results DIR"
            )


def _figures_of(
    files: Sequence[ImportedFile], form: Format
) -> tuple[list[rows.ImportedFigure], list[tuple[str, str]]]:
    """Read all files: return their figures, and reason and path of each refused file.

    Repeats are numbered anew across several files. Copies of a file are read once."""
    assert form.read, "of those that can be read"
    figures: list[rows.ImportedFigure] = []
    refused: list[tuple[str, str]] = []
    seen: dict[str, ImportedFile] = {}
    for file in files:
        try:
            digest = hashlib.sha256(file.content).hexdigest()
            if digest in seen:
                refused.append((": are copies", f"{file.path} (of {seen[digest].path})"))
                continue
            found = list(form.read(file))
        except RecordsError as error:
            refused.append((str(error).removeprefix(f"import: {file.path}"), str(file.path)))
            file.left_out.clear()
            continue
        finally:
            file.forget()
        seen[digest] = file
        if file.is_one_of_many:
            found = [replace(figure, run=replace(figure.run, repeat=0)) for figure in found]
        figures += found
    return figures, refused


def _nothing_read(
    path: Path, files: Sequence[ImportedFile], refused: Sequence[tuple[str, str]], form: Format
) -> str:
    """Return the error message for an import without figures."""
    if refused and not files[0].is_one_of_many:
        ((reason, _),) = refused
        return f"import: {path}{reason}"
    lines = [f"import: {path}: holds no figure of {form.tool}"]
    return "\n".join([*lines, *_left_out(path, files, refused)])


def _left_out(
    path: Path, files: Sequence[ImportedFile], refused: Iterable[tuple[str, str]]
) -> Iterator[str]:
    """Yield a line per reason, with the figures or files skipped for it.

    ``refused``: reason and path of each skipped file."""
    by_reason: dict[str, Counter[str]] = defaultdict(Counter)
    for reason, name in (item for source in files for item in source.left_out):
        by_reason[reason][name] += 1
    for reason, counted in by_reason.items():
        shown = [f"{name} ({count})" if count > 1 else name for name, count in counted.items()]
        more = [f"and {len(shown) - _MOST_NAMES} more"] if len(shown) > _MOST_NAMES else []
        yield f"not taken: {', '.join([*shown[:_MOST_NAMES], *more])}: {reason}"
    files_of: dict[str, list[str]] = defaultdict(list)
    for reason, name in refused:
        files_of[reason].append(name.replace(f"{path}/", ""))
    for reason, found in files_of.items():
        yield f"left out: {', '.join(found)}{reason}"
