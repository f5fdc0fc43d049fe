"""The command that measures a case again, as a reader of the page copies it: the call that measured
it, narrowed to the case, into a folder that is made for it.

``calls.csv`` may be a stranger's, and the command goes into the reader's shell: it is offered only
where each of its words is known.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from datetime import datetime

from core import axes, inputs
from core.case import MAX, Case

from ..cases import matrix
from ..config.settings import Configuration
from ..records.run import Run
from ..records.sidecars.calls import CallEntry

#: What a call that measures one case again has its own way, or must not have.
_OWN = ("results", "cases", "records", "base", "candidate", "fail_on")
#: Options of Snakemake that take what follows them as pairs of key and value.
_CONFIG = ("--config", "-C")
#: Words of a call that are offered: options with their values, options without, targets.
_VALUES = {
    r"--cores|-c": r"\d{1,5}|all",
    r"--jobs|-j": r"\d{1,5}|all|unlimited",
    r"--sdm|--software-deployment-method|--deployment-method": r"conda|apptainer|env-modules",
    r"--executor|-e": r"local|slurm",
    r"--workflow-profile": r"(\./)?profiles/[\w-]+",
    r"--retries|-T|--restart-times": r"\d{1,3}",
    r"--latency-wait": r"\d{1,5}",
}
_FLAGS = frozenset(
    {
        *("--keep-going", "-k", "--rerun-incomplete", "--ri", "--printshellcmds", "-p"),
        *("--use-conda", "--use-apptainer", "--use-singularity", "--use-envmodules"),
    }
)
_TARGETS = frozenset({"all", "parity", "tables"})
_PAIR = re.compile(r"(?P<key>\w+)=(?P<value>[\w./:,@%+][\w./:,@%+ \[\]-]*)", re.ASCII)
#: A new folder each time the command is pasted.
FOLDER = 'results="$(mktemp -d again-XXXXXX)"'


def case_of(run: Run) -> str:
    """The case as a plan names it, and as the key ``cases`` takes it."""
    case, conditions = run.case, run.conditions
    asked = Case(
        case.framework,
        case.model,
        case.mode,
        case.nodes,
        case.devices_per_node,
        MAX if run.largest else case.batch_per_device,
        case.precision,
        case.compiler,
        conditions.sequence_length,
        conditions.arm,
        case.parameters,
        node=conditions.node,
    )
    values = {axis.name: getattr(conditions, axis.name) for axis in axes.optional()}
    return str(asked.having({**values, "input": _input(run)}))


def _input(run: Run) -> str:
    """That of the case."""
    name = inputs.without_identity(run.conditions.input)
    return matrix.input_of(run.case.mode, name) if name in inputs.NAMES else inputs.SYNTHETIC


def call_of(run: Run, calls: Sequence[tuple[float, CallEntry]]) -> CallEntry | None:
    """The call that measured it; None where that is not known. ``calls``: with the second of each
    (:func:`timed`), in the order in which they were made."""
    if run.record is None or run.started is None:
        return None
    before = [call for started, call in calls if started <= run.started]
    return before[-1] if before else None


def timed(calls: Sequence[CallEntry]) -> list[tuple[float, CallEntry]]:
    """With the second of the epoch in which each began, the earliest first; without those that do
    not tell."""
    found = []
    for call in calls:
        try:
            found.append((datetime.fromisoformat(call.started).timestamp(), call))
        except ValueError:
            continue
    return sorted(found)


def command(call: CallEntry) -> str:
    """All of the command but the case, which comes behind it. Raises ValueError for a call that no
    shell can read, and for one with a word that is not known."""
    words, pairs = [], []
    given = shlex.split(call.command)
    if given[:1] != ["snakemake"]:
        raise ValueError("a call of another program")
    _check(list(_words(given[1:])))
    for word, is_pair in _words(given):
        if not is_pair:
            words.append(word)
        elif word.partition("=")[0] not in _OWN:
            pairs.append(word)
    return " ".join([shlex.join([*words, "--config", *pairs]), FOLDER, "cases="])


def _check(words: list[tuple[str, bool]]) -> None:
    """Raise ValueError for the first of the ``words`` that is not known."""
    keys = {field.alias or name for name, field in Configuration.model_fields.items()}
    left = iter(words)
    for word, is_pair in left:
        if is_pair:
            pair = _PAIR.fullmatch(word)
            known = pair is not None and pair["key"] in keys
        elif word in _FLAGS or word in _TARGETS:
            known = True
        else:
            known = _is_option(word, left)
        if not known:
            raise ValueError(f"an unknown word: {word!r}")


def _is_option(word: str, left: Iterator[tuple[str, bool]]) -> bool:
    """Return whether ``word`` is a known option with a known value: behind =, as one word, or the
    next of those ``left``, which is then taken."""
    for option, value in _VALUES.items():
        name, joined, own = word.partition("=")
        if not joined and re.match(r"-\w", word):
            name, own = word[:2], word[2:]
        if own and re.fullmatch(option, name):
            return re.fullmatch(value, own, re.ASCII) is not None
        if re.fullmatch(option, word):
            return re.fullmatch(value, next(left, ("", False))[0], re.ASCII) is not None
    return False


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
