"""Runs of the harness through its command line, by default on the toy framework."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .processes import PATIENCE, heed_signals, wait_for

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Finished:
    """Result of a command line. `record` is None if none was written."""

    status: int
    stdout: str
    stderr: str
    record: Any


@dataclass
class Bench:
    """Runs in a folder of their own, whose processes carry a marker in their environment."""

    folder: Path
    python: str = sys.executable
    marker: str = field(default_factory=lambda: uuid.uuid4().hex)

    @property
    def output(self) -> Path:
        return self.folder / "out" / "record.json"

    @property
    def log(self) -> Path:
        return self.folder / "logs" / "run.log"

    @property
    def hold(self) -> Path:
        """Return the file whose removal ends the toy's ``hold``."""
        return self.folder / "hold"

    @property
    def locks(self) -> Path:
        return self.folder / "locks"

    @property
    def temporary(self) -> Path:
        return self.folder / "tmp"

    def command(
        self, *extra: str, parameters: Mapping[str, object] | None = None, **options: object
    ) -> list[str]:
        """Return the command line of a run, without options that are None.
        ``parameters``: of the benchmark; ``extra``: further words."""
        given: dict[str, object] = {
            "framework": ROOT / "tests/frameworks/toy",
            "model": ROOT / "tests/models/toy.json",
            "kind": "train",
            "nodes": 1,
            "devices_per_node": 1,
            "batch_per_device": 4,
            "precision": "fp32",
            "compiler": "none",
            "accelerator": "cpu",
            "warmup_steps": 2,
            "timed_steps": 5,
            "time_limit": 600,
            "seed": 0,
            "repeat": 1,
            "install_method": "hand",
            "output": self.output,
            "log": self.log,
        }
        given.update(options)
        arguments = [self.python, str(ROOT / "scripts/harness")]
        for key, value in given.items():
            if value is not None:
                arguments += ["--" + key.replace("_", "-"), str(value)]
        for key, value in (parameters or {}).items():
            arguments += ["--parameter", f"{key}={value}"]
        return [*arguments, *extra]

    def environment(self, behaviour: str, **more: str) -> dict[str, str]:
        self.temporary.mkdir(exist_ok=True)
        return {
            **os.environ,
            "FRAMEBENCH_TEST": self.marker,
            "FRAMEBENCH_TOY": behaviour,
            "FRAMEBENCH_HOLD": str(self.hold),
            "FRAMEBENCH_LOCKS": str(self.locks),
            "TMPDIR": str(self.temporary),
            **more,
        }

    def start(
        self, behaviour: str = "", *extra: str, prefix: tuple[str, ...] = (), **options: object
    ) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*prefix, *self.command(*extra, **options)],
            env=self.environment(behaviour),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=heed_signals,
        )

    def run(
        self,
        behaviour: str = "",
        *extra: str,
        variables: dict[str, str] | None = None,
        cwd: Path | None = None,
        before: Callable[[], None] | None = None,
        **options: object,
    ) -> Finished:
        done = subprocess.run(
            self.command(*extra, **options),
            env=self.environment(behaviour, **(variables or {})),
            cwd=cwd,
            preexec_fn=before,
            capture_output=True,
            text=True,
            timeout=600,
        )
        return Finished(done.returncode, done.stdout, done.stderr, self.read_record())

    def finish(self, launcher: subprocess.Popen[str]) -> Finished:
        stdout, stderr = launcher.communicate(timeout=PATIENCE)
        return Finished(launcher.returncode, stdout, stderr, self.read_record())

    def read_record(self) -> Any:
        return json.loads(self.output.read_text()) if self.output.is_file() else None

    def processes(self, *variables: str) -> list[int]:
        """Return the ids of this test's processes whose environment also has all `variables`."""
        wanted = {f"FRAMEBENCH_TEST={self.marker}", *variables}
        actual = []
        for path in Path("/proc").glob("[0-9]*/environ"):
            try:
                held = path.read_bytes().decode("utf-8", "replace").split("\0")
            except OSError:
                continue
            if wanted <= set(held):
                actual.append(int(path.parent.name))
        return actual

    def wait_for_phase(self, phase: str, ranks: int) -> None:
        def there() -> bool:
            reports = self.temporary.glob("framebench-*/rank*.json")
            return sum(f'"phase": "{phase}"' in path.read_text() for path in reports) == ranks

        wait_for(there, f"{ranks} rank(s) in phase {phase}")

    def assert_nothing_left(self, killed: bool = False) -> None:
        """Check that no process is left and, unless the launcher was ``killed``, no file either."""
        wait_for(lambda: not self.processes(), "every process of the run to be gone")
        if killed:
            return
        wait_for(
            lambda: not self.temporary.exists() or not list(self.temporary.iterdir()),
            "the temporary folder to be empty",
        )
        wait_for(
            lambda: not list(self.folder.rglob("*.part")), "no partial file left beside the output"
        )
