"""A user's model, from the command line to the commands that would run."""

from __future__ import annotations

import re
import sys

from .conftest import Project

FILE = 'FRAMEWORK = "pytorch"\ndef make(batch_size): ...\n'


def test_a_file_is_measured_alone_and_verified_behind_its_runs(project: Project) -> None:
    project.configure(interpreters={"pytorch": sys.executable})
    arguments = ("--cores", "all", "-n", "-p", "--config", "model=my model.py")
    refused = project.run(*arguments)
    assert refused.returncode
    assert "allowed: a name of letters, digits" in refused.stdout
    (project.folder / "my_model.py").write_text(FILE)
    dry = project.run(*arguments[:-1], "model=my_model.py")
    assert dry.returncode == 0, dry.stdout
    commands = [line for line in dry.stdout.splitlines() if "/harness " in line]
    kinds = {
        kind: [command for command in commands if f"/harness --kind {kind} " in command]
        for kind in ("train", "inference", "verification", "peak_flops", "memory")
    }
    assert [len(some) for some in kinds.values()] == [2, 2, 2, 1, 0], dry.stdout
    assert all("--model my_model.py " in text for text in commands)
    assert all("/frameworks/pytorch " in text for text in commands)
    for text in kinds["verification"]:
        assert "'scale=own float64 run'" in text
        assert "reference=" not in text
    assert not re.search(r"rule reference|frameworks/toy", dry.stdout)
