"""The quality flags, and other words of tables that need an explanation."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from ..plan import side_by_side
from ..records import verified
from ..records.fields import flags
from ..statistics import steady
from .columns import COLUMNS, CONTRADICTED, LINT

FLAGS = {
    "few": "fewer repeats than an interval of the median needs",
    "noisy": "the interval is wider than 5 % of the median, or the repeats have two modes; with "
    "fewer than six repeats, which have no interval, nothing is said",
    "unsteady": "the step times of a repeat changed or drifted within its timed window, or had not "
    "settled before it, or one step of it stalled",
    "untested": f"fewer than {steady.FEWEST_STEPS} timed steps in a repeat: too few to see whether "
    "they change or drift",
    flags.VANISHED: "the loss had come to nothing when the window ended: the batch was learned by "
    "heart, and with what is left of its gradients a CPU may compute many times slower",
    "disturbed": "while a repeat was timed, others used its cores, its GPU or the machine, or "
    "these were throttled",
    "shared": "there were fewer physical cores than cores were asked for: two threads of one core "
    "count as two, and slow each other down",
    "peak": "the figure comes to more than 95 % of the peak: no model does, so that the peak was "
    "measured too low, and the utilization is too high",
    "roof": "of a roofline: the memory is the lower roof, but need not be a bound: all that a step "
    "has to move fits into the last cache, or the figure lies above it",
    flags.OWN: "the model is a user's own, for one framework (docs/own-model.md): there is no "
    "other framework to compare the figure with, and its certificates are against its own run in "
    "float64",
    "parity": "the framework computed something else than the reference (see the parity table): "
    "do not compare this figure",
    "unproved": "nothing shows that this code, in this environment and with these variables, "
    f"computed the same as the reference: {verified.HOW}",
    LINT: "a printed figure that those beside it contradict, or whose baseline is another than it "
    "says or printed nowhere; the row says which",
}
_BESIDE = COLUMNS["side_by_side"].header
EXPLANATIONS = {**FLAGS, _BESIDE: side_by_side.MEANING}


def explanations(tables: Iterable[pd.DataFrame]) -> list[tuple[str, str]]:
    """The marks and other words in the tables that need an explanation, and it."""
    words = set()
    for table in tables:
        marks = table["marks"].unique() if "marks" in table else ()
        words |= {word for cell in marks for word in str(cell).split()}
        if CONTRADICTED in table and any(table[CONTRADICTED]):
            words.add(LINT)
        if "side_by_side" in table and any(table["side_by_side"]):
            words.add(_BESIDE)
    return [(word, meaning) for word, meaning in EXPLANATIONS.items() if word in words]
