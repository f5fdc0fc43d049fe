"""File formats of other tools: name, suffix, reader and writer of each; export and import."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from core import bounded
from core.axes import NATIVE

from ...cases.conditions import CONDITIONS, Key, series_of_model
from ...cases.names import topology_of
from ...config.validation import ConfigError, did_you_mean
from ...files.whole_files import write_together, write_whole
from ...records import record_sets, tidy_csv
from ...records.record_sets import RecordsError
from ...tables import formatting
from ...tables.results import CaseResult, CaseResults
from . import imported

#: Conditions that follow from the machine or the suite. Names that contained them would change with
#: every small change.
_IMPLIED = (
    *("accelerator", "cores_per_device", "warmup_steps", "warmup_limit", "timed_steps"),
    *("timed_seconds", "parallelism", "machine", "environment"),
)
#: Most names in one line about figures that are left out.
_MOST_NAMES = 12


class Results:
    """Judged cases to export, with a name for each. All metrics of a case share one name."""

    def __init__(self, cases: CaseResults) -> None:
        self.cases = tuple(cases.values())
        self._names = names_of(cases)

    def name(self, case: CaseResult) -> str:
        return self._names[case.key]

    def rows(self) -> Iterator[dict[str, str]]:
        """Yield the rows of the table of runs, one per repeat and metric."""
        for case in self.cases:
            for run in case.runs:
                rows = tidy_csv.rows_of(run, case.flags)
                for metric, row in zip(run.metrics, rows, strict=True):
                    if (metric.name, metric.point) == (case.key.metric, case.key.point):
                        yield row


@dataclass(frozen=True)
class ExportedFile:
    """Content of a file to write, with a line for each result that it omits.

    ``is_empty``: the file holds none of the results."""

    content: str | bytes
    left_out: Sequence[str] = ()
    is_empty: bool = False


@dataclass(frozen=True)
class Format:
    """A file format of another tool.

    ``suffix``: suffix of written files; ``others``: further suffixes that are read from a folder.
    ``write`` raises OSError when a library is missing, ``read`` FormatError."""

    name: str
    suffix: str
    write: Callable[[Results], ExportedFile] | None = None
    read: Callable[[imported.ImportedFile], Iterable[imported.ImportedFigure]] | None = None
    others: Sequence[str] = ()


def flags(case: CaseResult) -> str:
    """Return the names of a case's flags, sorted and separated by spaces."""
    return " ".join(sorted(case.flags))


def notes(case: CaseResult) -> str:
    """Return flags, reason and remarks of a case in one line; "" without any of them."""
    parts = [f"flags: {flags(case)}" if case.flags else "", case.reason, *case.remarks]
    return "; ".join(filter(None, parts))


def not_measured(results: Results) -> Iterator[str]:
    """Yield a line for each case without a figure to compare, for formats that cannot hold one."""
    for case in results.cases:
        if case.compared is None:
            yield f"{results.name(case)}: {case.key.metric}: {case.why_not_compared}"


@cache
def known() -> Mapping[str, Format]:
    """Return all formats by name, in the order of their names: each module in ``declared``
    contributes its FORMATS."""
    from . import declared  # the modules of declared import this one

    modules = [
        import_module(f"{declared.__name__}.{module.name}")
        for module in iter_modules(declared.__path__)
    ]
    formats = {one.name: one for module in modules for one in module.FORMATS}
    return dict(sorted(formats.items()))


def writer(name: str) -> Format:
    """Return the export format of this name. Raises :class:`ConfigError` if there is none."""
    return _chosen(name, {key: one for key, one in known().items() if one.write})


def reader(name: str) -> Format:
    """Return the import format of this name. Raises :class:`ConfigError` if there is none."""
    return _chosen(name, {key: one for key, one in known().items() if one.read})


def _chosen(name: str, formats: Mapping[str, Format]) -> Format:
    if name in formats:
        return formats[name]
    raise ConfigError(
        f"--format: found '{name}'{did_you_mean(name, formats)}; allowed: {', '.join(formats)}"
    )


def names_of(keys: Iterable[Key]) -> dict[Key, str]:
    """Return a name for each key: framework/model/mode/devices/batch/precision/..

    Values other than the default are appended. Names are the same for every set of records. Cases
    of one set with equal names get all their other conditions appended."""
    sharing: dict[str, set[Key]] = defaultdict(set)
    names: dict[Key, str] = {}
    for key in keys:
        # All metrics of a case share a name; step figures in different units are different cases.
        case = key._replace(metric="", unit=key.unit if key.case.is_step else "")
        sharing[_short(case)].add(case)
        names[key] = _short(case)
    return {
        key: name if len(sharing[name]) == 1 else f"{name}/{_rest(key)}"
        for key, name in names.items()
    }


def _short(key: Key) -> str:
    case = key.case
    parts = [case.framework, series_of_model(case.model), case.mode]
    parts += [topology_of(case)]
    parts += [f"b{case.batch_per_device}" if case.batch_per_device else "", case.precision]
    parts += ["" if case.compiler == "none" else case.compiler]
    parts += [f"{name}={value}" for name, value in (*case.parameters, *key.point)]
    parts += _parts(key, (name for name in CONDITIONS if name not in _IMPLIED))
    return "/".join(filter(None, parts)).replace("\n", " ")


def _rest(key: Key) -> str:
    others = [name for name in CONDITIONS if name in _IMPLIED]
    version = key.case.model.removeprefix(series_of_model(key.case.model))
    parts = [key.case.framework_version, version, key.case.source, *_parts(key, others)]
    parts += [key.unit.replace("/", " per ")] if key.case.is_step else []
    return "/".join(filter(None, parts)).replace("\n", " ")


def _parts(key: Key, names: Iterable[str]) -> list[str]:
    row, left_out = key.row, ("", None, False, NATIVE)
    named = (name for name in names if row[name] not in left_out)
    return [formatting.condition_label(name, row[name]) for name in named]


def export_cases(cases: CaseResults, name: str, target: Path | None, results: Path) -> list[str]:
    """Write cases in the format ``name`` to ``target``, by default below ``results``.

    Returns lines on written and omitted results. Raises ConfigError for an unknown
    format; RecordsError if nothing can be written; OSError if writing fails."""
    form = writer(name)
    assert form.write, "writer() checked this"
    path = target or results / "export" / f"{name}{form.suffix}"
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
    form = reader(name)
    assert form.read, "reader() checked this"
    figures: list[imported.ImportedFigure] = []
    not_taken: list[tuple[str, str]] = []
    refused: list[tuple[str, str]] = []
    paths = _paths(path, (form.suffix, *form.others))
    for place in paths:
        file, shown = imported.ImportedFile(place), str(place).replace(f"{path}/", "")
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
        nothing = f"import: {path}: has no figure in the format {name}"
        raise RecordsError("\n".join([nothing, *left_out]))
    runs = imported.complete(figures)
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
        raise imported.FormatError(
            f"import: {path}: holds no file that ends with {' or '.join(suffixes)}"
        )
    return files


def _check_results(results: Path, target: Path, text: str) -> None:
    """Raise RecordsError if ``results`` holds anything but this import."""
    if target.is_file() and bounded.read_bytes(target) == text.encode():
        return
    if held := sorted(path.name for path in results.glob("[!.]*")):
        raise RecordsError(
            f"import: {results} holds {held[0]} already; allowed: an empty folder of results: "
            "--results DIR"
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
