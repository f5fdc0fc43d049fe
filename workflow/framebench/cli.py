"""Commands of Framebench with their options; code of those that make tables and the report."""

from __future__ import annotations

import argparse
import gc
import signal
import sys
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import PROJECT
from . import feature_registry as features
from .config import validation
from .config.validation import ConfigError, RecordSource, did_you_mean
from .files.whole_files import write_together
from .records import record_sets, sidecars, verifications
from .records.run import RecordsError
from .records.sidecars import CallEntry, Interruption

if TYPE_CHECKING:
    import pandas as pd

    from .tables.table import Table

SIDE = "folder of records or CSV, or FOLDER@VARIANT"
PINS = (
    "packages to add to those of NAME, as under packages in the configuration; writes the file to "
    "--environments"
)
VERIFICATION = "write the verification table, and update tables and report"
BEFORE_ROUND = "leave runs.csv unchanged, which is made after the last round of a call"
#: File in ``tables``: the report for Snakemake's archive, without links to records.
ARCHIVED = "report.html"


class Disagreement(Exception):
    """Failed or impossible verification of a framework against the reference."""


def main(arguments: list[str]) -> int:
    """Run one command and return its exit status. Failures print one clear message on stderr."""
    parser = argparse.ArgumentParser(prog="framebench", description="Commands of Framebench.")
    commands = parser.add_subparsers(required=True)

    def add(name: str, help: str, command: Callable[[Any], object]) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=help)
        added.set_defaults(command=command)
        return added

    def add_for_records(
        name: str, help: str, command: Callable[[Any], object]
    ) -> argparse.ArgumentParser:
        added = add(name, help, command)
        added.add_argument(
            "--records", type=validation.records, required=True, help="folder, or CSV"
        )
        added.add_argument("--results", type=Path, required=True, help="folder to write to")
        return added

    making = add_for_records(
        "report",
        "tables and report from records",
        lambda asked: make_report(asked.records, asked.results, asked.leave, asked.before_round),
    )
    making.add_argument("--leave", nargs="*", default=[], help="tables that exist already")
    making.add_argument("--before-round", action="store_true", help=BEFORE_ROUND)
    add_for_records(
        "runs", "a CSV with a row per run", lambda asked: write_runs(asked.records, asked.results)
    )
    tabulating = add_for_records(
        "tables",
        "single tables",
        lambda asked: write_tables(asked.names, asked.records, asked.results),
    )
    tabulating.add_argument("names", nargs="+", help="names of tables")
    add_for_records(
        "verification", VERIFICATION, lambda asked: make_verification(asked.records, asked.results)
    )
    comparing = add(
        "compare",
        "two sets of records, case by case",
        lambda asked: make_comparison(asked.base, asked.candidate, asked.results),
    )
    side = validation.argument(validation.side)
    comparing.add_argument("--base", type=side, required=True, help=SIDE)
    comparing.add_argument("--candidate", type=side, required=True, help=SIDE)
    comparing.add_argument("--results", type=Path, default=Path("results"), help="where to write")
    locking = add(
        "hashes",
        "write envs/NAME.hashes.txt from envs/NAME.yaml",
        lambda asked: _make_hashes(asked.names, asked.pins, asked.environments),
    )
    locking.add_argument("names", nargs="*", help="NAME, or FILE.yaml (default: all in envs/)")
    locking.add_argument("--with", dest="pins", nargs="+", default=[], metavar="PIN", help=PINS)
    locking.add_argument("--environments", type=Path, default=Path(".venvs"), help="for --with")
    add("columns", "print the meanings of all columns", lambda asked: _print_columns())
    for feature in features.known():
        feature.add_commands(commands)
    try:
        options = parser.parse_args(arguments)
        return int(options.command(options) or 0)
    except SystemExit as ended:  # argparse has printed its message or help
        return int(ended.code or 0)
    except (ConfigError, RecordsError, Disagreement) as error:
        print(f"framebench: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        print(f"framebench: cannot write: {where}{error.strerror or error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 128 + signal.SIGINT


def write_runs(source: Path, results: Path) -> None:
    """Write ``runs.csv``, a row per run, of all records at ``source``."""
    write_together(record_sets.texts_of_runs(record_sets.load(source), source, results))


def write_tables(names: Sequence[str], source: Path, results: Path) -> None:
    """Write tables from the records at ``source``.

    Raises ConfigError for an unknown table."""
    from .tables import frames, setting_answers

    tables = frames.known_tables()
    for name in names:
        if name not in tables:
            hint, allowed = did_you_mean(name, tables), ", ".join(tables)
            raise ConfigError(f"tables: found {name!r}{hint}; allowed: {allowed}")
    record_set = record_sets.load(source)
    inputs, _ = frames.inputs_of(record_set, source)
    made = {tables[name]: inputs.frame_of(tables[name]) for name in names}
    called = sidecars.load(source.parent, CallEntry)
    caption = setting_answers.describe_origin(record_set.runs, called).caption
    write_together(frames.files(made, results / "tables", caption))


def make_report(
    source: Path, results: Path, leave: Collection[str] = (), is_before_round: bool = False
) -> None:
    """Write ``tables/`` and ``report.html`` below ``results`` from the records at ``source``.
    Prints the summary.
    ``leave``: tables that rules have made already; neither they nor ``runs.csv`` are written.
    ``is_before_round``: do not write ``runs.csv``. Its rule writes it after all rounds; Snakemake
    would take an earlier file for the final one and measure no further runs."""
    # pandas and Matplotlib are slow to import; other commands need neither.
    from .report import html_report
    from .tables import first_screen, frames, setting_answers
    from .terminal import call_text

    record_set = record_sets.load(source)
    gc.freeze()  # the runs live to the end, so the collector need not examine them again
    inputs, of_inputs = frames.inputs_of(record_set, source)
    interrupted = sidecars.load(source.parent, Interruption)
    called = sidecars.load(source.parent, CallEntry)
    problems = (*record_set.problems, *of_inputs)
    for problem in problems:
        print(f"ignored: {problem.origin}: {problem.message}", file=sys.stderr)
    references = [
        record_set.root / name for feature in features.known() for name in feature.record_files
    ]
    if not record_set.runs and not any(map(Path.is_file, references)):
        raise RecordsError(f"{source}: holds no record of a run")
    tables = frames.build(inputs)
    further: dict[Table, pd.DataFrame] = {}
    for feature in features.known():
        further.update(feature.report_tables(record_set.root, inputs))
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
    files[results / call_text.ANSWER] = "\n".join([*call_text.answer_lines(beside, None), ""])
    files[folder / ARCHIVED] = html_report.without_links(files[page])
    if not leave and not is_before_round:
        # runs.csv comes first, because Snakemake remakes tables that are older.
        files = {**record_sets.texts_of_runs(record_set, source, results), **files}
    write_together(files)
    for line in call_text.answer_lines(answered):
        print(line)


def make_comparison(base: RecordSource, candidate: RecordSource, results: Path) -> None:
    """Write ``tables/compare.csv`` and ``.md`` below ``results``, and print the verdicts.
    Raises RecordsError if no case is on both sides."""
    from . import comparison
    from .tables import frames
    from .tables.results import grouped

    frame = comparison.compare(grouped(base), grouped(candidate))
    write_together(frames.files({comparison.TABLE: frame}, results / "tables"))
    print(comparison.summary_text(frame))
    if base.path != candidate.path and not (base.variant or candidate.variant):
        paths = (base.path, candidate.path)
        first, second = (frames.inputs_of(record_sets.load(path), path)[0] for path in paths)
        print(comparison.agreement_text(first, second))
    print(f"\ntable: {results / 'tables' / 'compare.csv'}")
    if frame["reason"].isin(comparison.ALONE).all():
        raise RecordsError(f"compare: none of {len(frame)} cases is on both sides")


def make_verification(source: Path, results: Path) -> None:
    """Write and print verification results, and tables and report if there are runs.

    Raises :class:`Disagreement` at the end if a verification failed or could not be made."""
    from .tables import frames
    from .tables.declared.verification import VERIFICATION, summary_text
    from .tables.table import Inputs

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
    if ends := [f"{counted[name]} {text}" for name, text in words.items() if counted[name]]:
        count = len(verification_results)
        raise Disagreement(f"of {count} verifications {', '.join(ends)}: see above")


def _make_hashes(names: Sequence[str], pins: Sequence[str], environments: Path) -> None:
    """Write the hashes of the environments ``names``; by default, of all that are not exempt.

    With ``pins``, write to the folder ``environments`` copies of the environment files that have
    these packages in addition, and their hashes."""
    from .environments import locking
    from .environments.venvs import exemption, files_of, read_environment_file

    for file in files_of(PROJECT / "envs", names):
        if pins:
            environment_file = read_environment_file(file, hashed=False)
            print(locking.lock_with(environment_file, pins, environments), flush=True)
        elif reason := "" if names else exemption(file):
            print(f"{file.name} is exempt: {reason}")
        else:
            print(locking.lock(file), flush=True)


def _print_columns() -> None:
    """Print the page docs/columns.md."""
    from . import comparison
    from .tables import frames

    written = [table for feature in features.known() for table in feature.written_tables()]
    print(
        frames.columns_page([*frames.known_tables().values(), comparison.TABLE, *written]), end=""
    )
