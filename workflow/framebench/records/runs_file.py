"""File of all runs of a results folder, from which rules make tables.

The first line is the fingerprint of the records and files that it was made from. The second is a
JSON object with the fields of :class:`RecordSet`.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from core import bounded
from pydantic import TypeAdapter

from .index import LARGEST
from .record_sets import RecordSet
from .run import RecordsError, Run, cause

NAME = "runs.json"
_RECORDS: Any = {"runs": {"__all__": {"record"}}}


def content(record_set: RecordSet, fingerprint: str) -> bytes:
    """Return the content of the file. Paths of records are left out: the origins tell them."""
    fields = _adapter().dump_json(record_set, exclude=_RECORDS, exclude_defaults=True)
    return b"%s\n%s\n" % (fingerprint.encode(), fields)


def read(path: Path, source: Path) -> RecordSet:
    """Return the runs of a file; ``source``: where their records are.

    Raises RecordsError for a file that cannot be read.
    """
    try:
        fields = bounded.read_bytes(path, LARGEST).partition(b"\n")[2]
        record_set = _adapter().validate_json(fields)
    except (OSError, ValueError) as error:
        raise RecordsError(f"{path}: {cause(error)}") from error
    root = source if source.is_dir() else source.parent

    def located(run: Run) -> Run:
        is_record = run.origin.endswith(".json")  # not a line of a CSV
        return replace(run, record=root / run.origin) if is_record else run

    return replace(record_set, runs=tuple(map(located, record_set.runs)), root=root)


def fingerprint(path: Path) -> str:
    """Return the first line of a file: its fingerprint. Raises OSError."""
    with closing(bounded.open_to_read(path)) as file:
        start = file.read(200) or b""
    return start.partition(b"\n")[0].decode("ascii", "replace").strip()


@cache
def _adapter() -> TypeAdapter[RecordSet]:
    return TypeAdapter(RecordSet)
