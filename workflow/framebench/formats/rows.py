"""What an importer makes of a figure: a run with one metric, and what its file does not say
missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from ..cases.conditions import MODES, THROUGHPUT, Case, Conditions
from ..config.fields import COUNTS, FACTS
from ..records.run import NO_REASON, Metric, Run
from .source import Refused


def figure(
    source: str,
    mode: str,
    metric: str,
    value: float | None,
    unit: str,
    better: str,
    *,
    repeat: int = 0,
    status: str = "ok",
    reason: str = "",
    variant: str = "",
    node: str = "",
    accelerator: str = "",
    parameters: Mapping[str, Any] | None = None,
    **case: Any,
) -> Run:
    """``source``: the tool; ``repeat`` 0: numbered by :func:`complete`; ``case``: of FACTS, what
    the file says."""
    usual = {name: 0 if name in COUNTS else "" for name in FACTS}
    return Run(
        case=Case(
            source=source,
            mode=mode,
            parameters=tuple(sorted((parameters or {}).items())),
            **{**usual, **case},
        ),
        conditions=Conditions(accelerator=accelerator, source_variant=variant, node=node),
        repeat=repeat,
        attempt=0,
        status=status,
        reason="" if status == "ok" else reason or NO_REASON,
        metrics=(Metric(metric, value if status == "ok" else None, unit, better),),
        step_seconds=(),
        wall_seconds=None,
        origin="",
        hardware="",
        environment="",
        record=None,
    )


def complete(runs: Iterable[Run], facts: Mapping[str, Any], tool: str) -> list[Run]:
    """With what the user said of them in the place of what the files do not say; repeats numbered;
    and figures that are not throughput of steps whose whole case is known under a mode of the
    tool's own, so that nothing takes them for that. Raises Refused where both say something, and
    it is not the same."""
    counted: Counter[Any] = Counter()
    completed = []
    for run in runs:
        run = _of_steps(_with(run, facts), tool)
        if not run.repeat:
            counted[run.key] += 1
            run = replace(run, repeat=counted[run.key])
        completed.append(run)
    return completed


def _with(run: Run, facts: Mapping[str, Any]) -> Run:
    for name, value in facts.items():
        if (found := getattr(run.case, name)) not in ("", 0, value):
            raise Refused(
                f"import: facts: {name}: found {value!r}, but the file says {found!r}; allowed: "
                "what it does not say"
            )
    return replace(run, case=replace(run.case, **facts))


def _of_steps(run: Run, tool: str) -> Run:
    """Devices of which the file gives the total alone are shared out over the nodes, where these
    are known."""
    case = run.case
    given = dict(case.parameters)
    if case.nodes and not case.devices_per_node and "devices" in given:
        if given["devices"] % case.nodes:
            raise Refused(
                f"import: facts: nodes: found {case.nodes}, but the file has {given['devices']} "
                "devices; allowed: as many on each node"
            )
        per_node = given.pop("devices") // case.nodes
        case = replace(case, devices_per_node=per_node, parameters=tuple(sorted(given.items())))
    needed = (case.framework, case.model, *(getattr(case, name) for name in COUNTS))
    is_step = run.metrics[0].name == THROUGHPUT and all(needed)
    if case.mode in MODES and not is_step:
        case = replace(case, mode=f"{tool.replace('-', '_')}_{case.mode}")
    elif case.mode in MODES:
        case = replace(case, parameters=())
    return replace(run, case=case)
