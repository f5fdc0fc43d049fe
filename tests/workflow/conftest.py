"""A copy of the project with a toy framework, so that whole workflows run in seconds."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from ..processes import wait_for
from .snakemake_server import SnakemakeCall, snakemake_server

ROOT = Path(__file__).parents[2]
Finished = subprocess.CompletedProcess[str]
PARTS = ("Snakefile", "workflow", "scripts", "envs", "config", "profiles")
CASES, RUNS = 2, 4
SUITE = {
    "steps": {"warmup": 1, "timed": 3},
    "repeats": 2,
    "axes": {
        "framework": "toy",
        "model": "toy",
        "mode": ["train", "inference"],
        "batch_per_device": [1],
    },
}
#: Suite of one run, for tests that need neither repeats nor further cases.
ONE_RUN: dict[str, Any] = {**SUITE, "repeats": 1, "axes": {**SUITE["axes"], "mode": ["train"]}}


#: Addition to the peak benchmark, which all tables wait for: otherwise it takes five seconds.
SHORT_PEAK = """
SECONDS, BLOCK_SECONDS = 0.3, 0.01
PeakFlopsKind.parameters = (PeakFlopsKind.parameters[0]._replace(default=0.2),)
"""


@dataclass
class Project:
    """Project folder and ways to use it."""

    folder: Path
    first: Finished | None = None
    started: list[SnakemakeCall] = field(default_factory=list)
    snakemake: str = "snakemake"  # module or script of its main program

    def write_suite(self, suite: dict[str, object]) -> None:
        (self.folder / "config" / "suites" / "toy.yaml").write_text(yaml.safe_dump(suite))

    def start(self, *arguments: str, toy: str = "", **more: str) -> SnakemakeCall:
        """Start Snakemake in a separate process group, as a terminal would."""
        locks = str(self.folder / ".locks")
        variables = {**os.environ, "FRAMEBENCH_LOCKS": locks, "FRAMEBENCH_TOY": toy, **more}
        server = snakemake_server()
        process = server.start(self.snakemake, list(arguments), self.folder, variables)
        self.started.append(process)
        return process

    def run(self, *arguments: str, toy: str = "", check: bool = False, **more: str) -> Finished:
        """Run Snakemake until it ends; ``check``: fail if its exit status is not 0."""
        process = self.start(*arguments, toy=toy, **more)
        output, _ = process.communicate(timeout=1200)
        assert not check or process.returncode == 0, output
        return subprocess.CompletedProcess(process.args, process.returncode, output)

    def all(self, *config: str, **options: Any) -> Finished:
        return self._make((), config, **options)

    def measure(self, *config: str, **options: Any) -> Finished:
        """Run only the benchmarks, without peak, tables and report, for tests of records."""
        return self._make(("--until", "benchmark"), config, **options)

    def medians(self, *config: str, **options: Any) -> Finished:
        """Run only the benchmarks and the table of medians, for tests that need no other table."""
        return self._make(("medians",), config, **options)

    def report(self, *config: str, **options: Any) -> Finished:
        """Make all tables and the report in one process, for tests that need no rules for them."""
        return self._make(("report",), config, **options)

    def _make(self, targets: Sequence[str], config: Sequence[str], **options: Any) -> Finished:
        configured = ["--config", *config] if config else []
        return self.run("--cores", "all", *targets, *configured, **options)

    def configure(self, **values: object) -> None:
        path = self.folder / "config" / "config.yaml"
        path.write_text(yaml.safe_dump({**yaml.safe_load(path.read_text()), **values}))

    def records(self) -> dict[str, str]:
        runs = self.folder / "results" / "runs"
        return {str(p.relative_to(runs)): p.read_text() for p in sorted(runs.rglob("*.json"))}

    def parsed(self) -> list[dict[str, Any]]:
        return [json.loads(text) for text in self.records().values()]

    def statuses(self) -> list[str]:
        return sorted(record["status"] for record in self.parsed())

    def processes(self, *arguments: str) -> dict[int, str]:
        """Return the command lines of this project's processes by id, optionally only with all
        ``arguments``. They are identified by a command, a folder or an environment that names the
        project."""
        actual = {}
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) == os.getpid():
                continue
            try:
                command = (entry / "cmdline").read_bytes()
                if any(word.encode() not in command for word in arguments):
                    continue
                variables = (entry / "environ").read_bytes()
                folder = os.readlink(entry / "cwd")
            except OSError:
                continue
            mine = str(self.folder).encode()
            if (
                mine in command
                or folder.startswith(str(self.folder))
                or (b"FRAMEBENCH_ADDRESSES=" in variables and mine in variables)
            ):
                actual[int(entry.name)] = command.replace(b"\0", b" ").decode(errors="replace")
        return actual

    def pids(self, *arguments: str) -> list[int]:
        """Return the ids of this project's processes whose command line has these arguments."""
        return [*self.processes(*arguments)]

    def kill_all(self) -> None:
        for process in self.started:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def assert_nothing_left(self) -> None:
        wait_for(lambda: not self.processes(), f"these to be gone: {self.processes()}")


def make_project(folder: Path) -> Project:
    """Make a project in a new folder whose only suite is the toy's."""
    folder.mkdir()
    # Includes compiled modules, to save compiling, except temporary ones being written.
    ignored = shutil.ignore_patterns("*.pyc.*")
    for part in PARTS:
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(source, folder / part, ignore=ignored)
        else:
            shutil.copy(source, folder / part)
    toy = ROOT / "tests" / "frameworks" / "toy"
    shutil.copytree(toy, folder / "scripts" / "frameworks" / "toy")
    shutil.copy(ROOT / "tests" / "models" / "toy.json", folder / "scripts" / "models")
    with (folder / "scripts" / "harness" / "kinds" / "peak_flops.py").open("a") as module:
        module.write(SHORT_PEAK)
    made = Project(folder)
    made.write_suite(SUITE)
    made.configure(suite="toy", interpreters={"toy": sys.executable})
    return made


def held_call(project: Project, name: str, results: str, **variables: str) -> SnakemakeCall:
    """Start a call that waits before its first job, and shows that by the file NAME."""
    # A separate copy, because another call may be reading its own.
    snakefile = shutil.copy(Path(__file__).with_name("held.smk"), project.folder / f"{name}.smk")
    variables |= {"HELD": str(project.folder / name)}
    arguments = ("--snakefile", str(snakefile), "--until", "benchmark")
    return project.start(*arguments, "--config", f"results={results}", **variables)


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    made = make_project(tmp_path / "a project")  # the blank is intended: paths must be quoted
    yield made
    made.kill_all()


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Return a completely measured project, not to be changed."""
    made = make_project(tmp_path_factory.mktemp("finished") / "a project")
    made.first = made.all(check=True)
    return made


@pytest.fixture
def measured(finished: Project, tmp_path: Path) -> Iterator[Project]:
    folder = tmp_path / "a project"
    shutil.copytree(finished.folder, folder)
    made = Project(folder, finished.first)
    yield made
    made.kill_all()
