"""Expected cases of the suites that are measured into the results, with or without records.

They show when a suite is incomplete. Kept in ``expected.json`` in the results.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from core import bounded
from core.case import Case

from ..cases.conditions import Conditions
from ..files import json_files
from ..files.whole_files import write_whole
from .run import Problem, cause

FILE = "expected.json"
#: Beginning of the reason why a case is left out of a time budget.
TOO_SLOW = "too slow for "


@dataclass(frozen=True)
class ExpectedCase:
    """A case of a suite.

    ``folder``: folder of its records below ``runs``; "" while its batch is searched.
    ``is_budgeted``: whether a time budget decides its repeats, by the order of the frameworks.
    ``left_out``: why the plan leaves the case out; "" for a case that is to be measured.
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
    others = [case for case in known if case.suite != suite]
    before = [case for case in known if case.suite == suite and (case.folder or case.left_out)]
    kept = {_identity(case): case for case in (*([] if is_whole else before), *cases)}
    written = [
        {**vars(case), "case": case.case._asdict(), "conditions": asdict(case.conditions)}
        for case in (*others, *kept.values())
    ]
    text = json.dumps({"cases": written}, indent=1)
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
        return [_read(entry) for entry in json_files.read(path)["cases"]], []
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        return [], [Problem(FILE, f"{cause(error)}; the next call of the suite writes it anew")]


def _identity(case: ExpectedCase) -> Any:
    return case.folder or (case.case, case.conditions)


def _read(found: Any) -> ExpectedCase:
    case, conditions = Case.from_json(found["case"]), Conditions(**found["conditions"])
    expected = ExpectedCase(**{**found, "case": case, "conditions": conditions})
    hash(expected)  # raises TypeError for a list, which is not a valid value
    return expected
