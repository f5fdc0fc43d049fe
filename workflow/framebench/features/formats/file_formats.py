"""File formats: name, suffix, reader and writer of each, and which there are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from ...config.validation import ConfigError, did_you_mean
from ...records import tidy_csv
from ...tables.results import CaseResult, CaseResults
from .names import names_of
from .rows import ImportedFigure
from .source import ImportedFile


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
    read: Callable[[ImportedFile], Iterable[ImportedFigure]] | None = None
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
