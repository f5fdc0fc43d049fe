"""Detection of a slow node among four nodes on one host, one core shared with a busy loop.

    .venv/bin/python benchmarks/slow_node.py [REPEATS]
    .venv/bin/python benchmarks/slow_node.py --record [REPEATS]
    .venv/bin/python benchmarks/slow_node.py --slurm [REPEATS]

Goal: that node alone is named. Runs go through the harness in turn, with the node's name in SLURM's
variable, and with raised priority where allowed. With ``--record`` it measures an idle and a shared
core instead, and writes the figures that the tests draw from.

With ``--slurm`` it runs the suite ``node_health``, cut down to these benchmarks on one core, with
the profile for SLURM, on a real cluster of four nodes on this host. The nodes are measured one at a
time, because they share its cores. A prolog of SLURM keeps the busy loop running while a job is on
n3. Four repeats are the fewest that can decide on four nodes; only memory and kernel launch are
measured, so that it ends within ten minutes on two cores.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "workflow"), str(ROOT)]

from framebench.comparison import gate  # noqa: E402
from framebench.features.node_health import command as node_health  # noqa: E402
from framebench.features.node_health.rules import health_of  # noqa: E402

from tests.hog import hog  # noqa: E402
from tests.slurm import configuration  # noqa: E402
from tests.slurm.cluster import Cluster  # noqa: E402
from tests.slurm.project import OnCluster  # noqa: E402
from tests.workflow.conftest import make_project  # noqa: E402

NODES, SLOW = ("n1", "n2", "n3", "n4"), "n3"
CORE = max(os.sched_getaffinity(0))
#: Longer than a time slice of the scheduler, so that the busy loop affects every block.
SHORT = ["--parameter", "blocks=3", "--parameter", "block_seconds=0.2"]
PYTORCH = ["--framework", str(ROOT / "scripts/frameworks/pytorch")]
#: Python and harness arguments of each benchmark.
KINDS: dict[str, tuple[str, list[str]]] = {
    "memory": (sys.executable, ["--parameter", "rounds=5", "--parameter", "array_bytes=16000000"]),
    "launch": ("pytorch", [*PYTORCH, *SHORT]),
    "matmul": (
        "pytorch", [*PYTORCH, *SHORT, "--precision", "fp32", "--parameter", "shapes=256x256x256"]
    ),
}  # fmt: skip
#: Benchmarks in a suite's notation, with blocks of several time slices.
MEASUREMENTS: dict[str, dict[str, Any]] = {
    "memory": {"rounds": 5, "array_bytes": 16000000},
    "launch": {"framework": "pytorch", "blocks": 3, "block_seconds": 0.5},
}
#: Recorded metrics of each benchmark.
RECORDED = {"memory": ["triad"], "launch": ["time"], "matmul": ["highest_rate"]}
FILE = ROOT / "tests" / "framebench" / "health" / "recorded.json"


def python_of(name: str) -> str:
    """Return an interpreter, or the one of a framework's environment."""
    if "/" in name:
        return name
    found = sorted((ROOT / ".venvs").glob(f"{name}-*/bin/python"))
    if not found:
        raise SystemExit(f"{name}: its environment is missing: build it with ./bootstrap")
    return str(found[-1])


def run(kind: str, node: str, repeat: int, output: Path, shared: bool) -> dict[str, Any]:
    """Return the record of a run on one core. ``shared``: a busy loop runs there, too."""
    python, arguments = KINDS[kind]
    command = [python_of(python), str(ROOT / "scripts" / "harness"), "--kind", kind, *arguments]
    command += ["--accelerator", "cpu", "--cores-per-device", "1", "--devices-per-node", "1"]
    command += ["--node", node, "--repeat", str(repeat), "--output", str(output)]
    with ExitStack() as stack:
        if shared:
            stack.enter_context(hog(CORE))
        subprocess.run(
            command, env={**os.environ, "SLURMD_NODENAME": node}, check=True, capture_output=True
        )
    results: dict[str, Any] = json.loads(output.read_text())
    if results["status"] != "ok":
        raise SystemExit(f"{kind}: {results['status']}: {results['reason']}")
    return results


def record(repeats: int, folder: Path) -> None:
    """Record idle and shared runs of each benchmark in turn."""
    figures: dict[str, dict[str, Any]] = defaultdict(lambda: {"idle": [], "shared": []})
    for repeat in range(1, 3 * repeats + 1):
        for state in ("idle", "shared") if repeat % 3 == 0 else ("idle",):
            for kind, names in RECORDED.items():
                output = folder / f"{kind}-{state}-{repeat}.json"
                metrics = run(kind, "n1", repeat, output, state == "shared")["metrics"]
                for name in names:
                    figure = figures[f"{kind}/{name}"]
                    figure["better"] = metrics[name]["better"]
                    figure[state].append(float(f"{metrics[name]['value']:.6g}"))
        print(f"{repeat} of {3 * repeats}", flush=True)
    made = {"made_by": "benchmarks/slow_node.py --record", "figures": figures}
    FILE.write_text(json.dumps(made, indent=1) + "\n")


def prove(repeats: int, folder: Path) -> int:
    """Measure all nodes in turn and judge them; return 0 if only the slow one is named."""
    for repeat in range(1, repeats + 1):
        for node in NODES:
            for kind in KINDS:
                output = folder / "runs" / node / kind / f"r{repeat}.json"
                output.parent.mkdir(parents=True, exist_ok=True)
                run(kind, node, repeat, output, node == SLOW)
    try:
        node_health.make(folder / "runs", folder, health_of(None, None), 0.05)
    except gate.NotPassed as error:
        print(error)
        named = str(error).endswith(f"slower: {SLOW}")
        return int(not (error.status == gate.REGRESSION and named))
    return 1


#: SLURM's prolog and epilog. The loop gets its own session, and the prolog waits for it, because
#: SLURM kills what a prolog leaves in its process group.
BESIDE = """\
#!/bin/sh
[ "$SLURMD_NODENAME" = {slow} ] || exit 0
if [ "$SLURM_SCRIPT_CONTEXT" = prolog_slurmd ]; then
    exec < /dev/null > /dev/null 2>&1
    setsid taskset -c {core} sh -c 'echo $$ > {pid}; while :; do :; done' &
    while [ ! -s {pid} ]; do sleep 0.1; done
else
    kill -9 "$(cat {pid})"
    rm {pid}
fi
"""


def on_slurm(repeats: int, folder: Path) -> int:
    """Run the suite with the profile for SLURM on a separate cluster; return 0 if it names the
    node."""
    first = min(os.sched_getaffinity(0))  # used by a run with one device
    script = folder / "beside.sh"
    script.write_text(BESIDE.format(slow=SLOW, core=first, pid=folder / "pid"))
    script.chmod(0o755)
    configuration.SLURM += f"Prolog={script}\nEpilog={script}\n"
    suite = yaml.safe_load((ROOT / "config/suites/node_health.yaml").read_text())
    suite |= {"repeats": repeats, "measurements": MEASUREMENTS}
    with Cluster() as cluster:
        # Only the jobs get a raised priority.
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        made = OnCluster(make_project(folder / "project"), cluster)
        made.describe(runs_per_allocation=len(MEASUREMENTS), whole_rounds=True)
        path = made.folder / "config" / "suites" / "node_health.yaml"
        path.write_text(yaml.safe_dump(suite))
        (made.folder / ".venvs").symlink_to(ROOT / ".venvs")
        arguments = ("suite=node_health", "cores_per_device=1")
        print(made.run("all", "--jobs", "1", "--config", *arguments).stdout)
    program = [sys.executable, str(made.folder / "workflow" / "framebench")]
    judged = subprocess.run(
        [*program, "nodes", "--fail-on", "5%"],
        cwd=made.folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    print(judged.stdout, judged.stderr)
    named = re.findall(r"^node (\S+): (?:slower|failed)", judged.stdout, re.MULTILINE)
    return int(not (judged.returncode == gate.REGRESSION and set(named) == {SLOW}))


def main() -> int:
    arguments = [word for word in sys.argv[1:] if not word.startswith("--")]
    usual = 4 if "--slurm" in sys.argv else 5
    repeats = int(arguments[0]) if arguments else usual
    if "--slurm" not in sys.argv:
        os.sched_setaffinity(0, [CORE])
    with suppress(PermissionError):
        # Child processes inherit the priority; a busy loop of equal priority alternates with a run.
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    with tempfile.TemporaryDirectory() as name:
        if "--record" in sys.argv:
            record(repeats, Path(name))
            return 0
        if "--slurm" in sys.argv:
            return on_slurm(repeats, Path(name))
        return prove(repeats, Path(name))


if __name__ == "__main__":
    sys.exit(main())
