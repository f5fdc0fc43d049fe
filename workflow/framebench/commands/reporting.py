"""Make tables, report and verification results of a set of records."""

from __future__ import annotations

import gc
import sys
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from .. import feature_registry as features
from ..config import catalog
from ..config.validation import ConfigError, did_you_mean
from ..config.values import RecordSource
from ..files.whole_files import write_together
from ..records import expected, read_files, record_sets, sidecars, verifications
from ..records.sidecars import CallEntry, Interruption

if TYPE_CHECKING:
    import pandas as pd

    from ..tables.table import Inputs, Table

#: File in ``tables``: the report for Snakemake's archive, without links to records.
ARCHIVED = "report.html"


class Disagreement(Exception):
    """Failed or impossible verification of a framework against the reference."""


def write_runs(source: Path, results: Path) -> None:
    """Write ``runs.csv``, a row per run, of all records at ``source``."""
    write_together(read_files.texts(record_sets.load(source), source, results))


def write_tables(names: Sequence[str], source: Path, results: Path) -> None:
    """Write tables from the records at ``source``.

    Raises ConfigError for an unknown table."""
    from ..tables import frames, setting_answers

    tables = frames.known_tables()
    for name in names:
        if name not in tables:
            hint, allowed = did_you_mean(name, tables), ", ".join(tables)
            raise ConfigError(f"tables: found {name!r}{hint}; allowed: {allowed}")
    record_set = record_sets.load(source)
    inputs, _ = inputs_of(record_set, source)
    made = {tables[name]: inputs.frame_of(tables[name]) for name in names}
    called = sidecars.load(source.parent, CallEntry)
    caption = setting_answers.describe_origin(record_set.runs, called).caption
    write_together(frames.files(made, results / "tables", caption))


def make_report(
    source: Path, results: Path, leave: Collection[str] = (), is_before_round: bool = False
) -> None:
    """Write ``tables/`` and ``report.html`` below ``results`` from the records at ``source``.
    Prints the summary.
    ``leave``: tables that rules have made already, which keep their files and ``runs.csv``.
    ``is_before_round``: do not write ``runs.csv``. Its rule makes it from all rounds; Snakemake
    would take an early file for that, and make no further runs."""
    # pandas and Matplotlib are slow to import; other commands need neither.
    from ..report import html_report
    from ..tables import first_screen, frames, setting_answers
    from ..terminal import answer

    record_set = record_sets.load(source)
    gc.freeze()  # the runs live to the end, so the collector need not examine them again
    inputs, of_inputs = inputs_of(record_set, source)
    interrupted = sidecars.load(source.parent, Interruption)
    called = sidecars.load(source.parent, CallEntry)
    problems = (*record_set.problems, *of_inputs)
    for problem in problems:
        print(f"ignored: {problem.origin}: {problem.message}", file=sys.stderr)
    references = [
        record_set.root / name for feature in features.known() for name in feature.record_files
    ]
    if not record_set.runs and not any(map(Path.is_file, references)):
        raise record_sets.RecordsError(f"{source}: holds no record of a run")
    tables = frames.build(inputs)
    further: dict[Table, pd.DataFrame] = {}
    for part in features.modules("report_part"):
        further.update(part.tables(record_set, inputs))
    folder, page = results / "tables", results / "report.html"
    everything = {**tables, **further}
    # Everything is made before anything is written: an error leaves the old tables and report.
    provenance = setting_answers.describe_origin(record_set.runs, called)
    files = frames.files(everything, folder, provenance.caption)
    files = {path: text for path, text in files.items() if path.stem not in leave}
    answered = first_screen.first_screen(inputs, tables, record_set.runs, provenance, str(page))
    files[page] = html_report.render(
        replace(record_set, problems=problems), inputs, tables, page.parent, "Framebench report",
        further, interrupted, answered,
    )  # fmt: skip
    beside = replace(answered, page=page.name)  # a name alone stays valid when the folder is moved
    files[results / answer.FILE] = "\n".join([*answer.lines(beside, None), ""])
    files[folder / ARCHIVED] = html_report.without_links(files[page])
    if not leave and not is_before_round:
        # runs.csv comes first, because Snakemake remakes tables that are older.
        files = {**read_files.texts(record_set, source, results), **files}
    write_together(files)
    for line in answer.lines(answered):
        print(line)


def make_comparison(base: RecordSource, candidate: RecordSource, results: Path) -> None:
    """Write ``tables/compare.csv`` and ``.md`` below ``results``, and print the verdicts.
    Raises RecordsError if no case is on both sides."""
    from ..comparison import compare
    from ..tables import frames
    from ..tables.results import grouped

    frame = compare.compare(grouped(base), grouped(candidate))
    write_together(frames.files({compare.TABLE: frame}, results / "tables"))
    print(compare.summary_text(frame))
    if base.path != candidate.path and not (base.variant or candidate.variant):
        paths = (base.path, candidate.path)
        first, second = (inputs_of(record_sets.load(path), path)[0] for path in paths)
        print(compare.agreement_text(first, second))
    print(f"\ntable: {results / 'tables' / 'compare.csv'}")
    if frame["reason"].isin(compare.ALONE).all():
        raise record_sets.RecordsError(f"compare: none of {len(frame)} cases is on both sides")


def inputs_of(
    record_set: record_sets.RecordSet, source: Path
) -> tuple[Inputs, Sequence[record_sets.Problem]]:
    """Group and judge the records of ``source`` for tables.

    Returns them with the files beside the records, and problems with these files."""
    from ..records import device_peaks, verified
    from ..tables.results import group
    from ..tables.table import Inputs

    folder = source.parent
    verification_results, of_verifications = verifications.load(verifications.folder_for(source))
    reached, of_peaks = device_peaks.load(folder / device_peaks.KIND)
    asked, of_asked = expected.load(folder)
    models = catalog.project_catalog().models
    cases = group(record_set.runs, verified.VerificationFlags(verification_results, models))
    inputs = Inputs(
        cases={key: result for key, result in cases.items() if key.case.is_step},
        verification_results=verification_results,
        peaks=device_peaks.PeakFlopsLookup(reached),
        searches=record_set.searches,
        models=models,
        others={key: result for key, result in cases.items() if not key.case.is_step},
        expected=[case for case in asked if not case.left_out],
        left_out=[case for case in asked if case.left_out],
    )
    return inputs, [*of_verifications, *of_peaks, *of_asked]


def make_verification(source: Path, results: Path) -> None:
    """Write and print verification results, and tables and report if there are runs.

    Raises :class:`Disagreement` at the end if a verification failed or could not be made."""
    from ..tables import frames
    from ..tables.declared.verification import VERIFICATION, summary_text
    from ..tables.table import Inputs

    found, problems = verifications.load(verifications.folder_for(source))
    verification_results = verifications.latest(found)
    for problem in problems:
        print(f"ignored: {problem.origin}: {problem.message}", file=sys.stderr)
    if source.is_dir() and record_sets.load(source).runs:
        make_report(source, results)
    else:
        rows = VERIFICATION.rows(Inputs({}, verification_results))
        frame = VERIFICATION.frame(rows)
        write_together(frames.files({VERIFICATION: frame}, results / "tables"))
    print(summary_text(verification_results))
    print(f"verification: {results / 'tables' / 'verification.csv'}")
    counted = Counter(verification.outcome for verification in verification_results)
    words = {
        verifications.DIFFERS: "failed",
        verifications.PARTLY: "ran partly in another precision",
        verifications.NOT_MADE: "could not be made; the next call repeats them",
    }
    if ends := [f"{counted[name]} {said}" for name, said in words.items() if counted[name]]:
        count = len(verification_results)
        raise Disagreement(f"of {count} verifications {', '.join(ends)}: see above")
