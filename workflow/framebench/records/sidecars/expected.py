"""Expected cases of the suites that are measured into the results, with or without records.

They show when a suite is incomplete. Kept in ``expected.json`` in the results.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core import bounded, observed
from core.case import Case

from ...cases.conditions import CASE, Conditions, Key, input_axis
from ...files import json_files
from ...files.whole_files import write_whole
from ..run import Problem, cause

FILE = "expected.json"
#: Beginning of the reason why a case is left out of a time budget.
TOO_SLOW = "too slow for "
_NUMBERS = ("nodes", "devices_per_node", "batch_per_device")
_IN_CASE = {**observed.IN_CASE, "further": "further"}
_USUAL = {"further": (), **{axis.name: axis.default for axis in observed.CONDITIONS}}


@dataclass(frozen=True)
class ExpectedCase:
    """A case of a suite.

    ``folder``: of its records below ``runs``; "" while its batch is searched. ``is_budgeted``:
    whether a time budget decides its repeats, by the order of the frameworks. ``left_out``: why the
    plan leaves the case out; "" for a case that is to be measured.
    """

    suite: str
    folder: str
    case: Case
    conditions: Conditions
    is_budgeted: bool = False
    left_out: str = ""


def note(results: Path, suite: str, cases: Iterable[ExpectedCase], is_whole: bool) -> None:
    """Replace the expected cases of a suite. Raises OSError.

    ``is_whole``: whether ``cases`` are the whole suite; otherwise they are added to the earlier
    ones.
    """
    known, _ = load(results)
    here = {_identity(case): case for case in cases}
    others = [case for case in known if case.suite != suite]
    before = (
        []
        if is_whole
        else [case for case in known if case.suite == suite and (case.folder or case.left_out)]
    )
    kept = {_identity(case): case for case in before} | here
    text = json.dumps({"cases": [_written(other) for other in (*others, *kept.values())]}, indent=1)
    path = results / FILE
    if not (path.is_file() and bounded.read_bytes(path) == f"{text}\n".encode()):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, f"{text}\n")


def load(results: Path) -> tuple[list[ExpectedCase], list[Problem]]:
    """Return all expected cases, and problems with the file; both empty without a file."""
    path = results / FILE
    if not path.is_file():
        return [], []
    try:
        content = json_files.read(path)
        listed = content.get("cases") if isinstance(content, dict) else None
        if not isinstance(listed, list):
            raise ValueError("has no list of cases")
        return [_read(entry) for entry in listed], []
    except (OSError, ValueError) as error:
        return [], [Problem(FILE, cause(error))]


def _identity(case: ExpectedCase) -> Any:
    return case.folder or (case.case, case.conditions)


def _written(expected_case: ExpectedCase) -> dict[str, Any]:
    case = {
        **{name: getattr(expected_case.case, name) for name in CASE},
        "parameters": expected_case.case.parameters,
    }
    row = {
        **Key(expected_case.case, expected_case.conditions, "").row,
        "further": expected_case.case.further,
    }
    conditions = {name: row[name] for name, usual in _USUAL.items() if row[name] != usual}
    further = {"budgeted": expected_case.is_budgeted, "left_out": expected_case.left_out}
    return {
        "suite": expected_case.suite, "folder": expected_case.folder, "case": case,
        "conditions": conditions,
        **{name: value for name, value in further.items() if value},
    }  # fmt: skip


def _read(found: Any) -> ExpectedCase:
    """Return the expected case in a JSON value. Raises ValueError with the fault."""
    try:
        case = {**found["case"], "parameters": _parameters(found["case"]["parameters"])}
        known = {**_USUAL, **found["conditions"]}
        known["further"] = _parameters(known["further"])
        in_case = {field: known.pop(name) for name, field in _IN_CASE.items()}
        case |= {**in_case, "input": input_axis(case["mode"], known["input"])}
        expected = ExpectedCase(
            str(found["suite"]), str(found["folder"]), Case(**case), Conditions(**known),
            found.get("budgeted") is True, str(found.get("left_out", "")),
        )  # fmt: skip
        if not all(type(getattr(expected.case, name)) is int for name in _NUMBERS):
            raise TypeError(f"{', '.join(_NUMBERS)} are no numbers")
        hash(expected)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"has a case of another form ({error})") from error
    return expected


def _parameters(found: Any) -> tuple[tuple[str, Any], ...]:
    return tuple((str(name), value) for name, value in found)


def unmeasured(cases: Sequence[ExpectedCase], folders: Iterable[str]) -> list[ExpectedCase]:
    """Return the cases without a record; ``folders``: folders with a record, below ``runs``."""
    present = {*folders}
    return [case for case in cases if case.folder not in present]
