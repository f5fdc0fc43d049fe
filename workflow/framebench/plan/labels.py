"""Short labels of cases, which show only the axes that differ within the plan."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from core.case import Case

from ..cases import names


def label_cases(cases: Iterable[Case], larger: Mapping[Case, Case]) -> dict[Case, str]:
    """Return labels such as ``pytorch  ResNet-50 training  fp32``, with the axes that still
    differ. ``larger``: cases that check another batch, with the case that they check."""
    alike: dict[str, list[Case]] = defaultdict(list)
    for case in dict.fromkeys(case for case in cases if case not in larger):
        alike[_usual(case)].append(case)
    results = {}
    for usual, group in alike.items():
        words = {case: _further(case) for case in group}
        differing = [
            name
            for name in dict.fromkeys(name for entry in words.values() for name in entry)
            if len({entry.get(name, "") for entry in words.values()}) > 1
        ]
        for case, entry in words.items():
            texts = [entry.get(name, "") for name in differing]
            results[case] = "  ".join(filter(None, [usual, *texts]))
    checks = {case: f"{results[of]}  batch {case.batch_per_device}" for case, of in larger.items()}
    return results | checks


def _usual(case: Case) -> str:
    parts = (case.framework, names.workload(case), names.in_words(case.precision))
    return "  ".join(filter(None, parts))


def _further(case: Case) -> dict[str, str]:
    """Return the words of all further axes; those of the total batch follow from others."""
    words = {**case.words(), "topology": names.devices(case) if case.devices else ""}
    words["compiler"] = "" if case.compiler == "none" else case.compiler
    return {
        name: text for name, text in words.items() if name not in ("mode", "precision", "total")
    }
