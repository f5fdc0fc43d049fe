"""Process that imports a framework once and forks for each program, so that each test is quick."""

from __future__ import annotations

import copy
import json
import math
import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from harness.processes.launch import common_environment, free_addresses, rank_variables

from ..conftest import build_environment

SERVER = Path(__file__).parent / "programs" / "server.py"
SECONDS = 600  # time limit of a program

#: Modules that a framework's server imports before it forks. OneFlow joins the ranks when imported.
IMPORTS = {
    "jax": ("numpy", "jax", "optax"),
    "megengine": (),  # it starts threads, which no fork keeps
    "mindspore": ("mindspore",),
    "mxnet": ("mxnet",),
    "oneflow": ("numpy", "google.protobuf"),
    "paddle": ("paddle",),
    "pytorch": (
        *("torch", "torch._dynamo", "torch.distributed.fsdp"),
        *("torch.distributed.pipelining", "torch.distributed.tensor.parallel"),
    ),
    "tensorflow": ("numpy", "tensorflow", "keras.layers", "keras.optimizers"),
    "tensorflow1": ("numpy", "tensorflow"),
}
#: Variables that silence the import of a framework.
QUIET = {"mindspore": {"GLOG_v": "3"}, "tensorflow1": {"PYTHONWARNINGS": "ignore"}}

#: Options that make XLA compile faster, by framework, because its releases differ in options.
QUICK_XLA = {
    "jax": "--xla_cpu_opt_preset=CPU_OPT_PRESET_FAST_COMPILE",
    "tensorflow": "--xla_cpu_use_fusion_emitters=false",
}


def compiling_quickly(framework: str) -> dict[str, str]:
    """Return variables that speed up XLA's compilation in ``framework``."""
    flag = QUICK_XLA.get(framework)
    return {"XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} {flag}"} if flag else {}


class ForkServer:
    """Server that runs a program, a function in ``programs``, in one process per rank.
    A call returns the answers in rank order."""

    def __init__(self, framework: str, python: str, imports: Sequence[str], folder: Path) -> None:
        self.framework = framework
        self.before: tuple[str, ...] = ()
        self.folder = folder
        environment = {**os.environ, **compiling_quickly(framework), **QUIET.get(framework, {})}
        with (folder / "server.log").open("w") as log:
            self.process = subprocess.Popen(
                [python, str(SERVER), *imports],
                cwd=folder,
                env=common_environment(environment, ["venv"], "cpu", cores_per_device=1),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )

    def __enter__(self) -> ForkServer:
        return self

    def __exit__(self, *error: object) -> None:
        self.process.kill()
        self.process.communicate()

    def after(self, *programs: str) -> ForkServer:
        """Return this server with ``programs`` that run before each other one."""
        server = copy.copy(self)
        server.before += programs
        return server

    def __call__(
        self, program: str, ranks: int = 1, hosts: Sequence[str] = (), **arguments: Any
    ) -> list[dict[str, Any]]:
        """Run a program. ``hosts``: address of each rank, if each is on a separate node."""
        addresses = [free_address for host in hosts for free_address in free_addresses(1, host)]
        addresses = addresses or free_addresses(ranks)
        local_ranks = [0] * len(hosts) or range(ranks)
        request = {
            "before": self.before,
            "program": program,
            "arguments": arguments,
            "places": [
                {
                    "FRAMEWORK": self.framework,
                    **rank_variables(rank, local_rank, addresses, cores=()),
                }
                for rank, local_rank in enumerate(local_ranks)
            ],
            "seconds": SECONDS,
        }
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "done\n", (
            f"{self.framework}'s environment does not work:\n"
            + (self.folder / "server.log").read_text()
        )
        answers = [self.folder / f"{rank}.json" for rank in range(len(addresses))]
        # of all ranks, because one may have waited for another
        silent = [
            f"rank {answer.stem} gave no answer:\n"
            + answer.with_suffix(".txt").read_text(errors="replace")
            for answer in answers
            if not answer.exists()
        ]
        assert not silent, "\n".join(silent)
        return [json.loads(answer.read_text()) for answer in answers]


class ForkServers:
    """Servers of all frameworks, each started when first asked for and kept until ``stop``."""

    def __init__(self, make_folder: Callable[[str], Path]) -> None:
        self._make_folder = make_folder
        self._servers: dict[tuple[str, tuple[str, ...]], ForkServer] = {}

    def __call__(self, framework: str, imports: tuple[str, ...] | None = None) -> ForkServer:
        """Return the server of ``framework``. ``imports``: replaces IMPORTS."""
        imports = IMPORTS.get(framework, ()) if imports is None else imports
        if (framework, imports) not in self._servers:
            python, folder = build_environment(framework), self._make_folder("ranks")
            server = ForkServer(framework, python, imports, folder)
            self._servers[framework, imports] = server
        return self._servers[framework, imports]

    def stop(self) -> None:
        for server in self._servers.values():
            server.__exit__()


def served(
    *frameworks: str,
    imports: tuple[str, ...] | None = None,
    before: Sequence[str] = (),
) -> Any:
    """Return a module fixture: the :class:`ForkServer` of each of ``frameworks`` in turn.
    ``imports``: replaces IMPORTS; ``before``: programs that run before each other one."""

    @pytest.fixture(scope="module", params=frameworks)
    def run(request: pytest.FixtureRequest, fork_servers: ForkServers) -> ForkServer:
        return fork_servers(request.param, imports).after(*before)

    return run


def norm(vector: Sequence[float]) -> float:
    return math.sqrt(math.fsum(value * value for value in vector))


def distance(entry: Sequence[float], other: Sequence[float]) -> float:
    return norm([a - b for a, b in zip(entry, other, strict=True)])
