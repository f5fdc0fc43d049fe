"""What every adapter under ``scripts/frameworks`` must do, asked through the command line in the
framework's own environment. Whoever adds a framework adds nothing here.

A run costs seconds, most of them for the import, so the tests share runs: one is started when the
first test asks for it.
"""

from __future__ import annotations

import json
import math
import resource
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from framebench.records import load_record

from ..conftest import ROOT, build_environment
from ..harness.conftest import Finished, Toy

FRAMEWORKS = sorted(path.parent for path in ROOT.glob("scripts/frameworks/*/framework.json"))
SCHEMA = json.loads((ROOT / "workflow/schemas/record.schema.json").read_text())

VOCABULARY = 50
STEPS = {"warmup_steps": 1, "timed_steps": 7}
LOSS = {"resnet": math.log(1000), "bert": math.log(VOCABULARY) + math.log(2)}  # of a guess
# Products of a forward pass: 53 convolutions and the classifier; 2 layers of 8 (4 projections, 2 in
# attention, 2 behind it) and 4 in the two heads.
PRODUCTS = {"resnet": 54, "bert": 2 * 8 + 4}

# Far more than an import maps, far less than OVERSIZED asks for at once: what runs out is the
# address space, so that no memory is used up and every machine says no.
ADDRESS_SPACE = 7 << 30  # bytes
# The first thing a forward pass makes is batch x 128 x 1024 floats: 7.8 GiB, but fewer elements
# than 2^31 (some frameworks cannot index more). The batch itself takes 0.05 GiB.
OVERSIZED = {"batch_per_device": 16000, "sequence_length": 128}


def bert_parameters(hyper: dict[str, Any]) -> int:
    """Trainable parameters, from the shapes of the weights."""
    hidden, inner = hyper["hidden"], hyper["intermediate"]
    norm = 2 * hidden
    square = hidden * hidden + hidden
    embeddings = (hyper["vocabulary"] + hyper["positions"] + hyper["segments"]) * hidden + norm
    layer = 4 * square + norm + (hidden * inner + inner) + (inner * hidden + hidden) + norm
    masked_words = square + norm + hyper["vocabulary"]  # the decoder is the token embedding
    next_sentence = square + 2 * hidden + 2
    return embeddings + hyper["layers"] * layer + masked_words + next_sentence


def facts_of(name: str) -> dict[str, Any]:
    return json.loads((ROOT / f"scripts/models/{name}.json").read_text())


def small_resnet() -> dict[str, Any]:
    facts = facts_of("resnet50_v1.5")
    facts["inputs"][0]["shape"] = ["batch", 64, 64, 3]
    return facts


def small_bert(**changes: float) -> dict[str, Any]:
    facts = facts_of("bert_base")
    hyper = facts["hyperparameters"]
    hyper.update(hidden=32, layers=2, heads=4, intermediate=64, dropout=0.1, learning_rate=0.01)
    hyper.update(changes, vocabulary=VOCABULARY)
    for item in facts["inputs"]:
        if item.get("below", 0) > VOCABULARY:
            item["below"] = VOCABULARY
    facts["trainable_parameters"] = bert_parameters(hyper)
    return facts


def miscounted_bert() -> dict[str, Any]:
    facts = small_bert()
    facts["trainable_parameters"] += 1
    return facts


MODELS: dict[str, Callable[[], dict[str, Any]]] = {
    "resnet": small_resnet,
    "bert": small_bert,
    "miscounted": miscounted_bert,
    "wide": lambda: small_bert(hidden=1024, layers=1),
    # The largest step that float32 holds leaves no weight finite.
    "diverging": lambda: small_bert(learning_rate=3e38),
}


def limit_address_space() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))


@dataclass
class Runs:
    """The runs of one framework, each done once."""

    framework: Path
    python: str
    folder: Path
    done: dict[tuple[object, ...], Finished] = field(default_factory=dict)

    def __call__(
        self,
        model: str,
        mode: str = "train",
        *,
        before: Callable[[], None] | None = None,
        repeat: int = 1,
        **options: object,
    ) -> Finished:
        """The run of these options, `repeat` telling those apart that have the same."""
        key = (model, mode, before, repeat, *sorted(options.items()))
        if key not in self.done:
            self.done[key] = self._run(model, mode, before, repeat, options)
        return self.done[key]

    def _run(
        self,
        model: str,
        mode: str,
        before: Callable[[], None] | None,
        repeat: int,
        options: dict[str, object],
    ) -> Finished:
        facts = MODELS[model]()
        bench = Toy(self.folder / str(len(self.done)), self.python)
        bench.folder.mkdir()
        written = bench.folder / "facts.json"
        written.write_text(json.dumps(facts))
        given: dict[str, object] = {
            "framework": self.framework,
            "model": written,
            "mode": mode,
            "sequence_length": 16 if facts["sequence_lengths"] else None,
            "way": "venv",
            "prefix": Path(self.python).parents[1],
            "repeat": repeat,
            **STEPS,
            **options,
        }
        finished = bench.run(before=before, **given)
        assert finished.status == 0, finished.stderr
        bench.assert_nothing_left()
        load_record(bench.output)  # the other side reads it too
        return finished

    def ok(self, model: str, mode: str = "train", **options: Any) -> list[dict[str, Any]]:
        """The ranks' entries of a run that must succeed."""
        record = self(model, mode, **options).record
        assert record["status"] == "ok", record["reason"]
        return record["ranks"]


@pytest.fixture(scope="module", params=FRAMEWORKS, ids=lambda folder: folder.name)
def runs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Runs:
    python = build_environment(request.param.name)
    return Runs(request.param, python, tmp_path_factory.mktemp(request.param.name))


def is_refused(record: dict[str, Any]) -> bool:
    """Whether the framework says that it cannot do this, and why."""
    if record["status"] != "unsupported":
        return False
    assert len(record["reason"].split()) >= 4, f"no reason: {record['reason']!r}"
    assert record["throughput"] is None
    return True


def test_bert_base_has_the_parameters_that_its_shapes_have() -> None:
    facts = facts_of("bert_base")
    assert facts["trainable_parameters"] == bert_parameters(facts["hyperparameters"])


@pytest.mark.parametrize("mode", ["train", "inference"])
@pytest.mark.parametrize("model", ["resnet", "bert"])
def test_a_run_is_ok_and_its_record_complete(runs: Runs, model: str, mode: str) -> None:
    (rank,) = runs.ok(model, mode)
    record = runs(model, mode).record
    assert set(SCHEMA["properties"]) == set(record)
    known = set(SCHEMA["properties"]["ranks"]["items"]["properties"])
    assert known - set(rank) == {"traceback", "processes", "parity"}, "a field is missing"
    assert record["framework_version"] == rank["framework_version"] != ""
    assert rank["device"] == "cpu"
    assert len(rank["cores"]) == 1
    assert rank["settings"]
    assert rank["compiled"] == {}
    assert rank["trainable_parameters"] == MODELS[model]()["trainable_parameters"]
    assert set(rank["products"]) == {"float32"}
    assert rank["products"]["float32"] >= PRODUCTS[model]
    assert len(rank["warmup_step_seconds"]) == STEPS["warmup_steps"]
    assert len(rank["step_seconds"]) == STEPS["timed_steps"]
    assert 0 < sum(rank["step_seconds"]) <= record["window_seconds"]
    assert record["samples"] == 4 * STEPS["timed_steps"]
    assert record["throughput"] == pytest.approx(record["samples"] / record["window_seconds"])
    assert rank["peak_host_memory_bytes"] > 50 << 20
    assert rank["peak_device_memory_bytes"] is None


@pytest.mark.parametrize("model", ["resnet", "bert"])
def test_training_starts_at_a_guess_and_learns_the_batch(runs: Runs, model: str) -> None:
    (rank,) = runs.ok(model)
    assert rank["first_value"] == pytest.approx(LOSS[model], rel=0.3)
    assert rank["last_value"] < rank["first_value"]


@pytest.mark.parametrize("model", ["resnet", "bert"])
def test_inference_repeats_itself(runs: Runs, model: str) -> None:
    """No weight changes and nothing is dropped out."""
    (rank,) = runs.ok(model, "inference")
    assert rank["last_value"] == pytest.approx(rank["first_value"], rel=1e-5, abs=1e-6)
    assert rank["first_value"] != 0


def test_a_seed_settles_a_run(runs: Runs) -> None:
    (one,), (same,) = (runs.ok("bert", repeat=repeat) for repeat in (1, 2))
    assert same["first_value"] == pytest.approx(one["first_value"], rel=1e-6)
    assert same["last_value"] == pytest.approx(one["last_value"], rel=1e-5)
    (other,) = runs("diverging", seed=1).record["ranks"]  # the same until its first update
    assert abs(other["first_value"] - one["first_value"]) > 1e-4


def test_another_model_than_that_of_the_facts_fails(runs: Runs) -> None:
    record = runs("miscounted").record
    assert record["status"] == "failed"
    built = small_bert()["trainable_parameters"]
    assert f"{built} trainable parameters, not {built + 1}" in record["reason"]
    assert record["throughput"] is None


def test_a_loss_that_is_no_number_fails(runs: Runs) -> None:
    record = runs("diverging", seed=1).record
    assert record["status"] == "failed"
    assert "loss is" in record["reason"]


def test_two_devices_train_together_on_different_data(runs: Runs) -> None:
    first, second = runs.ok("bert", devices_per_node=2)
    assert first["processes"] == second["processes"] == 2
    assert first["weights_checksum"] == pytest.approx(second["weights_checksum"], rel=1e-12)
    assert first["first_value"] != second["first_value"], "both ranks saw the same batch"
    assert first["last_value"] < first["first_value"]
    assert not set(first["cores"]) & set(second["cores"])
    record = runs("bert", devices_per_node=2).record
    assert record["samples"] == 2 * 4 * STEPS["timed_steps"]


def test_amp_runs_in_a_half_precision_or_is_refused(runs: Runs) -> None:
    record = runs("bert", precision="amp").record
    if is_refused(record):
        return
    (rank,) = runs.ok("bert", precision="amp")
    half = sum(rank["products"].get(dtype, 0) for dtype in ("bfloat16", "float16"))
    assert half >= 0.9 * sum(rank["products"].values())
    assert rank["products"] != runs.ok("bert")[0]["products"]
    assert rank["first_value"] == pytest.approx(LOSS["bert"], rel=0.3)


def test_the_native_compiler_compiles_or_is_refused(runs: Runs) -> None:
    record = runs("bert", "inference", compiler="native").record
    if is_refused(record):
        return
    (rank,) = runs.ok("bert", "inference", compiler="native")
    assert record["case"]["compiler"] not in ("none", "native")
    assert any(rank["compiled"].values()), "nothing says that it was compiled"
    (plain,) = runs.ok("bert", "inference")
    assert rank["first_value"] == pytest.approx(plain["first_value"], rel=1e-3, abs=1e-4)


@pytest.mark.parametrize("option", ["compiler", "precision"])
def test_what_nobody_knows_is_refused(runs: Runs, option: str) -> None:
    record = runs("bert", **{option: "no-such-thing"}).record
    assert is_refused(record), record["reason"]
    assert "no-such-thing" in record["reason"]
    assert record["ranks"] == []


def test_memory_that_runs_out_is_no_failure(runs: Runs) -> None:
    record = runs("wide", "inference", before=limit_address_space, **OVERSIZED).record
    assert record["status"] == "oom", record["reason"]
    (rank,) = record["ranks"]
    assert "make_batch" not in rank.get("traceback", ""), "the framework was not even asked"
