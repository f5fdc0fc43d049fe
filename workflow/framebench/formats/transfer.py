"""Sets of records written in a format of another tool, and files of other tools as such a set."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..files import bounded, json_files
from ..files.whole_files import write_whole, write_whole_bytes
from ..records import record_sets, tidy_csv
from ..records.record_sets import RecordsError
from ..records.run import Run
from ..tables.results import CaseResults
from . import names, registry, rows
from .format import Format, Results
from .source import MOST_ROWS, Source, sources

FOLDER = "export"
#: What was written where: SHA-256 by absolute path. A file that still has it is ours to replace.
_WRITTEN = ".written.json"


def export_cases(cases: CaseResults, name: str, target: Path | None, results: Path) -> list[str]:
    """Write the cases in the format ``name`` to ``target``, or below ``results``; says in lines
    what was written and what is not in it. Raises ConfigError for another format, RecordsError for
    a target that somebody else wrote, OSError for one that cannot be written."""
    form = registry.writer(name)
    assert form.write, "of those that can be written"
    path = target or results / FOLDER / f"{form.name}{form.suffix}"
    written = form.write(Results(tuple(cases.values()), names.names_of(cases)))
    content = written.content
    content = content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content
    known = results / FOLDER / _WRITTEN
    ours = _ours(known)
    place, digest = str(path.absolute()), hashlib.sha256(content).hexdigest()
    if path.is_dir():
        raise RecordsError(f"export: {path} is a folder; allowed: the path of a file")
    if path.exists():
        found = hashlib.sha256(bounded.read_bytes(path)).hexdigest()
        if found not in (ours.get(place), digest):
            raise RecordsError(
                f"export: {path} is there and was not written by export, or was changed since; "
                "allowed: a path where nothing is"
            )
    write_whole_bytes(path, content)
    write_whole(known, json.dumps({**ours, place: digest}, indent=1, sort_keys=True) + "\n")
    return [*(f"not in it: {one}" for one in written.left_out), f"{form.tool}: {path}"]


def _ours(known: Path) -> dict[str, str]:
    try:
        found = json_files.read(known)
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def import_files(name: str, path: Path, facts: Mapping[str, Any], results: Path) -> list[str]:
    """Write the figures of the file or folder at ``path``, which is of the format ``name``, as
    ``runs/runs.csv`` below ``results``; says in lines what it holds. ``facts``: what the user says
    that the files do not. Raises ConfigError for another format, RecordsError for what cannot be
    read as that and for results that hold something else."""
    form = registry.reader(name)
    files = sources(path, (form.suffix,))
    runs = _runs_of(files, form)
    if not runs:
        raise RecordsError(f"import: {path}: holds no figure of {form.tool}")
    if len(runs) > MOST_ROWS:
        raise RecordsError(f"import: {path}: holds {len(runs)} figures; allowed: {MOST_ROWS}")
    completed = rows.complete(runs, facts, form.name)
    text = tidy_csv.text_of(row for run in completed for row in tidy_csv.rows_of(run, _marks(run)))
    folder = results / "runs"
    target = folder / record_sets.CSV_NAME
    others = sorted(one.name for one in folder.iterdir()) if folder.is_dir() else []
    same = others == [target.name] and bounded.read_text(target) == text
    if others and not same:
        raise RecordsError(
            f"import: {folder} holds {others[0]} already; allowed: a folder of results without "
            "records: --config results=DIR"
        )
    write_whole(target, text)
    found, problems = tidy_csv.read_csv(target)
    if problems:
        target.unlink()
        raise RecordsError(f"import: {path}: {problems[0].message}")
    return [*_summary(files, len(found)), f"runs: {target}"]


def _runs_of(files: Sequence[Source], form: Format) -> list[Run]:
    """Those of all files. Of several, each has repeats of its own, however it numbers them; the
    same file twice is refused."""
    assert form.read, "of those that can be read"
    runs: list[Run] = []
    seen: dict[str, Source] = {}
    for one in files:
        try:
            found = list(form.read(one))
        except RecordsError as error:
            raise RecordsError(f"{error}{_of_another(one, form)}") from error
        digest = hashlib.sha256(bounded.read_bytes(one.path)).hexdigest()
        if digest in seen:
            one.refuse(f"is a copy of {seen[digest].path}; allowed: each once")
        seen[digest] = one
        runs += found if len(files) == 1 else (replace(run, repeat=0) for run in found)
    return runs


def _of_another(source: Source, form: Format) -> str:
    """Which formats a file is of instead, for a message; "" where it is of none."""
    others = []
    for one in registry.known().values():
        if one.read and one is not form:
            with suppress(RecordsError):
                others += [one.name] if list(one.read(source)) else []
    return f" (it can be read as {' or '.join(others)})" if others else ""


def _marks(run: Run) -> list[str]:
    return [doubt.mark for doubt in run.doubts]


def _summary(files: Sequence[Source], count: int) -> list[str]:
    lines = [f"{count} figures of {len(files)} file{'s' if len(files) > 1 else ''}"]
    if left := [name for one in files for name in one.directionless]:
        lines.append(
            f"not taken: {len(left)} figures of which it is not known whether higher or lower is "
            f"better, the first is {left[0]}"
        )
    left_out: dict[str, list[str]] = defaultdict(list)
    for one in files:
        for reason, name in one.left_out:
            left_out[reason].append(name)
    lines += [f"not taken: {reason}: {', '.join(some)}" for reason, some in left_out.items()]
    return lines
