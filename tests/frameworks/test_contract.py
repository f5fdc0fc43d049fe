"""Contract of every adapter under ``scripts/frameworks`` with every model it defines.

New frameworks or models need no change here; a test of a missing capability is skipped. Each
framework trains once by command line; all else is asked of processes that have imported it.
"""

from __future__ import annotations

import json
import math
import re
import socket
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from ..bench import Bench
from ..conftest import ROOT, build_environment
from ..harness.test_runs import RANK_KEYS_OF_A_MEASURED_RANK
from ..processes import take_own_core
from .comparing import Errors, beyond, compared
from .fork_server import ForkServer, ForkServers, compiling_quickly
from .models import (
    BERT,
    BLOCKS,
    EMBEDDING,
    MODELS,
    RESNET,
    definition_of,
    sequence_of,
    small,
)
from .programs.small import SLOW

FRAMEWORKS = sorted(path.parent for path in ROOT.glob("scripts/frameworks/*/framework.json"))
DEFINED = [
    pytest.param(framework, model, id=f"{framework.name}-{model}")
    for framework in FRAMEWORKS
    for model in MODELS
    if model in (RESNET, BERT) or (framework / f"models/{definition_of(model)}.py").exists()
]
SCHEMA = json.loads((ROOT / "workflow/schemas/record.schema.json").read_text())

STEPS = {"warmup_steps": 1, "timed_steps": 7}
BATCH = 2  # per device, as in the verifications
# Loss of a guess among few words, with weights drawn around zero.
GUESS = math.log(50) + math.log(2)


# One step is enqueued before the previous one is waited for, and nothing else is waited for.
BOUNDED = ["synchronize", "step", *3 * ["step", "wait"], "wait", "synchronize"]
WAITED = ["synchronize", *4 * ["step", "synchronize"], "synchronize"]
CONVOLUTIONS = "grouped bottleneck, halving"
HALVES = {"bfloat16", "float16"}
#: Collectives with results on all ranks: with a reduce, only the root has one.
OPERATIONS_OF_RANKS = {
    *("all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all", "send_receive"),
}
LAYERS = {"convolution", "grouped convolution", "attention", "encoder attention"}
LOOPBACK = "127.0.0.1"
#: Last words of allocators that gave up.
NO_MEMORY = re.compile(
    "bad_alloc|out of memory|allocate failed|failed to allocate|cannot allocate memory",
    re.IGNORECASE,
)


@dataclass
class Runs:
    """Runs of one framework, each done once."""

    framework: Path
    python: str
    folder: Path
    references: dict[str, Path]
    servers: ForkServers
    answers: dict[tuple[object, ...], list[dict[str, Any]]] = field(default_factory=dict)

    @cached_property
    def trained(self) -> dict[str, Any]:
        # a model whose loss falls within STEPS
        model_config = small(BERT, learning_rate=0.01, layers=0)
        written = self.folder / "model_config.json"
        written.write_text(json.dumps(model_config))
        bench = Bench(self.folder, self.python)
        finished = bench.run(
            before=take_own_core,
            variables=compiling_quickly(self.framework.name),
            framework=self.framework,
            model=written,
            batch_per_device=BATCH,
            sequence_length=sequence_of(model_config),
            compiler=self.compiler,
            install_method="venv",
            prefix=Path(self.python).parents[1],
            **STEPS,
        )
        assert finished.status == 0, finished.stderr
        bench.assert_nothing_left()
        record: dict[str, Any] = finished.record
        jsonschema.validate(record, SCHEMA)  # the schema with which the driver reads records
        assert record["status"] == "ok", record["reason"]
        return record

    @cached_property
    def declared(self) -> dict[str, Any]:
        actual: dict[str, Any] = json.loads((self.framework / "framework.json").read_text())
        return actual

    @property
    def compiler(self) -> str:
        """Return the compiler that users of the framework train with."""
        return str(self.declared.get("trained_with", "none"))

    @property
    def server(self) -> ForkServer:
        return self.servers(self.framework.name)

    def pair(self) -> list[dict[str, Any]]:
        self.require("Collectives")
        return self.run("train_together", ranks=2, steps=sum(STEPS.values()))

    def listening(self, hosts: Sequence[str]) -> list[set[str]]:
        """Return the addresses at which a rank on each of ``hosts`` listens."""
        self.require("Collectives")
        return [set(answer["listening"]) for answer in self.server("contract.listen", hosts=hosts)]

    def alone(self) -> dict[str, Any]:
        (answer,) = self.run("train_alone")
        return answer

    @property
    def diverging(self) -> dict[str, Any]:
        (answer,) = self.run("diverge")
        return answer

    def training(self, model_config: dict[str, Any], precision: str, steps: int) -> dict[str, Any]:
        self.require("MatmulTrace")
        (answer,) = self.run("train", model_config=model_config, precision=precision, steps=steps)
        return answer

    def amp(self) -> dict[str, Any]:
        return self.training(small(BERT, layers=1), "amp", 2)

    def verified(
        self, folder: Path, mode: str, compiler: str, ranks: int = 1
    ) -> list[dict[str, Any]]:
        self.require("Numerics")
        return self.run("verify", ranks, folder=str(folder), mode=mode, compiler=compiler)

    def run(self, program: str, ranks: int = 1, **given: object) -> list[dict[str, Any]]:
        """Return the answers of ``ranks`` to a program with the values ``given``, asked once."""
        values = {"compiler": self.compiler, **given}
        key = program, ranks, json.dumps(values)
        if key not in self.answers:
            self.answers[key] = self.server(f"contract.{program}", ranks, **values)
        return self.answers[key]

    @cached_property
    def lacking(self) -> dict[str, str]:
        (actual,) = self.server("contract.lacking")
        assert not actual["undeclared"], "a benchmark that needs one of these says `unsupported`"
        lacking: dict[str, str] = actual["lacking"]
        assert "Rounding" not in lacking or "tf32" not in self.declared["precisions"]
        return lacking

    def require(self, *capabilities: str) -> None:
        """Skip the test of a framework that lacks one of ``capabilities``."""
        for name in self.lacking.keys() & {*capabilities}:
            pytest.skip(self.lacking[name])

    def reference(self, model: str) -> Path:
        """Return the reference of ``model``; for ResNet-50, of a network with every block."""
        has_blocks = (self.framework / "models/cnn.py").exists()
        return self.references[BLOCKS if model == RESNET and has_blocks else model]

    def compared(self, model: str, precision: str) -> Errors:
        """Return the errors of the small model on one device without a compiler."""
        self.require("Numerics")
        folders = [self.reference(model)]
        if precision == "fp32":
            modes = ("train",) if self.framework.name in SLOW else ("train", "inference")
            return compared(self.server, folders, modes=modes)
        return compared(self.server, folders, [precision], modes=("train",), training_only=folders)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "model" in metafunc.fixturenames:
        metafunc.parametrize(("framework", "model"), DEFINED)
    elif "framework" in metafunc.fixturenames:
        metafunc.parametrize("framework", FRAMEWORKS, ids=lambda folder: folder.name)


@pytest.fixture(scope="session")
def runs_of_all() -> dict[Path, Runs]:
    return {}


@pytest.fixture
def runs(
    framework: Path,
    runs_of_all: dict[Path, Runs],
    fork_servers: ForkServers,
    references: dict[str, Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Runs:
    if framework not in runs_of_all:
        python = build_environment(framework.name)
        folder = tmp_path_factory.mktemp(framework.name)
        runs_of_all[framework] = Runs(framework, python, folder, references, fork_servers)
    return runs_of_all[framework]


def is_refused(answer: dict[str, Any]) -> bool:
    if "unsupported" not in answer:
        return False
    assert len(answer["unsupported"].split()) >= 4, f"no reason: {answer['unsupported']!r}"
    return True


def quantities_of(errors: Errors) -> set[str]:
    return {entry["quantity"] for _, measured in errors.values() for entry in measured}


def test_a_run_is_ok_and_its_record_complete(runs: Runs) -> None:
    record = runs.trained
    (rank,) = record["ranks"]
    assert {*rank} >= RANK_KEYS_OF_A_MEASURED_RANK - ({"waited_step_seconds"} - {*rank})
    assert ("waited_step_seconds" in rank) == bool(rank["run_ahead"])
    assert record["framework_version"] == rank["framework_version"] != ""
    assert rank["device"] == "cpu"
    assert len(rank["cores"]) == 1
    assert rank["settings"]
    assert any(rank["compiled"].values()) == (runs.compiler != "none")
    assert set(rank.get("significant_bits", {"not shown": 24}).values()) == {24}
    assert len(rank["warmup_step_seconds"]) == STEPS["warmup_steps"]
    assert len(rank["step_seconds"]) == STEPS["timed_steps"]
    assert 0 < sum(rank["step_seconds"]) <= record["window_seconds"]
    assert record["samples"] == BATCH * STEPS["timed_steps"]
    throughput = record["metrics"]["throughput"]["value"]
    assert throughput == pytest.approx(record["samples"] / record["window_seconds"])
    assert rank["peak_host_memory_bytes"] > 50 << 20
    assert rank["peak_device_memory_bytes"] is None
    assert set(rank["matmul_dtypes"]) == {"float32"}
    assert rank["first_value"] == pytest.approx(GUESS, abs=1.2)
    assert rank["last_value"] < rank["first_value"]


def test_all_frameworks_run_ahead_alike(runs: Runs) -> None:
    actual = runs.alone()
    assert actual["throughput"] == (BOUNDED if actual["ahead"] else WAITED)
    assert actual["waited"] == WAITED


def test_a_seed_settles_a_run(runs: Runs) -> None:
    """Later steps repeat themselves bit by bit in ``test_learning.py``."""
    assert runs.pair()[0]["values"][0] == pytest.approx(runs.alone()["first"], rel=1e-5)


def test_another_seed_draws_other_weights(runs: Runs) -> None:
    assert abs(runs.diverging["first"] - runs.alone()["first"]) > 1e-4


def test_a_loss_that_is_no_number_fails(runs: Runs) -> None:
    assert "loss is" in (runs.diverging["failure"] or "")


def test_two_devices_train_together_on_different_data(runs: Runs) -> None:
    first, second = runs.pair()
    assert first["checksum"] == pytest.approx(second["checksum"], rel=1e-12)
    assert first["values"][0] != second["values"][0], "both ranks saw the same batch"
    assert first["values"][-1] < first["values"][0]


def test_amp_runs_in_a_half_precision_or_is_refused(runs: Runs) -> None:
    actual = runs.amp()
    if is_refused(actual):
        return
    half = sum(actual["matmul_dtypes"].get(dtype, 0) for dtype in HALVES)
    assert half >= 0.75 * sum(actual["matmul_dtypes"].values())
    assert actual["first_value"] == pytest.approx(GUESS, rel=0.3)


@pytest.mark.parametrize("precision", ["fp32", "amp"])
def test_a_device_computes_what_the_reference_does(runs: Runs, model: str, precision: str) -> None:
    """Fail if one device's results differ from the reference.
    Covers training, and in fp32 dropout and inference. A made-up network with every block stands
    for ResNet-50."""
    if precision == "amp" and is_refused(runs.amp()):
        return
    errors = runs.compared(model, precision)
    assert not beyond(errors)
    expected = {"outputs", "gradients", "first update", "losses"}
    if precision == "fp32" and (runs.reference(model) / "model_config-dropout.json").exists():
        expected |= {"dropout"}
    assert quantities_of(errors) > expected


@pytest.mark.parametrize("compiled", [False, True], ids=["default", "native"])
def test_a_training_step_of_two_devices_equals_the_references(runs: Runs, compiled: bool) -> None:
    """All models average gradients in the same way; BERT also has sparse gradients."""
    runs.require("Collectives")
    native = runs.declared["native_compiler"]
    if compiled and native in (None, runs.compiler):
        pytest.skip("it has no other compiler")
    compiler = native if compiled else runs.compiler
    answers = runs.verified(runs.references[EMBEDDING], "train", compiler, ranks=2)
    first, second = answers
    assert first["checksum"] == pytest.approx(second["checksum"], rel=1e-12)
    for answer in answers:
        assert any(answer["compiled"].values()) == (compiler != "none")
        assert not beyond(answer["errors"])
        expected = {"outputs", "gradients", "loss", "two updates"}
        assert expected <= quantities_of(answer["errors"])


def test_compiled_inference_equals_the_references(runs: Runs, block_references: Path) -> None:
    """Compilers may fold batch normalisation into convolutions only in inference."""
    if runs.declared["native_compiler"] is None:
        pytest.skip("it has no compiler")
    compiler = runs.declared["native_compiler"]
    (answer,) = runs.verified(block_references / CONVOLUTIONS, "inference", compiler)
    if "unsupported" in answer:
        pytest.skip(answer["unsupported"])
    assert any(answer["compiled"].values())
    assert not beyond(answer["errors"])
    assert "gradients" not in quantities_of(answer["errors"]), "training was verified"


def test_the_messages_of_two_devices_are_all_gradients(runs: Runs) -> None:
    """Padding is allowed: OneFlow aligns each array in a bucket."""
    for rank in runs.pair():
        actual, gradients = rank["messages"], 4 * rank["trained"]
        assert gradients <= sum(actual["bytes"]) < 1.1 * gradients
        assert actual["seconds"], "no round was timed"
        assert min(actual["seconds"]) > 0


def host_name_address() -> str:
    try:
        return socket.gethostbyname(socket.gethostname())
    except OSError:
        return LOOPBACK


def address_towards(host: str) -> str:
    """Return the address of this machine from which it reaches ``host``. Nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.connect((host, 9))
        return str(asking.getsockname()[0])


def documented(framework: Path, column: int) -> str:
    """Return a cell of a framework's row in docs/cluster.md."""
    title = json.loads((framework / "framework.json").read_text())["title"]
    rows = [line.split(" | ") for line in (ROOT / "docs/cluster.md").read_text().splitlines()]
    stated = [row[column] for row in rows if row[0] == f"| {title}"]
    assert stated, f"docs/cluster.md does not say where ranks of {title} listen"
    return stated[0]


def test_ranks_of_one_node_listen_where_the_documentation_says(runs: Runs) -> None:
    actual = {address for rank in runs.pair() for address in rank["listening"]}
    stated = documented(runs.framework, 1)
    assert actual, "ranks that talk without anybody listening"
    allowed = {
        "every interface": {"0.0.0.0", LOOPBACK, host_name_address()},
        "`127.0.0.1`": {LOOPBACK},
        "`127.0.0.1` and the address of the host's name": {LOOPBACK, host_name_address()},
    }[stated]
    assert actual <= allowed, f"it listens at {sorted(actual)}"
    assert ("0.0.0.0" in actual) == (stated == "every interface"), "it is better than its row"


def test_ranks_of_several_nodes_listen_where_the_documentation_says(runs: Runs) -> None:
    """Two interfaces of this machine stand for two nodes."""
    listed = subprocess.run(["hostname", "-I"], check=True, capture_output=True, text=True)
    others = [address for address in listed.stdout.split() if "." in address]
    if not others:
        pytest.skip("this machine has no interface but one, which cannot be told from any other")
    hosts = [others[0], LOOPBACK]
    actual = runs.listening(hosts)
    stated = documented(runs.framework, 2)
    assert any(actual), "ranks that talk without anybody listening"
    for host, addresses in zip(hosts, actual, strict=True):
        allowed = {
            "every interface": {"0.0.0.0", host, host_name_address()},
            "the rank's own address": {host},
            "the rank's own address, and the address of the host's name": {
                host,
                host_name_address(),
            },
            "the address from which a rank reaches rank 0": {address_towards(hosts[0])},
        }[stated]
        assert addresses <= allowed, f"the rank at {host} listens at {sorted(addresses)}"
    everywhere = any("0.0.0.0" in addresses for addresses in actual)
    assert everywhere == (stated == "every interface"), "it is better than its row"


@pytest.mark.parametrize("precision", ["fp32", "amp"])
def test_a_peak_is_measured_in_its_precision_or_refused(runs: Runs, precision: str) -> None:
    (rank,) = runs.server("contract.find_peak", precision=precision)
    if is_refused(rank):
        assert precision == "amp"
        return
    assert set(rank["matmul_dtypes"]) <= ({"float32"} if precision == "fp32" else HALVES)
    first, second = rank["matmuls"]
    assert first["size"] < second["size"]
    assert rank["sustained"]["size"] in (first["size"], second["size"])


def test_single_operations_and_collectives_are_right(runs: Runs) -> None:
    """They run in the processes of two devices that train together."""
    for rank in runs.pair():
        actual = rank["operations"]
        own = {"batched", "matmul", "add", "multiply", "exp", "scale", "triad", "shared sums"}
        own |= {"overlapped", "overlapped multiply", "each matmul", "each multiply"}
        assert set(actual) == {*own, "shared columns", *LAYERS, *OPERATIONS_OF_RANKS}
        refused = {name: why for name, why in actual.items() if isinstance(why, str)}
        assert all(len(why.split()) >= 5 for why in refused.values()), refused
        wrong = [name for name, good in actual.items() if name not in refused and not good]
        assert not wrong
        assert not refused.keys() & {*own, "all_reduce"}, refused
        lacking = LAYERS & refused.keys() - {"grouped convolution"}
        attentions = {"attention", "encoder attention"}
        assert lacking in (set(), attentions, attentions | {"convolution"}), refused


def test_memory_that_runs_out_is_no_failure(runs: Runs) -> None:
    (actual,) = runs.run("run_out_of_memory")
    aborted = actual["status"] == ""
    if aborted and NO_MEMORY.search((runs.server.folder / "0.txt").read_text(errors="replace")):
        return
    has_words = "OUT_OF_MEMORY" in (runs.framework / "adapter.py").read_text()
    if aborted and not has_words:
        pytest.skip("it crashes, and says nothing of memory")
    assert actual["status"] == "oom", actual["reason"]
