"""The command that measures a case again, as a reader of the page copies it: the call that measured
it, narrowed to the case, into a folder that is made for it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from datetime import datetime

from ..cases import matrix
from ..config import inputs
from ..records.beside.calls import Call
from ..records.run import Run

#: What a call that measures one case again has its own way, or must not have.
_OWN = ("results", "cases", "records", "base", "candidate", "fail_on")
#: Options of Snakemake that take what follows them as pairs of key and value.
_CONFIG = ("--config", "-C")
#: A new folder each time the command is pasted.
FOLDER = 'results="$(mktemp -d again-XXXXXX)"'


def case_of(run: Run) -> str:
    """The case as a plan names it, and as the key ``cases`` takes it."""
    case, conditions = run.case, run.conditions
    return str(
        matrix.Case(
            case.framework,
            case.model,
            case.mode,
            case.nodes,
            case.devices_per_node,
            matrix.MAX if run.largest else case.batch_per_device,
            case.precision,
            case.compiler,
            conditions.sequence_length,
            conditions.arm,
            case.parameters,
            conditions.accumulation,
            conditions.parallelism,
            conditions.node,
            _input(run),
        )
    )


def _input(run: Run) -> str:
    """That of the case."""
    name = inputs.without_identity(run.conditions.input)
    return matrix.input_of(run.case.mode, name) if name in inputs.NAMES else inputs.SYNTHETIC


def call_of(run: Run, calls: Sequence[tuple[float, Call]]) -> Call | None:
    """The call that measured it; None where that is not known. ``calls``: with the second of each
    (:func:`timed`), in the order in which they were made."""
    if run.record is None or run.started is None:
        return None
    before = [call for started, call in calls if started <= run.started]
    return before[-1] if before else None


def timed(calls: Sequence[Call]) -> list[tuple[float, Call]]:
    """With the second of the epoch in which each began, the earliest first; without those that do
    not tell."""
    found = []
    for call in calls:
        try:
            found.append((datetime.fromisoformat(call.started).timestamp(), call))
        except ValueError:
            continue
    return sorted(found)


def command(call: Call) -> str:
    """All of the command but the case, which comes behind it. Raises ValueError for a call that no
    shell can read."""
    words, pairs = [], []
    for word, is_pair in _words(shlex.split(call.command)):
        if not is_pair:
            words.append(word)
        elif word.partition("=")[0] not in _OWN:
            pairs.append(word)
    return " ".join([shlex.join([*words, "--config", *pairs]), FOLDER, "cases="])


def _words(words: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """Each word of a call of Snakemake, and whether it is a pair of the configuration."""
    inside = False
    for word in words:
        if word in _CONFIG:
            inside = True
        elif word.startswith("--config="):
            inside = True
            yield word.removeprefix("--config="), True
        elif inside and "=" in word and not word.startswith("-"):
            yield word, True
        else:
            inside = False
            yield word, False
