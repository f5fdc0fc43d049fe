"""False and missed differences of ``compare``, on planted ones.

    .venv/bin/python benchmarks/same_twice.py [--keep DIR]

Measures an A/B test on this machine in three variants: two identical ones, and one with every step
of one framework made 5 % longer. Goals: between the first two, no difference is shown in any case;
in the third, only that framework is slower.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pandas as pd
import yaml

ROOT = Path(__file__).resolve().parent.parent
FRAMEWORKS = ("pytorch", "mxnet")
SLOWED = "pytorch"
CALLED = ("faster", "slower")
SLOWER = 0.05
VARIABLE = "FRAMEBENCH_PLANTED"
BASE, SAME, PLANTED = "first", "second", "slowed"
SUITE = {
    "steps": {"warmup": {"at_least": 8, "at_most": 32}, "timed": 16},
    # Pairs scatter by up to 8 % on a virtual machine with neighbours.
    "repeats": 30,
    # Variants differ in the value of a variable that only the third one reacts to.
    "variants": {name: {"variables": {VARIABLE: name}} for name in (BASE, SAME, PLANTED)},
    "axes": {
        "framework": list(FRAMEWORKS),
        "model": ["resnet50_v1.5"],
        "mode": ["inference"],
        "batch_per_device": [2],
        "compiler": ["none"],
    },
}
CODE = f"""

def _slowed(step: Any) -> Any:
    import time

    def longer(self: Any) -> Any:
        start = time.perf_counter()
        handle = step(self)
        end = start + {1 + SLOWER} * (time.perf_counter() - start)
        while time.perf_counter() < end:
            pass
        return handle

    return longer


if __import__("os").environ.get("{VARIABLE}") == "{PLANTED}":
    PyTorchAdapter.step = _slowed(PyTorchAdapter.step)
"""


def snakemake(project: Path, cores: str, *arguments: str) -> None:
    command = [sys.executable, "-m", "snakemake", "--cores", cores, *arguments]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{command} failed:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")


def compared(project: Path, measured: Path, candidate: str) -> pd.DataFrame:
    """Return the table of ``compare`` of a variant against BASE."""
    results = measured.parent / candidate
    program = [sys.executable, str(project / "workflow" / "framebench"), "compare"]
    sides = ["--base", f"{measured}@{BASE}", "--candidate", f"{measured}@{candidate}"]
    subprocess.run([*program, *sides, "--results", str(results)], check=True, capture_output=True)
    return pd.read_csv(results / "tables" / "compare.csv")


def show(title: str, table: pd.DataFrame) -> None:
    print(title)
    columns = ["framework", "base_median", "candidate_median", "ratio", "ratio_ci_low",
               "ratio_ci_high", "p_adjusted", "pairs", "verdict"]  # fmt: skip
    print(table[columns].to_string(index=False, float_format="{:.4g}".format), flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep", type=Path, help="where the results go, and stay")
    options = parser.parse_args()
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        project = Path(name, "project")
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(project)], check=True)
        (project / ".venvs").symlink_to(
            ROOT / ".venvs"
        )  # linked, not copied: it works only at its own path
        adapter = project / "scripts" / "frameworks" / SLOWED / "adapter.py"
        adapter.write_text(adapter.read_text() + CODE)
        folder = (options.keep or Path(name)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        measured = folder / "measured"
        shutil.rmtree(measured, ignore_errors=True)
        suite = folder / "same_twice.yaml"
        suite.write_text(yaml.safe_dump(SUITE))
        # Leaves a core for the rest of the system, if there are two.
        config = [f"suite={suite}", f"results={measured}", "cores_per_device=1"]
        snakemake(project, "all", "all", "--config", *config)
        same, planted = (compared(project, measured, variant) for variant in (SAME, PLANTED))
    show("The same twice", same)
    show(f"{SLOWED} made {SLOWER:.0%} slower", planted)
    called = same["verdict"].isin(CALLED).sum()
    slowed = planted["framework"] == SLOWED
    missed = (planted["verdict"][slowed] != "slower").sum()
    invented = planted["verdict"][~slowed].isin(CALLED).sum()
    print(
        f"The same twice: {called} called different. Planted: {missed} missed, {invented} "
        f"invented. {(time.monotonic() - start) / 60:.1f} min in all"
    )
    return int(called + missed + invented > 0)


if __name__ == "__main__":
    sys.exit(main())
