"""Make tables, report and verification results of a set of records."""

from __future__ import annotations

import gc
import sys
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from core import bounded

from .. import PROJECT
from .. import feature_registry as features
from ..config import catalog
from ..config.validation import ConfigError, did_you_mean
from ..files import marked_block
from ..files.whole_files import write_together, write_whole
from ..records import read_files, record_sets, searches, verifications
from ..records.sidecars import calls, expected, interruptions
from ..records.sidecars.expected import ExpectedCase
from ..terminal import screen

if TYPE_CHECKING:
    import pandas as pd

    from ..records import device_peaks
    from ..tables.table import Inputs, Table

T = TypeVar("T")
#: File in ``tables``: the report for Snakemake's archive, without links to records.
ARCHIVED = "report.html"


class Disagreement(Exception):
    """Failed or impossible verification of a framework against the reference."""


@dataclass(frozen=True)
class Sidecars:
    """Files next to the records, and all problems with them."""

    verification_results: Sequence[verifications.VerificationResult]
    searched: Sequence[searches.Result]
    reached: Sequence[device_peaks.PeakFlops]
    interrupted: Sequence[interruptions.Interruption]
    called: Sequence[calls.CallEntry]
    asked: Sequence[ExpectedCase]
    problems: Sequence[record_sets.Problem]


def load_sidecars(source: Path) -> Sidecars:
    """Read the files next to the records at ``source``."""
    from ..records import device_peaks

    folder = source.parent
    problems: list[record_sets.Problem] = []

    def known(read: tuple[T, Sequence[record_sets.Problem]]) -> T:
        problems.extend(read[1])
        return read[0]

    return Sidecars(
        known(verifications.load(verifications.folder_for(source))),
        known(searches.load(folder / searches.FOLDER)),
        known(device_peaks.load(peak_flops_folder(source))),
        known(interruptions.load(folder)),
        known(calls.load(folder)),
        known(expected.load(folder)),
        problems,
    )


def write_runs(source: Path, results: Path) -> None:
    """Write ``runs.csv``, a row per run, of all records at ``source``."""
    write_together(read_files.texts(record_sets.load(source), source, results))


def write_tables(names: Sequence[str], source: Path, results: Path) -> None:
    """Write tables from the records at ``source``.

    Raises ConfigError for an unknown table."""
    from ..tables import frames, origin, registry

    tables = registry.known()
    for name in names:
        if name not in tables:
            hint, allowed = did_you_mean(name, tables), ", ".join(tables)
            raise ConfigError(f"tables: found {name!r}{hint}; allowed: {allowed}")
    record_set = record_sets.load(source)
    sidecars = load_sidecars(source)
    inputs = inputs_of(record_set, sidecars)
    made = {tables[name]: inputs.made(tables[name]) for name in names}
    caption = origin.describe_origin(record_set.runs, sidecars.called).caption
    write_together(frames.files(made, results / "tables", caption))


def make_report(
    source: Path, results: Path, leave: Collection[str] = (), is_before_round: bool = False
) -> None:
    """Write ``tables/`` and ``report.html`` below ``results`` from the records at ``source``.
    Prints the summary.
    ``leave``: tables that rules have made already, which keep their files and ``runs.csv``.
    ``is_before_round``: leave ``runs.csv``, which the rule makes from all rounds; Snakemake would
    take it for that, and make no further runs."""
    # pandas and Matplotlib are slow to import; other commands need neither.
    from ..report import html_report, record_links
    from ..tables import first_screen, frames, origin
    from ..terminal import answer

    record_set = record_sets.load(source)
    gc.freeze()  # the runs live to the end; looking at them again and again finds nothing
    sidecars = load_sidecars(source)
    problems = (*record_set.problems, *sidecars.problems)
    for problem in problems:
        print(f"ignored: {problem.origin}: {problem.message}", file=sys.stderr)
    references = [
        record_set.root / name for feature in features.known() for name in feature.record_files
    ]
    if not record_set.runs and not any(map(Path.is_file, references)):
        raise record_sets.RecordsError(f"{source}: holds no record of a run")
    inputs = inputs_of(record_set, sidecars)
    tables = frames.build(inputs)
    further: dict[Table, pd.DataFrame] = {}
    for part in features.modules("report_part"):
        further.update(part.tables(record_set, inputs))
    folder, page = results / "tables", results / "report.html"
    everything = {**tables, **further}
    # Everything is made before anything is written: an error leaves the old tables and report.
    provenance = origin.describe_origin(record_set.runs, sidecars.called)
    files = frames.files(everything, folder, provenance.caption)
    files = {path: text for path, text in files.items() if path.stem not in leave}
    answered = first_screen.first_screen(inputs, tables, record_set.runs, provenance, str(page))
    files[page] = html_report.render(
        replace(record_set, problems=problems), inputs, tables, page.parent, "Framebench report",
        further, sidecars.interrupted, provenance, answered,
    )  # fmt: skip
    beside = replace(answered, page=page.name)  # wherever the folder goes
    text = [screen.wrapped(line, answer.COLUMNS) for line in answer.lines(beside, None)]
    files[results / answer.FILE] = "\n".join([*text, ""])
    files[folder / ARCHIVED] = record_links.named(files[page])
    if not leave and not is_before_round:
        # First: Snakemake remakes tables that are older than runs.csv.
        files = {**read_files.texts(record_set, source, results), **files}
    write_together(files)
    columns = screen.columns_of(sys.stdout)
    for line in answer.lines(answered):
        print(screen.wrapped(line, columns))


def write_overview(source: Path, into: Path | None) -> None:
    """Print the overview of all frameworks, or write it between the comments of a file.
    Raises RecordsError if there is no record, or the file lacks the comments."""
    from ..tables import coverage, frames, markdown, origin, registry

    record_set = record_sets.load(source)
    if not record_set.runs:
        raise record_sets.RecordsError(f"{source}: holds no record of a run")
    sidecars = load_sidecars(source)
    inputs = inputs_of(record_set, sidecars)
    tables = frames.build(inputs)
    table = registry.known()["overview"]
    origin_text = origin.describe_origin(record_set.runs, sidecars.called)
    covered = coverage.sentences(inputs)
    text = markdown.crosstabs(table, tables[table], ". ".join([origin_text.caption, *covered]))
    if into is None:
        print(text, end="")
        return
    try:
        page = marked_block.replaced(bounded.read_text(into), table.name, text)
    except ValueError as error:
        raise record_sets.RecordsError(f"--into: {into}: {error}") from None
    write_whole(into, page)


def inputs_of(record_set: record_sets.RecordSet, sidecars: Sidecars) -> Inputs:
    """Group and judge a set of records for tables."""
    from ..records import device_peaks, verified
    from ..tables import datasheets, grouping
    from ..tables.table import Inputs

    models = catalog.load_catalog(PROJECT).models
    cases = grouping.group(
        record_set.runs, verified.VerificationFlags(sidecars.verification_results, models)
    )
    return Inputs(
        cases={key: result for key, result in cases.items() if key.case.is_step},
        verification_results=sidecars.verification_results,
        peaks=device_peaks.PeakFlopsLookup(sidecars.reached),
        searches=sidecars.searched,
        models=models,
        datasheets=datasheets.load_datasheets(),
        others={key: result for key, result in cases.items() if not key.case.is_step},
        expected=[case for case in sidecars.asked if not case.left_out],
        left_out=[case for case in sidecars.asked if case.left_out],
    )


def peak_flops_folder(source: Path) -> Path:
    """Return the folder of peak-FLOPS records that belongs to the records at ``source``."""
    return source.parent / "peak_flops"


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
        frames.write({VERIFICATION: frames.frame(VERIFICATION, rows)}, results / "tables")
    print(summary_text(verification_results))
    print(f"verification: {results / 'tables' / 'verification.csv'}")
    counted = Counter(verification.outcome for verification in verification_results)
    words = {
        verifications.DIFFERS: "failed",
        verifications.PARTLY: "ran partly in another precision",
        verifications.NOT_MADE: "could not be made, which the next call repeats",
    }
    if ends := [f"{counted[name]} {said}" for name, said in words.items() if counted[name]]:
        count = len(verification_results)
        raise Disagreement(f"of {count} verifications {', '.join(ends)}: see above")
