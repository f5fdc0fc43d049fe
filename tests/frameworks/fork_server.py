"""Process that imports a framework once and forks for each script, so that each test is quick."""

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

SCRIPTS = Path(__file__).parents[2] / "scripts"
PRELUDE = Path(__file__).with_name("prelude.py").read_text()
SECONDS = 600  # time limit of a script

#: Imports of a framework's server before it forks, if any. OneFlow joins the ranks when imported.
IMPORTS = {
    "jax": "import numpy, jax, optax",
    "mindspore": "import os; os.environ['GLOG_v'] = '3'; import mindspore",
    "mxnet": "import mxnet",
    "oneflow": "import numpy, google.protobuf",
    "paddle": "import paddle",
    "pytorch": """import torch, torch._dynamo, torch.distributed.fsdp
import torch.distributed.pipelining, torch.distributed.tensor.parallel""",
    "tensorflow": "import numpy, tensorflow, keras; keras.layers, keras.optimizers",
    "tensorflow1": "import warnings; warnings.simplefilter('ignore'); import numpy, tensorflow",
}

#: Options with which XLA compiles in less time, by framework: each knows those of its release.
QUICK_XLA = {
    "jax": "--xla_cpu_opt_preset=CPU_OPT_PRESET_FAST_COMPILE",
    "tensorflow": "--xla_cpu_use_fusion_emitters=false",
}

# Matmuls in a layer of the prelude's small BERT (4 projections, 2 in attention, 2 after it), and in
# two layers and the two heads.
LAYER_PRODUCTS = 4 + 2 + 2
BERT_PRODUCTS = 2 * LAYER_PRODUCTS + 4
# Matmuls of the prelude's small ResNet: 3 and a shortcut per block, the first and last layer.
RESNET_PRODUCTS = 4 * (3 + 1) + 2

SERVER = """
import functools, json, os, signal, sys, time, traceback
IMPORTS
sys.path.insert(0, SCRIPTS)
import harness.adapter, harness.kinds.verification, harness.measuring.synthetic

def await_ranks(rank, ranks):
    # One that ends earlier takes others along in their last collective, or leaves them waiting.
    open(f"{rank}.done", "w").close()
    signal.alarm(120)
    while not all(os.path.exists(f"{other}.done") for other in ranks):
        time.sleep(0.005)

def answer(*rank, **values):  # which may have a rank of their own
    # Not printed: a worker's message may come in between.
    with open("%s.json" % rank, "w") as file:
        json.dump(values, file)

for line in sys.stdin:
    request = json.loads(line)
    children = []
    ranks = range(len(request["places"]))
    for name in [f"{rank}.{kind}" for rank in ranks for kind in ("done", "json")]:
        if os.path.exists(name):
            os.remove(name)
    for rank in ranks:
        child = os.fork()
        if child:
            children.append(child)
            continue
        os.environ.update(request["places"][rank])
        signal.alarm(request["seconds"])
        output = os.open(f"{rank}.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(output, 1)
        os.dup2(output, 2)
        try:
            given = {
                "answer": functools.partial(answer, rank),
                "await_ranks": functools.partial(await_ranks, rank, ranks),
            }
            exec(compile(request["script"], "script", "exec"), given)
        except BaseException:
            traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
        await_ranks(rank, ranks)
        os._exit(0)
    for child in children:
        os.waitpid(child, 0)
    print("done", flush=True)
"""


def compiling_quickly(framework: str) -> dict[str, str]:
    """Return variables that speed up XLA's compilation in ``framework``."""
    flag = QUICK_XLA.get(framework)
    return {"XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} {flag}"} if flag else {}


class ForkServer:
    """Server that runs a script after the prelude in one process per rank.
    A call returns the answers in rank order."""

    def __init__(self, framework: str, python: str, imports: str, folder: Path) -> None:
        self.framework = framework
        self.prelude = PRELUDE
        self.folder = folder
        environment = {**os.environ, **compiling_quickly(framework)}
        code = SERVER.replace("IMPORTS", imports).replace("SCRIPTS", repr(str(SCRIPTS)))
        with (folder / "server.log").open("w") as log:
            self.process = subprocess.Popen(
                [python, "-c", code],
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

    def after(self, code: str) -> ForkServer:
        """Return this server with ``code`` added to the prelude."""
        server = copy.copy(self)
        server.prelude += code
        return server

    def __call__(
        self, script: str, ranks: int = 1, hosts: Sequence[str] = ()
    ) -> list[dict[str, Any]]:
        """Run a script. ``hosts``: address of each rank, if each is on a separate node."""
        addresses = [one for host in hosts for one in free_addresses(1, host)]
        addresses = addresses or free_addresses(ranks)
        local_ranks = [0] * len(hosts) or range(ranks)
        names = {"FRAMEWORK": self.framework, "SCRIPTS": str(SCRIPTS)}
        request = {
            "script": f"{self.prelude}\n{script}",
            "places": [
                {**names, **rank_variables(rank, local_rank, addresses, run="test", cores=())}
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
        answers = []
        for rank in range(len(addresses)):
            found = self.folder / f"{rank}.json"
            output = (self.folder / f"{rank}.txt").read_text(errors="replace")
            assert found.exists(), f"rank {rank} gave no answer:\n{output}"
            answers.append(json.loads(found.read_text()))
        return answers


class ForkServers:
    """Servers of all frameworks, each started when first asked for and kept until ``stop``."""

    def __init__(self, make_folder: Callable[[str], Path]) -> None:
        self._make_folder = make_folder
        self._servers: dict[tuple[str, str], ForkServer] = {}

    def __call__(self, framework: str, imports: str | None = None) -> ForkServer:
        """Return the server of ``framework``. ``imports``: replaces IMPORTS."""
        imports = IMPORTS.get(framework, "") if imports is None else imports
        if (framework, imports) not in self._servers:
            python, folder = build_environment(framework), self._make_folder("ranks")
            server = ForkServer(framework, python, imports, folder)
            self._servers[framework, imports] = server
        return self._servers[framework, imports]

    def stop(self) -> None:
        for server in self._servers.values():
            server.__exit__()


def served(*frameworks: str, imports: str | None = None, prelude: str = "") -> Any:
    """Return a module fixture: the :class:`ForkServer` of each of ``frameworks`` in turn.
    ``imports``: replaces IMPORTS; ``prelude``: code that runs before each script."""

    @pytest.fixture(scope="module", params=frameworks)
    def run(request: pytest.FixtureRequest, fork_servers: ForkServers) -> ForkServer:
        return fork_servers(request.param, imports).after(prelude)

    return run


def norm(vector: Sequence[float]) -> float:
    return math.sqrt(math.fsum(value * value for value in vector))


def distance(one: Sequence[float], other: Sequence[float]) -> float:
    return norm([a - b for a, b in zip(one, other, strict=True)])
