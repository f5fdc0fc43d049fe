"""Export of result sets to other tools' formats, and import of their files."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from core import bounded

from ...files import json_files
from ...files.whole_files import write_together, write_whole
from ...records import record_sets, tidy_csv
from ...records.record_sets import RecordsError
from ...tables import formatting
from ...tables.results import CaseResults
from . import left_out, names, registry, rows
from .format import ExportedFile, Format, Results
from .source import MOST_ROWS, ImportedFile, sources

FOLDER = "export"
#: SHA-256 of each exported file by absolute path. Files with an unchanged hash may be replaced.
_WRITTEN = ".written.json"


def export_cases(cases: CaseResults, name: str, target: Path | None, results: Path) -> list[str]:
    """Write cases in the format ``name`` to ``target``, by default below ``results``.

    Returns lines about what was written and what was left out. Raises ConfigError for an unknown
    format; RecordsError if nothing can be written or ``target`` is not a file of an earlier export;
    OSError if writing fails."""
    form = registry.writer(name)
    assert form.write, "of those that can be written"
    path = target or results / FOLDER / f"{form.name}{form.suffix}"
    results_of = Results(tuple(cases.values()), names.names_of(cases))
    written = form.write(results_of) if cases else ExportedFile("", (), is_empty=True)
    missing = list(_missing(written))
    if written.is_empty:
        nothing = f"export: nothing of these results can be written as {form.tool}; no file is made"
        raise RecordsError("\n".join([nothing, *missing]))
    content = written.content
    content = content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content
    known = results / FOLDER / _WRITTEN
    ours = _ours(known)
    location, digest = str(path.absolute()), hashlib.sha256(content).hexdigest()
    if path.is_dir():
        raise RecordsError(f"export: {path} is a folder; allowed: the path of a file")
    if path.exists():
        found = hashlib.sha256(bounded.read_bytes(path)).hexdigest()
        if found not in (ours.get(location), digest):
            raise RecordsError(
                f"export: {path} is there and was not written by export, or was changed since; "
                "allowed: a path where nothing is"
            )
    noted = json.dumps({**ours, location: digest}, indent=1, sort_keys=True) + "\n"
    write_together({path: content, known: noted})
    lost = [f"never in it: {form.lost}"] if form.lost else []
    return [*missing, *lost, f"{form.tool}: {path}"]


def _missing(written: ExportedFile) -> Iterator[str]:
    """Yield a line for each result that is not in the file; equal lines are counted."""
    for text, count in Counter(written.left_out).items():
        yield f"not in it: {text}" + (f" ({count} times)" if count > 1 else "")


def _ours(known: Path) -> dict[str, str]:
    try:
        content = json_files.read(known)
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def import_files(name: str, path: Path, facts: Mapping[str, Any], results: Path) -> list[str]:
    """Import the figures of a file or folder in the format ``name``.

    Writes ``runs/runs.csv`` below ``results``. ``facts``: facts of the case from the user. Returns
    lines about what was read and what was left out. Raises ConfigError for an unknown format;
    RecordsError for unreadable files and for results that hold something else."""
    form = registry.reader(name)
    files = sources(path, (form.suffix, *form.others))
    figures, refused = _figures_of(files, form)
    if not figures:
        raise RecordsError(_nothing_read(path, files, refused, form))
    if len(figures) > MOST_ROWS:
        raise RecordsError(f"import: {path}: holds {len(figures)} figures; allowed: {MOST_ROWS}")
    completed = rows.complete(figures, facts, form.name)
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
    return [*lines, *left_out.lines(path, files, refused), f"runs: {target}"]


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
        return f"import: {path}{reason}{_of_another(files[0], form)}"
    lines = [f"import: {path}: holds no figure of {form.tool}"]
    return "\n".join([*lines, *left_out.lines(path, files, refused)])


def _of_another(source: ImportedFile, form: Format) -> str:
    """Return a hint for the message: the formats that can read the file; "" if none can."""
    others = []
    for one in registry.known().values():
        if one.read and one is not form:
            with suppress(RecordsError):
                others += [one.name] if list(one.read(source)) else []
    return f" (it can be read as {' or '.join(others)})" if others else ""
