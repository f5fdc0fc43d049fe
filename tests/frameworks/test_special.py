"""Features special to one framework: functions ``check_*`` of modules in ``programs``."""

from __future__ import annotations

import ast
import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ..bench import Bench
from ..conftest import ROOT, build_environment
from ..processes import wait_for
from .fork_server import IMPORTS, ForkServers, distance, norm
from .models import BERT, SEQUENCE, small

PROGRAMS = Path(__file__).parent / "programs"


def checks() -> Iterator[tuple[str, str]]:
    for framework in IMPORTS:
        for node in ast.parse((PROGRAMS / f"{framework}.py").read_text()).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("check_"):
                yield framework, node.name


@pytest.mark.parametrize(("framework", "check"), checks())
def test_a_feature_is_as_the_adapter_needs_it(
    fork_servers: ForkServers, framework: str, check: str
) -> None:
    fork_servers(framework)("common.check", name=check)


def test_jax_averages_gradients_and_keeps_each_ranks_own_statistics(
    fork_servers: ForkServers,
) -> None:
    """In one compiled program, JAX would by default use statistics of the global batch."""
    first, second = fork_servers("jax")("jax.average", ranks=2)
    assert first["settings"]["collectives"] == "gloo"
    assert first["total"] == second["total"] == pytest.approx(0.3, rel=1e-15), "not in float64"
    assert first["loss"] != second["loss"], "both ranks saw the same batch"
    assert first["statistics"] != second["statistics"], "statistics are those of both batches"
    assert first["gradients"] == second["gradients"]
    assert first["checksum"] == second["checksum"]
    length = norm(first["gradients"])
    for entry in (first, second):
        assert distance(entry["by_operation"], first["gradients"]) < 1e-5 * length
        assert distance(entry["single"], first["gradients"]) > 1e-2 * length
    # the average of two clipped gradients would be shorter than the limit
    assert first["moved"] == pytest.approx(0.01, rel=1e-2)


def test_a_graph_of_oneflow_normalises_by_each_ranks_own_statistics(
    fork_servers: ForkServers,
) -> None:
    ranks = fork_servers("oneflow")("oneflow.normalise", ranks=2)
    for rank in ranks:
        difference = distance(rank["together"], rank["alone"])
        assert difference < 1e-5 * norm(rank["alone"]), "batch normalisation saw other ranks"
    assert ranks[0]["running"] != ranks[1]["running"]


def test_no_rank_of_mindspore_leaves_before_all_others_do(fork_servers: ForkServers) -> None:
    first, last = fork_servers("mindspore")("mindspore.leave", ranks=2)
    assert first["begun"] < last["begun"] <= first["left"]


def test_ranks_of_mxnet_that_are_killed_take_the_parameter_server_along(
    fork_servers: ForkServers, tmp_path: Path
) -> None:
    first, _ = fork_servers("mxnet")("mxnet.kill_ranks", ranks=2, folder=str(tmp_path))
    assert len(first["children"]) == 2
    wait_for(
        lambda: not any(map(_runs, first["children"])),
        "the scheduler and the server to end with their rank",
    )


def _runs(pid: int) -> bool:
    """Return whether the process exists and is not a zombie."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_fork_has_the_variables_that_its_framework_reads(tmp_path: Path) -> None:
    bench = Bench(tmp_path, build_environment("tensorflow"))
    model = tmp_path / "model_config.json"
    model.write_text(json.dumps(small(BERT)))
    common: dict[str, Any] = {
        "framework": ROOT / "scripts" / "frameworks" / "tensorflow",
        "model": model,
        "sequence_length": SEQUENCE,
        "kind": "inference",
    }
    alone = bench.run("", **common).record
    words = []
    for number in range(2):
        files = {"output": tmp_path / f"{number}.json", "log": tmp_path / f"{number}.log"}
        words += ["--check", shlex.join(bench.command(**{**common, **files})[2:])]
    done = bench.run("", *words, batch_per_device=None, compiler=None)
    assert done.status == 0, done.stderr
    for number in range(2):
        record = json.loads((tmp_path / f"{number}.json").read_text())
        assert record["status"] == "ok", record["reason"]
        assert record["ranks"][0]["settings"] == alone["ranks"][0]["settings"]
