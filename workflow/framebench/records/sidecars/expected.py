"""Expected cases of the suites that are measured into the results, with or without records.

They show when a suite is incomplete. Kept in ``expected.json`` in the results.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
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
    if not isinstance(found, dict):
        raise ValueError("a case is no mapping")
    case, conditions = _mapping(found, "case"), _mapping(found, "conditions")
    if {*case} != {*CASE, "parameters"} or not {*conditions} <= {*_USUAL}:
        raise ValueError("a case has other keys than those of a case")
    for name, value in case.items():
        if name != "parameters" and not isinstance(value, int if name in _NUMBERS else str):
            raise ValueError(f"{name}: found {value!r}")
    for name, value in conditions.items():
        if name != "further" and not isinstance(value, (str, int)):
            raise ValueError(f"{name}: found {value!r}")
    known = {**_USUAL, **conditions, "further": _parameters(conditions.get("further", []))}
    in_case = {field: known.pop(name) for name, field in _IN_CASE.items()}
    case |= {**in_case, "parameters": _parameters(case["parameters"])}
    case["input"] = input_axis(case["mode"], known["input"])
    return ExpectedCase(
        str(found.get("suite", "")), str(found.get("folder", "")), Case(**case),
        Conditions(**known), found.get("budgeted") is True, str(found.get("left_out", "")),
    )  # fmt: skip


def _mapping(found: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = found.get(name)
    if not isinstance(value, dict):
        raise ValueError(f"{name} of a case is no mapping")
    return value


def _parameters(found: Any) -> tuple[tuple[str, Any], ...]:
    if not isinstance(found, list):
        raise ValueError("parameters of a case are no list")
    for pair in found:
        whole = isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str)
        if not whole or not isinstance(pair[1], (str, int, float, bool, type(None))):
            raise ValueError(f"parameters: found {pair!r}")
    return tuple((name, value) for name, value in found)


def unmeasured(cases: Sequence[ExpectedCase], folders: Iterable[str]) -> list[ExpectedCase]:
    """Return the cases without a record; ``folders``: folders with a record, below ``runs``."""
    present = {*folders}
    return [case for case in cases if case.folder not in present]
