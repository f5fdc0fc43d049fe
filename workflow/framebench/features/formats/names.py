"""Case names for tools that identify a case by its name only."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from core.axes import NATIVE

from ...cases.conditions import CONDITIONS, Key, series_of_model
from ...cases.names import topology_of
from ...tables import formatting

#: Conditions that follow from the machine or the suite. Names that contained them would change with
#: every small change.
_IMPLIED = frozenset(
    {
        *("accelerator", "cores_per_device", "warmup_steps", "warmup_limit", "timed_steps"),
        "timed_seconds",
        *("parallelism", "machine", "environment"),
    }
)


def names_of(keys: Iterable[Key]) -> dict[Key, str]:
    """Return a name for each key: framework/model/mode/devices/batch/precision/..

    Values other than the default are appended. Names are the same for every set of records. Cases
    of one set with equal names get all their other conditions appended."""
    sharing: dict[str, set[Key]] = defaultdict(set)
    names: dict[Key, str] = {}
    for key in keys:
        # All metrics of a case share a name; step figures in different units are different cases.
        case = key._replace(metric="", unit=key.unit if key.case.is_step else "")
        sharing[_short(case)].add(case)
        names[key] = _short(case)
    return {
        key: name if len(sharing[name]) == 1 else f"{name}/{_rest(key)}"
        for key, name in names.items()
    }


def _short(key: Key) -> str:
    case = key.case
    parts = [case.framework, series_of_model(case.model), case.mode]
    parts += [topology_of(case)]
    parts += [f"b{case.batch_per_device}" if case.batch_per_device else "", case.precision]
    parts += ["" if case.compiler == "none" else case.compiler]
    parts += [f"{name}={value}" for name, value in (*case.parameters, *key.point)]
    parts += _parts(key, (name for name in CONDITIONS if name not in _IMPLIED))
    return "/".join(filter(None, parts)).replace("\n", " ")


def _rest(key: Key) -> str:
    others = [name for name in CONDITIONS if name in _IMPLIED]
    version = key.case.model.removeprefix(series_of_model(key.case.model))
    parts = [key.case.framework_version, version, key.case.source, *_parts(key, others)]
    parts += [key.unit.replace("/", " per ")] if key.case.is_step else []
    return "/".join(filter(None, parts)).replace("\n", " ")


def _parts(key: Key, names: Iterable[str]) -> list[str]:
    row = key.row
    found = [(name, row[name]) for name in names]
    return [
        formatting.condition_label(name, value)
        for name, value in found
        if value not in ("", None, False, NATIVE)
    ]
