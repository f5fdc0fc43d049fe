"""SQLite index of result sets that were read before: 100,000 records are answered in seconds.

It is only a cache. A set's entry is valid as long as its files are unchanged. A damaged index is
emptied, and it may be deleted at any time.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from core import bounded
from core.case import Case

from ...cases.conditions import Conditions, Key
from ...files.problem import Problem
from ...records.index import code_digest
from ...records.run import RecordsError
from . import sources
from .sources import HistoryPoint, ResultSet

#: Name of the index in a results folder.
FILE = ".history.sqlite"
#: Seconds to wait for a writing call.
_PATIENCE = 60
#: Packages that decide what a point is; an index of other code is discarded.
CODE = (
    "cases",
    "comparison",
    "config",
    "features/history",
    "files",
    "machine",
    "records",
    "statistics",
    "tables",
)
_TABLES = """
CREATE TABLE IF NOT EXISTS version (code TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS sets (
    id INTEGER PRIMARY KEY, path TEXT UNIQUE NOT NULL, state TEXT NOT NULL, problems TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS texts (id INTEGER PRIMARY KEY, text TEXT UNIQUE NOT NULL);
CREATE TABLE IF NOT EXISTS points (
    of_set INTEGER NOT NULL, key INTEGER NOT NULL, better TEXT NOT NULL, version TEXT NOT NULL,
    code TEXT NOT NULL, started REAL, status TEXT NOT NULL, reason TEXT NOT NULL,
    repeats INTEGER NOT NULL, median REAL, low REAL, high REAL, flags TEXT NOT NULL,
    facts INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS points_of_set ON points (of_set);
"""


#: Columns of a point, in the order of its fields; shared texts are stored by number.
_COLUMNS = (
    "key, facts, low, high, better, version, code, started, status, reason, repeats, median, flags"
)


#: Exceptions from reading a damaged or foreign index.
_BROKEN = (sqlite3.DatabaseError, ValueError, TypeError, KeyError, RecursionError, OverflowError)
#: Largest size of an index, in bytes; 100,000 records take 30 MB.
_LARGEST = 2**30
#: Suffixes of files that SQLite opens with the index.
_BESIDE = ("-journal", "-wal", "-shm")


@dataclass(frozen=True)
class MeasuredPoint:
    """A point and its set."""

    source: ResultSet
    point: HistoryPoint


def load(result_sets: Sequence[ResultSet], file: Path) -> tuple[list[MeasuredPoint], list[Problem]]:
    """Return the points of the sets, and problems with sets that could not be read.
    ``file``: the index, if its folder is writable. Raises RecordsError if no set can be read."""
    try:
        with closing(connected(file)) as kept:
            return _load(kept, result_sets)
    except RecordsError:
        raise
    except _BROKEN:
        file.unlink(missing_ok=True)  # make a missing or broken index anew
    with closing(connected(file)) as kept:
        return _load(kept, result_sets)


def _load(
    kept: sqlite3.Connection, result_sets: Sequence[ResultSet]
) -> tuple[list[MeasuredPoint], list[Problem]]:
    rows = kept.execute("SELECT path, id, state FROM sets").fetchall()
    known = {path: (number, state) for path, number, state in rows}
    failures: dict[str, Problem] = {}
    for source in result_sets:
        number, before = known.get(name_of(source), (None, ""))
        if before != source.state:
            try:
                _read(kept, source, number)
            except (RecordsError, OSError) as error:
                failures[source.name] = Problem(source.name, str(error))
    good = [source for source in result_sets if source.name not in failures]
    if not good:
        raise RecordsError(next(iter(failures.values())).message)
    measured, problems = _points(kept, good)
    return measured, [*failures.values(), *problems]


def _read(kept: sqlite3.Connection, source: ResultSet, before: int | None) -> None:
    """Read a set into the index, replacing the entry ``before``."""
    points, problems = sources.read(source.path)
    with kept:
        if before is not None:
            kept.execute("DELETE FROM points WHERE of_set = ?", (before,))
            kept.execute("DELETE FROM sets WHERE id = ?", (before,))
        text = json.dumps([(problem.origin, problem.message) for problem in problems])
        number = kept.execute(
            "INSERT INTO sets (path, state, problems) VALUES (?, ?, ?)",
            (name_of(source), source.state, text),
        ).lastrowid
        rows = [
            (
                number, number_of_text(kept, text_of_key(point.key)), point.better, point.version,
                point.commit, point.started, point.status, point.reason, point.repeats,
                point.median, *(point.interval or (None, None)), point.flags,
                number_of_text(kept, json.dumps(point.facts, sort_keys=True)),
            )
            for point in points
        ]  # fmt: skip
        kept.executemany(f"INSERT INTO points VALUES ({', '.join('?' * 14)})", rows)


def _points(
    kept: sqlite3.Connection, result_sets: Iterable[ResultSet]
) -> tuple[list[MeasuredPoint], list[Problem]]:
    texts = dict(kept.execute("SELECT id, text FROM texts"))
    by_name = {name_of(source): source for source in result_sets}
    keys: dict[int, Key] = {}
    facts: dict[int, Any] = {}
    measured, problems = [], []
    for number, path, text in kept.execute("SELECT id, path, problems FROM sets").fetchall():
        source = by_name.get(path)
        if source is None:
            continue
        problems += [Problem(f"{source.name}: {entry}", why) for entry, why in json.loads(text)]
        for row in kept.execute(f"SELECT {_COLUMNS} FROM points WHERE of_set = ?", (number,)):
            key, fact, low, high, *others = row
            if key not in keys:
                keys[key] = _key_of(texts[key])
            if fact not in facts:
                facts[fact] = json.loads(texts[fact])
            interval = None if low is None else (low, high)
            point = HistoryPoint(keys[key], interval, facts[fact], *others)
            measured.append(MeasuredPoint(source, point))
    return measured, problems


def name_of(source: ResultSet) -> str:
    """Return the name of a set of records in the index: its absolute path."""
    return str(source.path.absolute())


def number_of_text(kept: sqlite3.Connection, text: str) -> int:
    """Return the number of a shared text."""
    kept.execute("INSERT OR IGNORE INTO texts (text) VALUES (?)", (text,))
    (number,) = kept.execute("SELECT id FROM texts WHERE text = ?", (text,)).fetchone()
    return int(number)


def text_of_key(key: Key) -> str:
    """Return the key as JSON."""
    return json.dumps([key.case._asdict(), asdict(key.conditions), key.unit, key.metric])


def _key_of(text: str) -> Key:
    case, conditions, unit, metric = json.loads(text)
    return Key(Case.from_json(case), Conditions(**conditions), unit, metric)


def connected(file: Path) -> sqlite3.Connection:
    """Open the index; in memory if it cannot be kept, or is locked for too long."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        for path in (file, *(Path(f"{file}{suffix}") for suffix in _BESIDE)):
            if path.exists():
                bounded.check(path, _LARGEST)
        return _with_tables(sqlite3.connect(file, timeout=_PATIENCE))
    except (OSError, sqlite3.OperationalError):
        return _with_tables(sqlite3.connect(":memory:"))


def _with_tables(kept: sqlite3.Connection) -> sqlite3.Connection:
    """Create the tables, and empty them if they were made by other code.
    Raises DatabaseError for any other schema: views and triggers may compute without end."""
    with kept:
        kept.execute("PRAGMA trusted_schema = OFF")
        there = kept.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
        if there and {text for (text,) in there} != _statements():
            raise sqlite3.DatabaseError("has other tables")
        kept.executescript(_TABLES)
        (code,) = kept.execute("SELECT max(code) FROM version").fetchone()
        if code != code_digest(CODE):
            for table in ("version", "sets", "texts", "points"):
                kept.execute(f"DELETE FROM {table}")
            kept.execute("INSERT INTO version VALUES (?)", (code_digest(CODE),))
    return kept


@cache
def _statements() -> set[str]:
    """Return the SQL statements of the tables, in SQLite's notation."""
    with closing(sqlite3.connect(":memory:")) as made:
        made.executescript(_TABLES)
        rows = made.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")
        return {text for (text,) in rows}
