"""Benchmarks of a suite other than steps, with the values of their parameters.

The harness reads a benchmark's declaration from its module. The driver asks it in another process,
so that it imports no harness code.
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

#: Benchmark that trains on several devices without all-reduce: the control of a scaling series.
INDEPENDENT = "independent"
#: Benchmarks of the bandwidth of memory: of a host's, of a device's.
BANDWIDTHS = ("memory", "elementwise")
#: Benchmark of storage in a folder, which the configuration may name.
STORAGE = "storage"
#: Benchmark of convergence; some of its tasks read the configured data folder.
CONVERGE = "converge"
#: Benchmarks that a suite requests in another way, and that way.
OTHERWISE = {
    **dict.fromkeys(MODES, "axes.mode"),
    "verification": "the target verification",
    "largest_batch": "batch_per_device: max",
}
#: Placeholder of the results folder in a parameter.
RESULTS = "{results}"


@dataclass(frozen=True)
class Folders:
    """Folders that the configuration names for benchmarks.

    ``kinds``: of the user's benchmarks; ``storage``: default of the benchmark ``storage``;
    ``data``: default of tasks that read files; ``results``: value of {results}.
    """

    kinds: Path | None = None
    storage: Path | None = None
    data: Path | None = None
    results: Path = Path("results")


#: Of a configuration that names none.
NO_FOLDERS = Folders()


@dataclass(frozen=True)
class Measurement:
    """A benchmark of a suite.

    ``axes``: values of the axes of a case; ``parameters``: values of each parameter, as in records;
    ``chosen``: parameters that the suite sets, all others have their default.
    """

    kind: str
    axes: Mapping[str, list[Any]]
    counts_steps: bool
    parameters: Mapping[str, tuple[Any, ...]]
    chosen: frozenset[str] = frozenset()


def measurement(
    kind: str,
    chosen: Mapping[str, list[Any]],
    usual: Mapping[str, list[Any]],
    written: Mapping[str, Any],
    catalog: Catalog,
    folders: Folders,
) -> Measurement:
    """Return a benchmark as the harness declares it.

    Parameters
    ----------
    kind : name of the benchmark
    chosen : values of axes
    usual : values of axes that are not in ``chosen``
    written : values of parameters
    catalog : of frameworks and models
    folders : of the configuration

    Raises :class:`NotAllowed` for unknown or missing axes and parameters.
    """
    if kind in OTHERWISE:
        raise NotAllowed(f"other kinds; this one is measured by {OTHERWISE[kind]}", show(kind))
    texts = {name: _texts(name, value, folders.results) for name, value in written.items()}
    if kind == STORAGE and folders.storage:
        texts.setdefault("folder", [str(folders.storage)])
    models = (catalog.models[model] for model in chosen.get("model", ()))
    if kind == CONVERGE and folders.data and any(model.get("reads_files") for model in models):
        texts.setdefault("data", [str(folders.data)])
    about = _asked(kind, texts, catalog.root, folders.kinds)
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
            allowed = "a list of values, as the suite's axes have none for this"
            raise NotAllowed(allowed, "nothing", axis)
    try:
        parameters = {
            name: tuple(dict.fromkeys(values)) for name, values in about["parameters"].items()
        }
    except TypeError as error:
        raise NotAllowed("parameters whose values are texts and numbers", str(error)) from None
    return Measurement(kind, axes, about["counts_steps"], parameters, frozenset(texts))


def _texts(name: str, written: Any, results: Path) -> list[str]:
    """Return the values of a parameter as texts for the harness."""
    values = written if isinstance(written, list) else [written]
    if not values or not all(isinstance(value, str | int | float) for value in values):
        allowed = "a text, a number, true or false, or a list of these"
        raise NotAllowed(allowed, show(written), name)
    texts = (str(value).lower() if isinstance(value, bool) else str(value) for value in values)
    return [text.replace(RESULTS, str(results)) for text in texts]


def _asked(
    kind: str, texts: Mapping[str, list[str]], root: Path, folder: Path | None
) -> dict[str, Any]:
    answer = _answer if folder else _answer_of_harness
    try:
        declared: dict[str, Any] = json.loads(answer(json.dumps({kind: texts}), root, folder))[kind]
    except (children.NoAnswer, ValueError, RecursionError) as error:
        where = f" of {folder}" if folder else ""
        raise NotAllowed("a kind whose module can be read", f"{kind}{where}: {error}") from None
    return declared


def _answer(question: str, root: Path, folder: Path | None) -> str:
    """Return the JSON answer of the harness. Raises :class:`children.NoAnswer`."""
    command = [sys.executable, str(root / "scripts" / "harness" / "describe.py"), "kinds"]
    return children.ask([*command, str(folder)] if folder else command, question)


#: Cached, because the harness does not change during a call; a user's folder may.
_answer_of_harness = cache(_answer)
