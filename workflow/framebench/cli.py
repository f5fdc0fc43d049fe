"""Commands behind the rules."""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from . import PROJECT
from .archive import contents
from .comparison import gate
from .config import catalog, values
from .config.validation import ConfigError
from .config.values import Source
from .files import json_files, marked_block
from .files.whole_files import write_whole
from .records import assumptions, calls, interruptions, record_sets, searches
from .records import node_health as kept_health
from .records.assumptions import Assumptions
from .records.run import Run, cause
from .statistics import verdicts

if TYPE_CHECKING:
    import pandas as pd

    from .audit import findings
    from .records import parity, peaks
    from .tables.origin import Origin
    from .tables.results import CaseResults
    from .tables.table import Inputs, Table

FINGERPRINT = "fingerprint.txt"
#: In ``tables``: the report for Snakemake's archive, in which there are no records to lead to.
ARCHIVED = "report.html"
SIDE = "folder of records or CSV, or FOLDER@VARIANT"
FAIL_ON = "5%%, or 0.05: what a case may be slower."
STATUSES = "Ends with 3 for a regression, 4 for a lost case, 5 if nothing can be compared."
FAIL_ON_NODES = "5%%, or 0.05: what a node may be worse."
NODE_STATUSES = "Ends with 3 for a slow node, 4 for a failed one, 5 if of none it can be told."
SETS = "folders of results, CSVs of runs, archives, or a folder of these"
ORDERS = ("date", "commit", "version", "name")
SOURCES = "folders of records or of published tables, or CSVs of runs"


class Disagreement(Exception):
    """A framework computes something else than the reference, or could not be compared."""


def main(arguments: list[str] | None = None) -> int:
    """Run one command; the exit status is 1 with one clear message on stderr if it cannot."""
    parser = argparse.ArgumentParser(
        prog="framebench",
        description=__doc__,
        epilog="And gate and bisect: see framebench gate --help.",
    )
    commands = parser.add_subparsers(required=True)
    making = commands.add_parser("report", help="tables and report from records")
    making.add_argument("--records", type=Path, required=True, help="folder of records, or CSV")
    making.add_argument("--results", type=Path, required=True, help="folder to write to")
    making.set_defaults(command=lambda given: make_report(given.records, given.results))
    certifying = commands.add_parser("parity", help="certificates, and tables and report with them")
    certifying.add_argument("--records", type=Path, required=True, help="folder of records")
    certifying.add_argument("--results", type=Path, required=True, help="folder to write to")
    certifying.set_defaults(command=lambda given: make_parity(given.records, given.results))
    comparing = commands.add_parser("compare", help="two sets of records, case by case")
    comparing.add_argument("--base", type=Source.of, required=True, help=SIDE)
    comparing.add_argument("--candidate", type=Source.of, required=True, help=SIDE)
    comparing.add_argument("--results", type=Path, required=True, help="folder to write to")
    comparing.add_argument("--fail-on", type=share, help=f"{FAIL_ON} {STATUSES}")
    comparing.set_defaults(
        command=lambda given: make_comparison(
            given.base, given.candidate, given.results, given.fail_on
        )
    )
    archiving = commands.add_parser("archive", help="results as one file to hand on")
    archiving.add_argument("--results", type=Path, required=True, help="folder of results")
    archiving.add_argument("--suite", type=Path, required=True, help="the file of its suite")
    archiving.add_argument("--environments", type=Path, nargs="*", default=[], help="their files")
    archiving.add_argument("--redact", action="store_true", help="without names")
    archiving.set_defaults(
        command=lambda given: make_archive(
            contents.Source(given.results, given.suite, given.environments), given.redact
        )
    )
    nursing = commands.add_parser("nodes", help="nodes against each other and a kept baseline")
    nursing.add_argument("--records", type=Path, required=True, help="folder of records, or CSV")
    nursing.add_argument("--results", type=Path, required=True, help="folder to write to")
    nursing.add_argument("--fail-on", type=share, help=f"{FAIL_ON_NODES} {NODE_STATUSES}")
    nursing.set_defaults(
        command=lambda given: make_nodes(given.records, given.results, given.fail_on)
    )
    trending = commands.add_parser("history", help="any number of result sets in their order")
    trending.add_argument("--sets", type=Path, nargs="+", required=True, help=SETS)
    trending.add_argument("--by", choices=ORDERS, default=ORDERS[0], help="what orders them")
    trending.add_argument("--results", type=Path, required=True, help="folder to write to")
    trending.set_defaults(command=lambda given: make_history(given.sets, given.by, given.results))
    showing = commands.add_parser("overview", help="all frameworks side by side, in Markdown")
    showing.add_argument("--records", type=Path, required=True, help="folder of records, or CSV")
    showing.add_argument("--into", type=Path, help="file with <!-- overview --> and its end")
    showing.set_defaults(command=lambda given: write_overview(given.records, given.into))
    linting = commands.add_parser("lint", help="check results, ours or published, for errors")
    linting.add_argument("--sources", type=Path, nargs="+", required=True, help=SOURCES)
    linting.add_argument("--results", type=Path, required=True, help="folder to write to")
    linting.set_defaults(command=lambda given: make_lint(given.sources, given.results))
    exporting = commands.add_parser("export", help="records in a format of another tool")
    exporting.add_argument("--records", type=Path, required=True, help="folder of records, or CSV")
    exporting.add_argument("--format", required=True, help="see docs/formats.md")
    exporting.add_argument("--to", type=Path, help="file to write, instead of one below --results")
    exporting.add_argument("--results", type=Path, required=True, help="folder to write to")
    exporting.set_defaults(
        command=lambda given: make_export(given.records, given.format, given.to, given.results)
    )
    importing = commands.add_parser("import", help="files of another tool as a set of records")
    importing.add_argument("--format", required=True, help="see docs/formats.md")
    importing.add_argument("--from", type=Path, required=True, dest="source", help="file or folder")
    importing.add_argument("--facts", type=json.loads, default={}, help="what the files do not say")
    importing.add_argument("--results", type=Path, required=True, help="folder to write to")
    importing.set_defaults(
        command=lambda given: make_import(given.format, given.source, given.facts, given.results)
    )
    making_data = commands.add_parser("make-data", help="a folder of images for input pipelines")
    making_data.add_argument("--folder", type=Path, required=True, help="where they are made")
    making_data.add_argument("--images", type=int, help="how many")
    making_data.add_argument("--seed", type=int, default=0, help="of all that is drawn")
    making_data.set_defaults(
        command=lambda given: make_data(given.folder, given.images, given.seed)
    )
    locking = commands.add_parser("hashes", help="write envs/NAME.hashes.txt from envs/NAME.yaml")
    locking.add_argument("names", nargs="*", help="NAME, or FILE.yaml (default: all in envs/)")
    locking.set_defaults(command=lambda given: make_hashes(given.names))
    containing = commands.add_parser("recipe", help="write Containerfiles from envs/NAME.yaml")
    containing.add_argument("names", nargs="*", help="NAME (default: all in envs/)")
    containing.add_argument("--to", type=Path, default=Path("recipes"), help="folder to write to")
    containing.set_defaults(command=lambda given: write_recipes(given.names, given.to))
    cleaning = commands.add_parser("clean-environments", help="remove what no file makes any more")
    cleaning.add_argument("--environments", type=Path, required=True, help="the folder of all")
    cleaning.add_argument("--keep", nargs="*", default=[], help="names of those in use")
    cleaning.set_defaults(command=lambda given: clean(given.environments, given.keep))
    listing = commands.add_parser("formats", help="which formats there are, and what they lose")
    listing.set_defaults(command=lambda given: print_formats())
    forecasting = commands.add_parser("forecast", help="forecasts of the time left, and the truth")
    forecasting.add_argument("--results", type=Path, required=True, help="folder of the results")
    forecasting.set_defaults(command=lambda given: print_forecasts(given.results))
    explaining = commands.add_parser("columns", help="what the columns of the tables mean")
    explaining.set_defaults(command=lambda given: print_columns())
    given = parser.parse_args(arguments)
    try:
        given.command(given)
    except gate.NotPassed as error:
        print(f"framebench: {error}", file=sys.stderr)
        return gate.leave(error.status)
    except (ConfigError, record_sets.RecordsError, Disagreement, Faulty) as error:
        print(f"framebench: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"framebench: cannot write: {error}", file=sys.stderr)
        return 1
    return 0


def share(text: str) -> float:
    """A percentage or a part of the command line."""
    try:
        return values.share(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"found {text!r}; allowed: {values.SHARE}") from None


def print_forecasts(results: Path) -> None:
    """For each call that measured into ``results``, what was said of the time left on the way and
    what it was. Raises RecordsError where no call has noted it."""
    from .terminal import told

    noted_calls, problems = told.load(results / told.FILE)
    for problem in problems:
        print(f"ignored: {problem.origin}: {problem.message}", file=sys.stderr)
    if not noted_calls:
        raise record_sets.RecordsError(f"{results / told.FILE}: holds no task of a call")
    print("\n\n".join(told.table(call, rows) for call, rows in noted_calls.items()))


class Faulty(Exception):
    """Results of our own contradict themselves."""


def make_comparison(base: Source, candidate: Source, results: Path, fail_on: float | None) -> None:
    """Write ``tables/compare.csv`` and ``compare.html`` below ``results`` and print the verdicts.
    Raises :class:`gate.NotPassed` behind all that."""
    from .comparison import compare
    from .report import html_report
    from .tables import frames

    threshold = fail_on or verdicts.THRESHOLD
    frame = compare.compare(grouped(base), grouped(candidate), threshold)
    frames.write({compare.TABLE: frame}, results / "tables")
    page = results / "compare.html"
    html_report.write_comparison(frame, page, str(base), str(candidate), threshold)
    print(compare.summary_text(frame))
    print(f"\ntable: {results / 'tables' / 'compare.csv'}\npage:  {page}")
    if fail_on is not None and len(open_cases := compare.undecided(frame, fail_on)):
        print(
            f"cannot tell of {len(open_cases)} of {len(frame)} cases whether they are more "
            f"than {fail_on:.1%} slower"
        )
    gate.check(frame, fail_on)


def grouped(source: Source) -> CaseResults:
    """The cases of a set of records, judged; prints what is ignored."""
    from .records import parity, proofs
    from .tables import grouping

    found = record_sets.load(source.path)
    certificates, problems = parity.load(certificates_of(source.path))
    for problem in (*found.problems, *problems):
        print(f"ignored: {source}: {problem.origin}: {problem.message}", file=sys.stderr)
    if not found.runs:
        raise record_sets.RecordsError(f"{source}: holds no record of a run")
    runs = record_sets.of_arm(found, source.variant) if source.variant else found.runs
    return grouping.group(runs, proofs.Marks(certificates, catalog.load_catalog(PROJECT).models))


def make_report(source: Path, results: Path) -> None:
    """Write ``tables/`` and ``report.html`` below ``results`` from the records at ``source``, and
    print the summary. The fingerprint is written last: it vouches for all the rest."""
    # pandas and Matplotlib take their time; other commands need neither.
    from .audit import published
    from .comparison import node_health
    from .records import parity, peaks
    from .report import html_report, record_links
    from .tables import answers, frames, origin

    own = record_sets.load_results(results) if source == results / "runs" else None
    found = own or record_sets.load(source)
    certificates, of_parity = parity.load(certificates_of(source))
    searched, of_searches = searches.load(source.parent / searches.FOLDER)
    reached, of_probes = peaks.load(probes_of(source))
    interrupted, of_interrupted = interruptions.load(source.parent)
    called, of_calls = calls.load(source.parent)
    assumed, of_assumptions = assumptions.load(results)
    beside = (
        *(*of_parity, *of_searches, *of_probes),
        *(*of_interrupted, *of_calls, *of_assumptions),
    )
    problems = (*found.problems, *beside)
    for problem in problems:
        print(f"ignored: {problem.origin}: {problem.message}", file=sys.stderr)
    if not found.runs:
        raise record_sets.RecordsError(f"{source}: holds no record of a run")
    inputs, tables, baseline = tabulated(found, certificates, searched, reached, assumed, results)
    reference = (source if source.is_dir() else source.parent) / "published.csv"
    compared = None
    if reference.is_file():
        compared = published.compare_published(inputs.cases, reference)
    folder, page = results / "tables", results / "report.html"
    everything = tables if compared is None else {**tables, published.TABLE: compared}
    # All is made before anything is written: what fails leaves the former tables and report.
    provenance = origin.of(found.runs, called)
    files = frames.files(everything, folder, provenance.caption)
    files[page] = html_report.render(
        replace(found, problems=problems), inputs, tables, page.parent, "Framebench report",
        compared, interrupted, provenance, called,
    )  # fmt: skip
    if baseline:
        files[folder / node_health.BASELINE] = baseline
    files[folder / ARCHIVED] = record_links.named(files[page])
    vouching = folder / FINGERPRINT
    vouching.unlink(missing_ok=True)
    for path, text in files.items():
        write_whole(path, text)
    write_whole(vouching, fingerprint(found, source, results) + "\n")
    if inputs.nodes:
        print("\n".join(node_health.lines(inputs.nodes)))
    print("\n".join(answers.lines(answers.of(tables), _last(found.runs, tables, provenance, page))))


def write_overview(source: Path, into: Path | None) -> None:
    """Print all frameworks side by side, or write them between the comments of a file. Raises
    RecordsError where there is nothing to show, or no place for it."""
    from .records import parity
    from .tables import markdown, origin, registry

    found = record_sets.load(source)
    if not found.runs:
        raise record_sets.RecordsError(f"{source}: holds no record of a run")
    certificates, _ = parity.load(certificates_of(source))
    _, tables, _ = tabulated(found, certificates, (), (), assumptions.NONE, source.parent)
    table = registry.known()["overview"]
    of = origin.of(found.runs, calls.load(source.parent)[0])
    text = markdown.crosstabs(table, tables[table], of.caption)
    if into is None:
        print(text, end="")
        return
    try:
        page = marked_block.replaced(into.read_text(encoding="utf-8"), table.name, text)
    except ValueError as error:
        raise record_sets.RecordsError(f"--into: {into}: {error}") from None
    write_whole(into, page)


def _last(
    runs: Sequence[Run], tables: Mapping[Table, pd.DataFrame], provenance: Origin, page: Path
) -> list[str]:
    """The last lines of the terminal: what is unproved, what all is from, and where it stands."""
    from .tables import answers, registry

    hint = unproved_text(tables[registry.known()["summary"]])
    taken = f"{len(runs)} runs" + (f" in {provenance.took}" if provenance.took else "")
    of = " \N{MIDDLE DOT} ".join([taken, *provenance.facts])
    return [*filter(None, (hint, answers.cut(of))), f"report: {page}"]


def tabulated(
    record_set: record_sets.RecordSet,
    certificates: Sequence[parity.Certificate],
    searched: Sequence[searches.Result],
    reached: Sequence[peaks.Peak],
    assumed: Assumptions,
    results: Path,
) -> tuple[Inputs, dict[Table, pd.DataFrame], str]:
    """The cases of a set of records, judged once for all that is made of them, all tables, and a
    baseline of the nodes, "" without any. ``results``: where the rules of nodes are kept."""
    from .comparison import node_health
    from .records import peaks, proofs
    from .tables import datasheets, frames, grouping
    from .tables.table import Inputs

    models = catalog.load_catalog(PROJECT).models
    cases = grouping.group(record_set.runs, proofs.Marks(certificates, models))
    nodes, baseline = node_health.judged(cases, results)
    inputs = Inputs(
        cases={key: result for key, result in cases.items() if key.case.is_step},
        certificates=certificates,
        peaks=peaks.Peaks(reached),
        searches=searched,
        models=models,
        datasheets=datasheets.load_datasheets(),
        assumptions=assumed,
        others={key: result for key, result in cases.items() if not key.case.is_step},
        nodes=nodes,
    )
    return inputs, frames.build(inputs), baseline


def unproved_text(summary: pd.DataFrame) -> str:
    """How many figures have no proof and how to get it; empty where all have one."""
    from .records import proofs

    marks = [str(row).split() for row in summary.loc[summary["status"] == "ok", "marks"]]
    count = sum(proofs.UNPROVED in own for own in marks)
    return f"{count} of {len(marks)} figures are unproved: {proofs.HOW}" if count else ""


def certificates_of(source: Path) -> Path:
    """The folder of the certificates that belong to the records at ``source``: its neighbour."""
    return source.parent / "parity"


def probes_of(source: Path) -> Path:
    """The folder of the probes that belong to the records at ``source``: its neighbour."""
    return source.parent / "probes"


def fingerprint(found: record_sets.RecordSet, source: Path, results: Path) -> str:
    """Of all that tables and report below ``results`` depend on."""
    beside = [certificates_of(source), probes_of(source)]
    files = [path for folder in beside for path in sorted(json_files.below(folder)[0])]
    digest = hashlib.sha256(record_sets.fingerprint(found).encode())
    files += searches.files(source.parent / searches.FOLDER)
    noted = [source.parent / name for name in (interruptions.FILE, calls.FILE)]
    noted += [results / name for name in (assumptions.FILE, kept_health.FILE)]
    for path in [*files, *filter(Path.is_file, noted)]:
        try:
            digest.update(json_files.content_of(path))
        except (OSError, ValueError) as error:
            digest.update(cause(error).encode())
    return digest.hexdigest()


def make_parity(source: Path, results: Path) -> None:
    """Write and print the certificates; tables and report too, where something was measured.
    Raises :class:`Disagreement` behind all that, where a certificate failed."""
    from .records import parity
    from .tables import frames
    from .tables.declared.parity import PARITY, summary_text
    from .tables.table import Inputs

    found, problems = parity.load(certificates_of(source))
    certificates = parity.latest(found)
    for problem in problems:
        print(f"ignored: {problem.origin}: {problem.message}", file=sys.stderr)
    rows = PARITY.rows(Inputs({}, certificates))
    frames.write({PARITY: frames.frame(PARITY, rows)}, results / "tables")
    if source.is_dir() and record_sets.load(source).runs:
        make_report(source, results)
    print(summary_text(certificates))
    print(f"certificates: {results / 'tables' / 'parity.csv'}")
    failed = sum(certificate.passed is False for certificate in certificates)
    if failed:
        raise Disagreement(f"{failed} of {len(certificates)} certificates failed, see above")


def make_archive(source: contents.Source, redacts: bool) -> None:
    """Write ``archives/NAME.zip`` below the results: what was measured, its suite, environments,
    tables and report, all made anew from the records that are handed on, and metadata."""
    from .archive import crate
    from .tables import origin

    with TemporaryDirectory(prefix="framebench-") as name:
        folder = Path(name)
        for problem in contents.gather(source, folder, redacts):
            print(f"left out: {problem.origin}: {problem.message}", file=sys.stderr)
        with redirect_stdout(io.StringIO()):
            make_report(folder / "runs", folder)
        runs = record_sets.load(folder / "runs").runs
        called = calls.load(folder)[0]
        text = crate.metadata(folder, source.suite.stem, origin.of(runs, called), origin.span(runs))
        write_whole(folder / crate.FILE, text)
        stated = (folder / "tables" / FINGERPRINT).read_text()[:12]
        ending = "-redacted" if redacts else ""
        target = source.results / "archives" / f"{source.suite.stem}-{stated}{ending}.zip"
        contents.pack(folder, target)
    print(f"archive: {target} ({target.stat().st_size / 1e6:.1f} MB, {len(runs)} runs)")


def make_history(sets: Sequence[Path], by: str, results: Path) -> None:
    """See :func:`history.command.make`."""
    from .history import command

    for path in sets:
        if not path.exists():
            raise record_sets.RecordsError(f"sets: {path} does not exist; allowed: {SETS}")
    command.make(sets, by, results)


def make_nodes(source: Path, results: Path, fail_on: float | None) -> None:
    """See :func:`comparison.node_health.make`."""
    from .comparison import node_health  # pandas takes its time

    node_health.make(source, results, fail_on)


def make_lint(sources: Sequence[Path], results: Path) -> None:
    """Write ``tables/lint.csv`` below ``results`` and print what was found. Raises :class:`Faulty`
    behind all that where results of our own have a finding; errors of others are theirs."""
    from .audit import findings, lint
    from .tables import frames

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
    """The records at ``source``, and the tables beside them or, where ``report`` was told to write
    there, below ``results``."""
    from .audit import lint_results
    from .records import parity, peaks

    read = found = record_sets.load(source)
    if not found.runs and not found.problems:
        raise record_sets.RecordsError(f"{source}: holds no record of a run and no published table")
    certificates, problems = parity.load(certificates_of(source))
    folders = (source.parent / "tables", results / "tables")
    stated = {folder: folder / FINGERPRINT for folder in folders}
    found = replace(found, problems=(*found.problems, *problems))
    current = [
        folder
        for folder, file in stated.items()
        if file.is_file() and file.read_text().strip() == fingerprint(read, source, folder.parent)
    ]
    stale = not current and lint_results.holds_tables(folders[0])
    if not current and not stale:
        return lint_results.check_results(found, {}, str(source), None)
    searched, _ = searches.load(source.parent / searches.FOLDER)
    reached, _ = peaks.load(probes_of(source))
    folder = folders[0] if stale else current[0]
    assumed, _ = assumptions.load(folder.parent)
    _, tables, _ = tabulated(found, certificates, searched, reached, assumed, folder.parent)
    return lint_results.check_results(found, tables, str(source), folder, stale)


def make_export(source: Path, name: str, target: Path | None, results: Path) -> None:
    """Write the records at ``source`` in the format ``name`` to ``target`` or below ``results``."""
    from .formats import transfer

    print("\n".join(transfer.export_cases(grouped(Source(source, "")), name, target, results)))


def make_import(name: str, source: Path, facts: Mapping[str, Any], results: Path) -> None:
    """Write what the files at ``source`` hold as a set of records below ``results``."""
    from .formats import transfer

    print("\n".join(transfer.import_files(name, source, facts, results)))


def make_data(folder: Path, images: int | None, seed: int) -> None:
    """Make so many images in a folder, and print what is there then. Raises ConfigError where
    something else is there."""
    from .datasets import image_folder

    try:
        manifest = image_folder.make(folder, images or image_folder.IMAGES, seed)
    except image_folder.Refused as error:
        raise ConfigError(str(error)) from None
    made = manifest["made"]
    print(
        f"data: {folder}: {made['train']} images to train on and {made['val']} to validate with, "
        f"in {made['classes']} classes; in the mean {made['mean_width']:.0f} x "
        f"{made['mean_height']:.0f} pixels and {made['mean_bytes'] / 1e3:.0f} KB, "
        f"{made['bytes'] / 1e6:.0f} MB in all; digest {made['digest'][:12]}"
    )


def make_hashes(names: Sequence[str]) -> None:
    """Write the hashes of the environments ``names``; where none is named, of all but those that
    are exempt."""
    from .environments import hashes, locking

    envs = PROJECT / "envs"
    for name in names or sorted(path.stem for path in envs.glob("*.yaml")):
        file = Path(name) if name.endswith(".yaml") else envs / f"{name}.yaml"
        if reason := "" if names else hashes.exemption(file):
            print(f"{file.name} is exempt: {reason}")
        else:
            print(locking.lock(file), flush=True)


def write_recipes(names: Sequence[str], folder: Path) -> None:
    """Write the recipes of images, and print where they are."""
    from .environments import recipe

    print("\n".join(recipe.told(recipe.write(PROJECT / "envs", names, folder))))


def clean(environments: Path, wanted: Sequence[str]) -> None:
    """Remove the environments that are not ``wanted``, and print what that frees."""
    from .environments import cleaning

    found = list(cleaning.clean(environments, wanted))
    removed = [one for one in found if not one.why]
    for one in found:
        did = f"left, {one.why}" if one.why else "removed"
        print(f"{one.folder}: {did}, {one.size / 1e9:.1f} GB")
    freed = sum(one.freed for one in removed) / 1e9
    shared = sum(one.size - one.freed for one in removed) / 1e9
    print(f"{len(removed)} environments removed, {freed:.1f} GB free", end="")
    print(f"; {shared:.1f} GB more when uv's cache lets go of them: uv cache prune" * bool(shared))


def print_formats() -> None:
    """Print the table of docs/formats.md."""
    from .formats import page

    print(page.text(), end="")


def print_columns() -> None:
    """Print the page docs/columns.md."""
    from .audit import findings, published
    from .bisect import words
    from .comparison import compare
    from .gate import decisions
    from .history import trends
    from .tables import columns_page, registry

    made = (compare.TABLE, decisions.TABLE, words.TABLE, trends.POINTS, trends.CHANGES)
    others = (*made, published.TABLE, findings.TABLE)
    print(columns_page.text([*registry.known().values(), *others]), end="")
