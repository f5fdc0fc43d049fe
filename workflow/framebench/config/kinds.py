"""What a suite measures besides steps: kinds of measurement, with the values of their parameters.

What a kind has is declared once, in its module, which the harness reads: it is asked in a process
of its own, so that the driver imports nothing of what measures.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from core.axes import MODES as MODES

from ..files import children
from .catalog import Catalog
from .validation import NotAllowed, NotAmong, show

#: Trains on several devices without an exchange: the control of a scaling series.
INDEPENDENT = "independent"
#: Measures a folder, which the configuration may name.
STORAGE = "storage"
#: Learns tasks, some of which are read from the folder of data that the configuration names.
CONVERGE = "converge"
#: Kinds that a suite has in another way, and which.
OTHERWISE = {
    **dict.fromkeys(MODES, "axes.mode"),
    "parity": "the target parity",
    "largest_batch": "batch_per_device: max",
}


@dataclass(frozen=True)
class Measurement:
    """What is measured of one kind. ``axes``: the values of what it has of a case; ``parameters``:
    those of each parameter, as they stand in records; ``chosen``: the parameters that are named,
    all others have their default."""

    kind: str
    axes: Mapping[str, list[Any]]
    counts_steps: bool
    parameters: Mapping[str, tuple[Any, ...]]
    chosen: frozenset[str] = frozenset()


def measurement(
    kind: str,
    chosen: Mapping[str, list[Any]],
    usual: Mapping[str, list[Any]],
    texts: Mapping[str, list[str]],
    catalog: Catalog,
    folder: Path | None,
) -> Measurement:
    """What the harness says of a kind, which may be one of ``folder``. ``chosen``: values of axes,
    ``usual``: of those that are not chosen; ``texts``: of parameters. Raises :class:`NotAllowed`
    where the kind does not have these, or where one is missing."""
    if kind in OTHERWISE:
        raise NotAllowed(f"other kinds; this one is measured by {OTHERWISE[kind]}", show(kind))
    about = _asked(kind, texts, catalog.root, folder)
    if "known" in about:
        raise NotAmong(kind, [name for name in about["known"] if name not in OTHERWISE])
    for fault in about["faults"]:
        raise NotAllowed(fault["allowed"], fault["found"], fault["key"])
    for axis in chosen:
        if axis not in about["axes"]:
            allowed = ", ".join([*about["axes"], *about["parameters"]])
            raise NotAllowed(allowed, f"an axis that {kind} does not have", axis)
    axes = {axis: {**usual, **chosen}.get(axis, []) for axis in about["axes"]}
    for axis, values in axes.items():
        if not values or not isinstance(values, list) or "max" in values:
            raise NotAllowed("a list of values, as the suite's axes have none for this", key=axis)
    try:
        parameters = {
            name: tuple(dict.fromkeys(values)) for name, values in about["parameters"].items()
        }
    except TypeError as error:
        raise NotAllowed("parameters whose values are texts and numbers", str(error)) from None
    return Measurement(kind, axes, about["counts_steps"], parameters, frozenset(texts))


@cache
def expected_runs(
    kind: str, parameters: tuple[tuple[str, str], ...], root: Path
) -> list[dict[str, Any]]:
    """What the runs of a series are to have, as ``{axis: value}`` each, where nothing is known of
    it. ``parameters``: name and text of each that is given."""
    about = _asked(kind, {name: [text] for name, text in parameters}, root, None)
    runs: list[dict[str, Any]] = about["expect"]
    return runs


def _asked(
    kind: str, texts: Mapping[str, list[str]], root: Path, folder: Path | None
) -> dict[str, Any]:
    answer = _answer if folder else _answer_of_harness
    try:
        told: dict[str, Any] = json.loads(answer(json.dumps({kind: texts}), root, folder))[kind]
    except (children.NoAnswer, ValueError, RecursionError) as error:
        where = f" of {folder}" if folder else ""
        raise NotAllowed("a kind whose module can be read", f"{kind}{where}: {error}") from None
    return told


def _answer(question: str, root: Path, folder: Path | None) -> str:
    """Return what the harness answers, in JSON. Raises :class:`children.NoAnswer`."""
    command = [sys.executable, str(root / "scripts" / "harness" / "describe.py")]
    return children.ask([*command, str(folder)] if folder else command, question)


#: The harness does not change while it is asked; a user's folder may.
_answer_of_harness = cache(_answer)
