"""Coverage of a suite: how many of its cases have been measured."""

from __future__ import annotations

import os
from collections import Counter
from itertools import chain

from .measured import NO_FRAMEWORK
from .table import Inputs


def sentences(inputs: Inputs, only_incomplete: bool = False) -> list[str]:
    """Return a sentence for each suite, with the frameworks that have unmeasured cases.

    ``only_incomplete``: leave out suites without unmeasured cases."""
    results = chain(inputs.cases.values(), inputs.others.values())
    measured = {os.path.dirname(run.origin): result for result in results for run in result.runs}
    lines = []
    for suite in dict.fromkeys(case.suite for case in inputs.expected):
        cases = [case for case in inputs.expected if case.suite == suite]
        missing = [case for case in cases if case.folder not in measured]
        if only_incomplete and not missing:
            continue
        found = [measured[case.folder] for case in cases if case.folder in measured]
        text = f"{len(found)} of {len(cases)} cases of suite {suite} measured"
        if failed := sum(not result.values for result in found):
            text += f", {failed} without a figure"
        every = Counter(case.case.framework or NO_FRAMEWORK for case in cases)
        lacking = Counter(case.case.framework or NO_FRAMEWORK for case in missing)
        if lacking:
            counts = (f"{name} ({lacking[name]} of {every[name]})" for name in sorted(lacking))
            text += f"; not yet: {', '.join(counts)}"
        lines.append(text)
    return lines
