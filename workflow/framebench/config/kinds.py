"""Benchmarks of a suite other than steps, with the values of their parameters.

A benchmark's declaration is its module in the harness, or in the user's folder.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import harness.kinds
from core.axes import MODES as MODES
from harness.kind import Kind, ParameterError

from .keys import KeyContext
from .validation import NotAllowed, NotAmong, show

#: Benchmark that trains on several devices without all-reduce: the control of a scaling series.
INDEPENDENT = "independent"
#: Benchmarks of memory bandwidth: of the host, and of a device.
BANDWIDTHS = ("memory", "elementwise")
#: Benchmark of storage in a folder, which the configuration may name.
STORAGE = "storage"
#: Benchmark of convergence; some of its tasks read the configured data folder.
CONVERGE = "converge"
#: Benchmarks that a suite cannot request under ``measurements``.
OTHERWISE = {*MODES, "verification", "largest_batch"}
#: Placeholder of the results folder in a parameter.
RESULTS = "{results}"


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
    context: KeyContext,
) -> Measurement:
    """Return a benchmark as the harness declares it.

    Parameters
    ----------
    kind : name of the benchmark
    chosen : values of axes
    usual : values of axes that are not in ``chosen``
    written : values of parameters
    context : models, and default folders of parameters

    Raises :class:`NotAllowed` for unknown or missing axes and parameters.
    """
    catalog, folders = context
    results = folders.get("results", Path("results"))
    texts = {name: _texts(name, value, results) for name, value in written.items()}
    if kind == STORAGE and "storage" in folders:
        texts.setdefault("folder", [str(folders["storage"])])
    models = chosen.get("model", ())
    reads_files = any(catalog.models[model].get("reads_files") for model in models)
    if kind == CONVERGE and "data" in folders and reads_files:
        texts.setdefault("data", [str(folders["data"])])
    declared = _declaration(kind, folders.get("kinds"))
    try:
        parameters = declared.read_parameters(texts)
    except ParameterError as error:
        names = [parameter.name for parameter in declared.parameters]
        allowed = error.allowed if error.name in names else _listed(declared, names)
        raise NotAllowed(allowed, error.found, error.name) from None
    for axis in chosen:
        if axis not in declared.axes:
            found = f"an axis that {kind} does not have"
            raise NotAllowed(_listed(declared, parameters), found, axis)
    axes = {axis: {**usual, **chosen}.get(axis, []) for axis in declared.axes}
    for axis, values in axes.items():
        if not values or not isinstance(values, list) or "max" in values:
            allowed = "a list of values, because the suite's axes do not set this one"
            raise NotAllowed(allowed, "nothing", axis)
    values_of = {name: tuple(dict.fromkeys(some)) for name, some in parameters.items()}
    return Measurement(kind, axes, declared.counts_steps, values_of, frozenset(texts))


def _listed(declared: Kind, parameters: Iterable[str]) -> str:
    return ", ".join([*declared.axes, *parameters])


def _declaration(kind: str, folder: Path | None) -> Kind:
    """Return the declaration of a benchmark. Raises NotAllowed if there is none, or if the module
    of a user's own cannot be imported."""
    where = str(folder) if folder else None
    names = [name for name in harness.kinds.names(where) if name not in OTHERWISE]
    if kind not in names:
        raise NotAmong(kind, names)
    try:
        declared = harness.kinds.load(kind, where)
        _listed(declared, [parameter.name for parameter in declared.parameters])
        return declared
    except (Exception, SystemExit) as error:
        found = " ".join(f"{kind} of {folder}: {type(error).__name__}: {error}".split())
        raise NotAllowed("a kind whose module can be imported", found) from None


def _texts(name: str, written: Any, results: Path) -> list[str]:
    """Return the values of a parameter as texts for the harness."""
    values = written if isinstance(written, list) else [written]
    if not values or not all(isinstance(value, str | int | float) for value in values):
        allowed = "a text, a number, true or false, or a list of these"
        raise NotAllowed(allowed, show(written), name)
    texts = (str(value).lower() if isinstance(value, bool) else str(value) for value in values)
    return [text.replace(RESULTS, str(results)) for text in texts]
