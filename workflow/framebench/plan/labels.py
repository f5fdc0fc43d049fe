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
    results = {}
    for usual, group in alike.items():
        further = {case: case.labels() for case in group}
        names = {name for entry in further.values() for name in entry}
        differing = {n for n in names if len({entry.get(n) for entry in further.values()}) > 1}
        for case, words in further.items():
            texts = (word for name, word in words.items() if name in differing)
            results[case] = " ".join([usual, *texts])
    return results


def _usual(case: Case) -> str:
    parts = (case.framework, case.model, case.mode, case.precision, case.topology)
    return " ".join(filter(None, parts))
