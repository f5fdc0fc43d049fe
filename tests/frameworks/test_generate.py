"""Text that is generated with a cache is what the reference generates without one."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from framebench.records import record_sets
from reference import decoder

from ..bench import Bench
from ..conftest import ROOT, build_environment
from .fork_server import ForkServer
from .transformers import COMPARED

#: Whose adapters have the capability.
FRAMEWORKS = ("pytorch",)
TOY = {"framework": ROOT / "tests/frameworks/toy", "model": ROOT / "tests/models/toy.json"}
TOKENS = 32
GENERATE = """
import json
from harness.kinds.parity import Comparison
with open(FOLDER + "/facts.json") as file:
    facts = json.load(file)
reference = Comparison(FOLDER)
adapter = started(facts, mode="inference")
adapter.build(dict(reference.arrays("batch-0")))
adapter.load_weights(dict(reference.arrays("weights")))
adapter.make_cache(TOKENS)
found = []
for request in range(2):
    handles = [adapter.prefill()]
    handles += [adapter.decode() for _ in range(TOKENS - 1)]
    found.append([adapter.to_numpy(handle).tolist() for handle in handles])
answer(found=found)
"""


@pytest.fixture(scope="module", params=FRAMEWORKS)
def run(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ForkServer]:
    python = build_environment(request.param)
    with ForkServer(request.param, python, "", tmp_path_factory.mktemp("ranks")) as server:
        yield server


@pytest.mark.parametrize("model", COMPARED)
def test_the_tokens_are_those_of_the_reference(
    run: ForkServer, decoder_references: Path, model: str
) -> None:
    folder = decoder_references / model
    facts = json.loads((folder / "facts.json").read_text())
    kept = np.load(folder / "weights.npz")
    weights = {name: array.astype(np.float64) for name, array in kept.items()}
    prompts = np.load(folder / "batch-0.npz")["token_ids"]
    expected = decoder.continued(weights, prompts, facts["hyperparameters"], TOKENS)
    assert len({tuple(row) for row in expected}) > 1, "the prompts are all continued alike"
    script = GENERATE.replace("FOLDER", repr(str(folder))).replace("TOKENS", str(TOKENS))
    (found,) = run(script)
    first, second = (np.array(one, int).T.tolist() for one in found["found"])
    assert first == second == expected


def generated(tmp_path: Path, references: Path, **options: Any) -> Any:
    folder = tmp_path / "run"
    folder.mkdir()
    bench = Bench(folder, build_environment("pytorch"))
    given: dict[str, object] = {
        "framework": ROOT / "scripts/frameworks/pytorch",
        "model": references / "gpt2_small" / "facts.json",
        "kind": "generate",
        "batch_per_device": 2,
        "sequence_length": 8,
        "warmup_steps": 1,
        "timed_steps": 3,
        "parameters": {"new_tokens": 5},
        **options,
    }
    record = bench.run("", **given).record
    assert not record_sets.load(bench.output.parent).problems
    return record


def test_a_run_has_the_times_of_every_token(tmp_path: Path, decoder_references: Path) -> None:
    record = generated(tmp_path, decoder_references)
    assert record["status"] == "ok", record["reason"]
    (rank,) = record["ranks"]
    seconds = np.array(rank["token_seconds"])
    assert seconds.shape == (3, 5)
    assert seconds.sum() == pytest.approx(rank["window_seconds"], rel=0.2)
    metrics = {name: one["value"] for name, one in record["metrics"].items()}
    assert metrics["throughput"] == pytest.approx(2 * 5 * 3 / rank["window_seconds"])
    assert metrics["time_to_first_token"] == pytest.approx(np.median(seconds[:, 0]))
    each = np.median(seconds[:, 1:].mean(axis=1))
    assert metrics["time_per_output_token"] == pytest.approx(each)
    assert metrics["inter_token_p50"] in seconds[:, 1:]
    assert "inter_token_p90" not in metrics, "twelve tokens have no 90th percentile"
    assert np.array(rank["generated"]).shape == (2, 5)
    assert 0 < rank["cache_error"] < 1e-5


def test_a_run_whose_cache_changes_what_is_computed_fails(
    tmp_path: Path, decoder_references: Path
) -> None:
    """One behind which tokens have the positions of others."""
    framework = tmp_path / "pytorch"
    shutil.copytree(ROOT / "scripts/frameworks/pytorch", framework)
    path = framework / "decoder.py"
    code = path.read_text()
    mistake = code.replace("self._length += self._last.shape[1]", "self._length += 1")
    assert mistake != code
    path.write_text(mistake)
    record = generated(tmp_path, decoder_references, framework=framework)
    assert record["status"] == "failed", record["reason"]
    assert "with the cache the last logits are" in record["reason"]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"sequence_length": 1020}, "has 1024 positions: fewer than 1020 of the prompt and 5 new"),
        ({"compiler": "inductor"}, "generation is not compiled by inductor"),
        ({"sequence_length": None, **TOY}, "toy does not generate text"),
    ],
)
def test_what_cannot_be_generated_is_unsupported(
    tmp_path: Path, decoder_references: Path, options: dict[str, Any], reason: str
) -> None:
    record = generated(tmp_path, decoder_references, **options)
    assert record["status"] == "unsupported"
    assert reason in record["reason"]
