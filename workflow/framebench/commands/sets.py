"""Commands on sets of records: compare, history, nodes, lint, archive, import and export."""

from __future__ import annotations

import io
import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..comparison import gate
from ..config.values import RecordSource
from ..features.archive import contents
from ..files import bounded, temporary
from ..files.whole_files import write_together, write_whole
from ..records import record_sets, searches
from ..records.sidecars import assumptions, calls
from ..statistics import verdicts
from ..tables.judged import grouped
from .reporting import FINGERPRINT, fingerprint, make_report, probes_of, tabulated

if TYPE_CHECKING:
    from ..features.audit import findings

SETS = "folders of results, CSVs of runs, archives, or a folder of these"


class Faulty(Exception):
    """Consistency findings in our own results."""


def make_comparison(
    base: RecordSource, candidate: RecordSource, results: Path, fail_on: float | None
) -> None:
    """Write ``tables/compare.csv`` and ``compare.html`` below ``results``, and print the verdicts.
    Raises :class:`gate.NotPassed` at the end."""
    from ..comparison import compare
    from ..report import html_report
    from ..tables import frames

    threshold = fail_on or verdicts.THRESHOLD
    frame = compare.compare(grouped(base), grouped(candidate), threshold)
    files = frames.files({compare.TABLE: frame}, results / "tables")
    page = results / "compare.html"
    files[page] = html_report.render_comparison(
        frame, results, str(base), str(candidate), threshold
    )
    write_together(files)
    print(compare.summary_text(frame))
    print(f"\ntable: {results / 'tables' / 'compare.csv'}\npage:  {page}")
    if fail_on is not None and len(open_cases := compare.undecided(frame, fail_on)):
        print(
            f"cannot tell of {len(open_cases)} of {len(frame)} cases whether they are more "
            f"than {fail_on:.1%} slower"
        )
    gate.check(frame, fail_on)


def make_archive(source: contents.ArchiveSource, redacts: bool) -> None:
    """Write ``archives/NAME.zip`` below the results folder.
    It has records, suite, environments and metadata, and tables and report made anew from these
    records. Raises ConfigError for a folder without records, or of another suite."""
    from ..features.archive import crate
    from ..tables import origin

    contents.check(source)
    with temporary.folder() as folder:
        redaction = contents.redaction_of(source) if redacts else None
        suite = redaction.text(source.suite.stem) if redaction else source.suite.stem
        for problem in contents.gather(source, folder, redaction):
            print(f"left out: {problem.origin}: {problem.message}", file=sys.stderr)
        with redirect_stdout(io.StringIO()):
            make_report(folder / "runs", folder)
        runs = record_sets.load(folder / "runs").runs
        called = calls.load(folder)[0]
        text = crate.metadata(folder, suite, origin.of(runs, called), origin.span(runs))
        write_whole(folder / crate.FILE, text)
        stated = bounded.read_text(folder / "tables" / FINGERPRINT)[:12]
        ending = "-redacted" if redacts else ""
        target = source.results / "archives" / f"{suite}-{stated}{ending}.zip"
        contents.pack(folder, target)
    print(f"archive: {target} ({target.stat().st_size / 1e6:.1f} MB, {len(runs)} runs)")


def make_history(sets: Sequence[Path], by: str, results: Path) -> None:
    """Make a history; see :func:`history.command.make`."""
    from ..features.history import command

    for path in sets:
        if not path.exists():
            raise record_sets.RecordsError(f"sets: {path} does not exist; allowed: {SETS}")
    command.make(sets, by, results)


def make_nodes(source: Path, results: Path, fail_on: float | None) -> None:
    """Judge nodes; see :func:`comparison.node_health.make`."""
    from ..features.node_health import command as node_health  # pandas is slow to import

    node_health.make(source, results, fail_on)


def make_lint(sources: Sequence[Path], results: Path) -> None:
    """Write ``tables/lint.csv`` below ``results`` and print the findings.
    Raises :class:`Faulty` at the end if our own results have a finding; published tables may have
    some."""
    from ..features.audit import findings, lint
    from ..tables import frames

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
    from ..features.audit import lint_results
    from ..records import device_peaks, verifications

    read = found = record_sets.load(source)
    if not found.runs and not found.problems:
        raise record_sets.RecordsError(f"{source}: holds no record of a run and no published table")
    verification_results, problems = verifications.load(verifications.beside(source))
    folders = (source.parent / "tables", results / "tables")
    stated = {folder: folder / FINGERPRINT for folder in folders}
    found = replace(found, problems=(*found.problems, *problems))
    current = [
        folder
        for folder, file in stated.items()
        if file.is_file()
        and bounded.read_text(file).strip() == fingerprint(read, source, folder.parent)
    ]
    stale = not current and lint_results.holds_tables(folders[0])
    if not current and not stale:
        return lint_results.check_results(found, {}, str(source), None)
    searched, _ = searches.load(source.parent / searches.FOLDER)
    reached, _ = device_peaks.load(probes_of(source))
    folder = folders[0] if stale else current[0]
    assumed, _ = assumptions.load(folder.parent)
    _, tables, _ = tabulated(found, verification_results, searched, reached, assumed, folder.parent)
    return lint_results.check_results(found, tables, str(source), folder, stale)


def make_export(source: Path, name: str, target: Path | None, results: Path) -> None:
    """Write the records at ``source`` in the format ``name`` to ``target`` or below ``results``."""
    from ..features.formats import transfer

    print(
        "\n".join(transfer.export_cases(grouped(RecordSource(source, "")), name, target, results))
    )


def make_import(name: str, source: Path, facts: Mapping[str, Any], results: Path) -> None:
    """Write the content of the files at ``source`` as a set of records below ``results``."""
    from ..features.formats import transfer

    print("\n".join(transfer.import_files(name, source, facts, results)))
