"""Short labels of cases, which show only the axes that differ within the plan."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from core.case import Case


def label_cases(cases: Iterable[Case]) -> dict[Case, str]:
    """Return labels such as ``pytorch resnet50 train fp32 1n2g``, with the axes that still
    differ."""
    alike: dict[str, list[Case]] = defaultdict(list)
    for case in dict.fromkeys(cases):
        alike[_usual(case)].append(case)
    found = {}
    for usual, group in alike.items():
        further = {case: case.labels() for case in group}
        names = {name for one in further.values() for name in one}
        differing = {n for n in names if len({one.get(n) for one in further.values()}) > 1}
        for case, words in further.items():
            own = (word for name, word in words.items() if name in differing)
            found[case] = " ".join([usual, *own])
    return found


def _usual(case: Case) -> str:
    words = (case.framework, case.model, case.mode, case.precision, case.topology)
    return " ".join(filter(None, words))
