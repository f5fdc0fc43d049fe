"""``framebench lint``: consistency checks of our results and of published tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from core import bounded

from ... import PROJECT
from ...commands.reporting import (
    FINGERPRINT,
    Faulty,
    fingerprint,
    inputs_of,
    load_sidecars,
    report_parts,
)
from ...config import values
from ...records import record_sets, verifications
from ...tables import frames
from . import findings, lint, lint_results


def sources_of(results: Path) -> list[Path]:
    """Return published tables of the project, and the records in ``results`` if there are any."""
    published, own_folder = PROJECT / "results" / "published", results / "runs"
    found = [path for path in (values.from_here(published), own_folder) if path.is_dir()]
    return found or [own_folder]


def make_lint(sources: Sequence[Path], results: Path) -> None:
    """Write ``tables/lint.csv`` below ``results`` and print the findings.
    Raises :class:`Faulty` at the end if our own results have a finding; published tables may have
    some."""
    linted = []
    for source in sources:
        folders = lint.folders(source)
        linted += [lint.check_folder(folder) for folder in folders] or [lint_own(source, results)]
    folder = results / "tables"
    frames.write({findings.TABLE: findings.frame(linted)}, folder)
    print(findings.summary_text(linted))
    print(f"\ntable: {folder / 'lint.csv'}")
    faulty = sum(len(one.findings) for one in linted if one.ours)
    if faulty:
        raise Faulty(f"{faulty} findings in results of our own, see above and {folder}/lint.csv")


def lint_own(source: Path, results: Path) -> findings.Linted:
    """Check the records at ``source``, and their tables next to them or below ``results``."""
    read = record_set = record_sets.load(source)
    if not record_set.runs and not record_set.problems:
        raise record_sets.RecordsError(f"{source}: holds no record of a run and no published table")
    _, problems = verifications.load(verifications.folder_for(source))
    folders = (source.parent / "tables", results / "tables")
    stated = {folder: folder / FINGERPRINT for folder in folders}
    record_set = replace(record_set, problems=(*record_set.problems, *problems))
    current = [
        folder
        for folder, file in stated.items()
        if file.is_file()
        and bounded.read_text(file).strip() == fingerprint(read, source, folder.parent)
    ]
    stale = not current and lint_results.holds_tables(folders[0])
    if not current and not stale:
        return lint_results.check_results(record_set, {}, str(source), None)
    folder = folders[0] if stale else current[0]
    beside = load_sidecars(source, folder.parent)
    inputs = inputs_of(record_set, beside, folder.parent, report_parts())
    tables = frames.build(inputs)
    return lint_results.check_results(record_set, tables, str(source), folder, stale)
