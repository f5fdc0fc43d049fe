"""Environments of the report: each framework with its software and machine."""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..records.fields.facts import leaves
from ..records.record_sets import load_record
from ..records.run import RecordsError, Run
from ..tables.measured import runs_in
from . import colours
from .record_links import Link

MAX_SETUPS = 12

Pairs = list[tuple[str, str]]


@dataclass(frozen=True)
class FrameworkSetup:
    """A framework in one environment on one kind of machine, with facts from one record."""

    framework: str
    colour: str
    version: str
    source: str
    runs: int
    ok: int
    made: str
    facts: Sequence[tuple[str, str]]
    details: Sequence[tuple[str, Sequence[tuple[str, str]]]]
    record: Sequence[Link]


def of_runs(
    runs: Sequence[Run], link: Callable[[Run, str], Link]
) -> tuple[list[FrameworkSetup], int]:
    """Return a setup per framework, version, source, machine and environment.

    At most MAX_SETUPS; the second value is the number left out."""
    groups: dict[tuple[str, ...], list[Run]] = defaultdict(list)
    for run in runs:
        case = run.case
        key = (case.framework, case.framework_version, case.source)
        groups[(*key, str(run.machine), run.environment)].append(run)
    setups = []
    for group_key in sorted(groups)[:MAX_SETUPS]:
        group = groups[group_key]
        # A successful run has the most complete environment.
        run = next((run for run in group if run.status == "ok"), group[0])
        made = "imported: no environment recorded"
        facts: Pairs = []
        details: list[tuple[str, Pairs]] = []
        if run.record is not None:
            try:
                made, facts, details = _facts(load_record(run.record))
            except RecordsError as error:
                made = f"not known: the record could not be read again ({error})"
        setups.append(
            FrameworkSetup(
                framework=runs_in(run.case),
                colour=colours.variable(runs_in(run.case)),
                version=run.case.framework_version or "not known",
                source=run.case.source,
                runs=len(group),
                ok=sum(other.status == "ok" for other in group),
                made=made,
                facts=facts,
                details=details,
                record=[link(run, f"record of repeat {run.repeat}")],
            )
        )
    return setups, len(groups) - len(setups)


def _facts(record: Mapping[str, Any]) -> tuple[str, Pairs, list[tuple[str, Pairs]]]:
    """Return how the environment was built, hardware and system, and further details."""
    environment = record["environment"]
    ways = {
        "venv": "a venv that the workflow built",
        "conda": "a conda environment that Snakemake built",
        "interpreter": "an interpreter named in the config",
        "modules": "environment modules",
        "container": "a container",
        "hand": "by hand, outside the workflow",
    }
    brought = " ".join([environment.get("image", ""), *environment.get("modules", [])]).strip()
    way = ways[environment["install_method"]] + (f" ({brought})" if brought else "")
    made = f"{way}, Python {environment['python']}"
    facts = [*_flat(environment["hardware"]), *_flat(environment["system"])]
    watched = {key: value for key, value in record.get("watch", {}).items() if key != "raw"}
    rank = record["ranks"][0] if record["ranks"] else {}
    libraries = rank.get("libraries", {}).items()
    details: list[tuple[str, Pairs]] = [
        ("Command of one run", [("", shlex.join(record["command"]))]),
        ("Job of one run", _flat(environment.get("scheduler"))),
        ("While it was timed", _flat(watched)),
        ("Settings", [*_flat(record["settings"]), *_flat(rank.get("settings", {}))]),
        (
            "Libraries of linear algebra and threads, with the code path that each tells",
            [(name, code_path or "does not tell") for name, code_path in libraries],
        ),
        ("Code", _flat(environment["code"])),
        ("Variables", _flat(environment["variables"])),
        ("Packages", _flat(environment["packages"])),
    ]
    return made, facts, [(name, pairs) for name, pairs in details if pairs]


def _flat(facts: Any) -> Pairs:
    """Return nested facts as pairs of name and text, without empty ones."""
    pairs = []
    for path, value in leaves(facts):
        name = " ".join(map(str, path)).replace("_", " ")
        if name.endswith("bytes") and isinstance(value, int):
            name, value = name.removesuffix("bytes").strip(), f"{value / 2**30:.1f} GiB"
        elif isinstance(value, list):
            value = ", ".join(map(str, value))
        elif isinstance(value, float):
            value = f"{value:.6g}"
        if value not in (None, ""):
            pairs.append((name, str(value)))
    return pairs
