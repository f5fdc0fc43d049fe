"""Command that measures a case again, for readers of the page to copy.

The command is the call that measured the case, limited to the case and writing to a new folder.
``calls.csv`` may come from a stranger, and readers paste the command into a shell. A command is
therefore offered only if every word of it is known."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from datetime import datetime

from core.case import MAX

from ..config.settings import Configuration
from ..records.run import Run
from ..records.sidecars.calls import CallEntry

#: Configuration keys that the new command sets itself or must not have.
_OWN = ("results", "cases", "records")
#: Snakemake options followed by pairs of key and value.
_CONFIG = ("--config", "-C")
#: Allowed words: options with patterns of their values, options without values, targets.
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
_TARGETS = frozenset({"all", "verification", "tables"})
_PAIR = re.compile(r"(?P<key>\w+)=(?P<value>[\w./:,@%+][\w./:,@%+ \[\]-]*)", re.ASCII)
#: Assignment that creates a new folder each time the command is pasted.
FOLDER = 'results="$(mktemp -d again-XXXXXX)"'


def case_of(run: Run) -> str:
    """Return the name of a run's case, as in a plan and as accepted by the key ``cases``."""
    return str(run.case._replace(batch_per_device=MAX) if run.largest else run.case)


def call_of(run: Run, calls: Sequence[tuple[float, CallEntry]]) -> CallEntry | None:
    """Return the call that measured a run; None if unknown.

    ``calls``: in chronological order, as returned by :func:`timed`."""
    if run.record is None or run.started is None:
        return None
    before = [call for started, call in calls if started <= run.started]
    return before[-1] if before else None


def timed(calls: Sequence[CallEntry]) -> list[tuple[float, CallEntry]]:
    """Return calls with their start in seconds since the epoch, earliest first.

    Calls without a valid start are left out."""
    found = []
    for call in calls:
        try:
            found.append((datetime.fromisoformat(call.started).timestamp(), call))
        except ValueError:
            continue
    return sorted(found)


def command(call: CallEntry) -> str:
    """Return the command up to ``cases=``, to which the case is appended.

    Raises ValueError for a call that no shell can parse or that has an unknown word."""
    parts, pairs = [], []
    arguments = shlex.split(call.command)
    if arguments[:1] != ["snakemake"]:
        raise ValueError("a call of another program")
    _check(list(_marked_words(arguments[1:])))
    for word, is_pair in _marked_words(arguments):
        if not is_pair:
            parts.append(word)
        elif word.partition("=")[0] not in _OWN:
            pairs.append(word)
    return " ".join([shlex.join([*parts, "--config", *pairs]), FOLDER, "cases="])


def _check(words: list[tuple[str, bool]]) -> None:
    """Raise ValueError for the first unknown word in ``words``."""
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
    """Return whether ``word`` is a known option with a known value.

    The value may follow in the same word, after "=" or directly, or be the next word of ``left``,
    which is then consumed."""
    for option, value in _VALUES.items():
        name, joined, own = word.partition("=")
        if not joined and re.match(r"-\w", word):
            name, own = word[:2], word[2:]
        if own and re.fullmatch(option, name):
            return re.fullmatch(value, own, re.ASCII) is not None
        if re.fullmatch(option, word):
            return re.fullmatch(value, next(left, ("", False))[0], re.ASCII) is not None
    return False


def _marked_words(arguments: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """Yield each word of a Snakemake call, and whether it is a configuration pair."""
    inside = False
    for word in arguments:
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
