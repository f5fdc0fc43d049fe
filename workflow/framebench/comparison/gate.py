"""Exit status of a comparison, for continuous integration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..statistics import verdicts

if TYPE_CHECKING:
    import pandas as pd

REGRESSION, LOST, NOTHING = 3, 4, 5
NAMES = {REGRESSION: "regression", LOST: "lost case", NOTHING: "nothing comparable"}
#: Reasons for cases that only one side has.
_ALONE = ("not in base", "not in candidate")


class NotPassed(Exception):
    """A comparison that does not pass. ``names``: name of each exit status."""

    def __init__(self, status: int, message: str, names: Mapping[int, str] = NAMES) -> None:
        super().__init__(f"{names[status]}: {message}")
        self.status = status


def check(frame: pd.DataFrame, fail_on: float | None) -> None:
    """Raise :class:`NotPassed` if a :func:`compare.compare` frame does not pass.
    It fails if no case is on both sides. With ``fail_on``, a fraction, these fail as well, in this
    order: a case that is shown to be slower by more than that, a lost case, or no decided one."""
    from . import compare  # here: pandas is slow to import

    cases = len(frame)
    if frame["reason"].isin(_ALONE).all():
        raise NotPassed(NOTHING, f"none of {cases} cases is on both sides")
    if fail_on is None:
        return
    failing = compare.regressions(frame, fail_on)
    lost = int(failing["candidate_median"].isna().sum())
    slower = len(failing) - lost
    losing = f"{lost} of {cases} cases are lost: the candidate has no figure for them"
    if slower:
        also = f", and {losing}" if lost else ""
        raise NotPassed(
            REGRESSION,
            f"{slower} of {cases} cases are shown to be more than {fail_on:.1%} slower{also}",
        )
    if lost:
        raise NotPassed(LOST, losing)
    undecided = compare.undecided(frame, fail_on)
    both = frame["base_median"].notna() & frame["candidate_median"].notna()
    if len(undecided) == both.sum() and (undecided["verdict"] == verdicts.CANNOT_TELL).all():
        raise NotPassed(
            NOTHING,
            f"none of {cases} cases shows whether it is more than {fail_on:.1%} slower",
        )
