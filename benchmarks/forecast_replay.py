"""How far off was the time left, in a call that was really made?

    .venv/bin/python benchmarks/forecast_replay.py RESULTS [KEY=VALUE ..] [--keep FILE]

RESULTS: the folder that one call measured into, from nothing on, on this machine. The order of its
tasks, how long each took and how it ended come from ``logs/tasks.csv`` there, its configuration
from ``calls.csv``; KEY=VALUE stand in the place of what that says. They are replayed with what the
plan expects today of each task and the forecast of the terminal. Goals: the truth lies in the
plan's range, and from a quarter of the way on the time left is within 20 %, while more is left
than the longest task takes. ``--keep``: write the tasks as ``logs/tasks.csv`` has them today, for
``tests/data/calls``.
"""

from __future__ import annotations

import argparse
import csv
import re
import shlex
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "workflow")]

from framebench.config.catalog import load_catalog  # noqa: E402
from framebench.config.settings import load_settings  # noqa: E402
from framebench.machine import local  # noqa: E402
from framebench.plan.planning import make_plan  # noqa: E402
from framebench.plan.tasks import Task  # noqa: E402
from framebench.records.beside import noted  # noqa: E402
from framebench.runs import certify, expected, probes, total  # noqa: E402
from framebench.terminal import told  # noqa: E402
from framebench.terminal.told import TaskRow  # noqa: E402

#: In a name, another whenever the code is another.
_DIGEST = re.compile(r"[-/][0-9a-f]{8}(?=/|$)")


def configuration(results: Path) -> dict[str, str]:
    """Of the last call that is noted in the folder."""
    with (results / "calls.csv").open(newline="") as file:
        *_, last = csv.DictReader(file)
    words = iter(shlex.split(last["command"]))
    given = {"suite": last["suite"]}
    is_config = False
    for word in words:
        is_config = word == "--config" or (is_config and not word.startswith("-"))
        if is_config and "=" in word:
            given.update([word.split("=", 1)])
    return given


def planned(config: dict[str, str], empty: str) -> tuple[list[Task], float]:
    """What the plan expects today where nothing is there yet, and of how much at once."""
    catalog, machine = load_catalog(ROOT), local.detect()
    defaults = yaml.safe_load((ROOT / "config" / "config.yaml").read_text())
    places = {"results": empty, "environments": f"{empty}/environments"}
    settings = load_settings({**defaults, **config, **places}, catalog)
    plan = make_plan(settings, catalog, machine, None)
    full = certify.names(plan, catalog, certify.comparisons(plan, catalog))
    small = certify.small(plan, catalog, full)
    return expected.of_all(plan, probes.names(plan), small), total.at_once(plan)


def rows_of(results: Path, tasks: list[Task], at_once: float) -> Iterator[TaskRow]:
    """What the call noted, with what is expected today; a line for what is not known today."""
    left: dict[str, list[Task]] = defaultdict(list)
    for task in tasks:
        left[_DIGEST.sub("", task.name)].append(task)
    with (results / told.FILE).open(newline="") as file:
        rows = [*csv.DictReader(file)]
    if len({row["call"] for row in rows}) != 1:
        raise SystemExit(f"{results / told.FILE}: holds more calls than one")
    for row in rows:
        name = _DIGEST.sub("", row["task"])
        if not left[name]:
            print(f"not in today's plan: {row['task']}", file=sys.stderr)
            continue
        task, took, ended = left[name].pop(0), float(row["took"]), float(row["ended"])
        yield told.row_of(row["call"], at_once, task, row["status"], took, ended)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("results", type=Path)
    parser.add_argument("config", nargs="*", metavar="KEY=VALUE")
    parser.add_argument("--keep", type=Path, metavar="FILE")
    given = parser.parse_args()
    own = dict(word.split("=", 1) for word in given.config)
    with tempfile.TemporaryDirectory() as empty:
        tasks = planned({**configuration(given.results), **own}, empty)
    rows = [*rows_of(given.results, *tasks)]
    print(told.table(rows[0].call, rows))
    if given.keep:
        noted.append(given.keep, TaskRow._fields, rows)
    (before,) = told.moments(rows, (0.0,))
    return int(not (before.is_in_range and all(one.is_near for one in told.judged(rows))))


if __name__ == "__main__":
    sys.exit(main())
