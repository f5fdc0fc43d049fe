"""Text generated with a cache equals the reference's without one."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from core.axes import GENERATE
from framebench.records import record_sets, verifications
from harness.adapter import Case, Unsupported
from harness.kind import Workload
from harness.kinds.generate import Generate

from ..bench import Bench
from ..conftest import ROOT, build_environment
from .comparing import beyond
from .fork_server import ForkServers
from .transformers import CAUSAL, FULL, GENERATED

#: Frameworks, with the compiler that they generate with.
FRAMEWORKS = {
    "pytorch": "none",
    "jax": "jit",
    "tensorflow": "none",
    "paddle": "none",
}
#: Frameworks whose mixed precision runs on a CPU, or can be made to.
AMP = ("pytorch", "jax", "tensorflow")
TOY = {"framework": ROOT / "tests/frameworks/toy", "model": ROOT / "tests/models/toy.json"}


@pytest.fixture(scope="module", params=FRAMEWORKS)
def found(
    request: pytest.FixtureRequest, fork_servers: ForkServers, decoder_references: Path
) -> dict[str, Any]:
    """Return the errors of each model, and of one in mixed precision and with a mistake."""
    framework = request.param
    models = CAUSAL if framework == FULL else CAUSAL[:2]
    (answer,) = fork_servers(framework)(
        "generate.compare_caches",
        folders=[str(decoder_references / GENERATED[model]) for model in models],
        half=framework in AMP,
    )
    return answer


def test_tokens_and_logits_are_those_of_the_reference(found: dict[str, Any]) -> None:
    errors = found["found"]
    assert not beyond(errors)
    finest = {name: error for name, error in errors.items() if error[0] == "fp32"}
    for name in ("outputs", "outputs of a token"):  # right code stays far below the bounds
        assert not beyond(finest, {name: verifications.bounds_in("fp32")[name] / 5})


def test_a_token_too_many_in_the_cache_is_found(found: dict[str, Any]) -> None:
    assert beyond({"mistaken": found["mistaken"]})


def test_a_model_that_is_not_causal_generates_nothing(found: dict[str, Any]) -> None:
    assert found["refused"] == "bert_base does not generate text"


@pytest.mark.parametrize(("framework", "compiler"), [("tensorflow", "xla"), ("jax", "none")])
def test_nothing_is_compiled_behind_the_second_token(
    tmp_path: Path,
    fork_servers: ForkServers,
    decoder_references: Path,
    framework: str,
    compiler: str,
) -> None:
    (actual,) = fork_servers(framework)(
        "generate.count_compilations",
        folder=str(decoder_references / "gpt2_small"),
        dumped=str(tmp_path / "dumped"),
        compiler=compiler,
    )
    first, second, *others = actual["programs"]
    assert 0 < first <= second
    assert set(others) == {second}


def generated(tmp_path: Path, references: Path, **options: Any) -> Any:
    folder = tmp_path / "run"
    folder.mkdir()
    framework = Path(options.get("framework", ROOT / "scripts/frameworks/pytorch"))
    bench = Bench(
        folder, build_environment("pytorch" if framework.name == "toy" else framework.name)
    )
    given: dict[str, object] = {
        "framework": framework,
        "model": references / "gpt2_small" / "model_config.json",
        "kind": "generate",
        "batch_per_device": 2,
        "sequence_length": 8,
        "warmup_steps": 1,
        "timed_steps": 3,
        "parameters": {"new_tokens": 5},
        **options,
    }
    record, folder = bench.run("", **given).record, bench.output.parent
    if record["kind"] == verifications.KIND:
        assert not verifications.load(folder)[1]
    else:
        assert not record_sets.load(folder).problems
    return record


def test_a_run_has_the_times_of_every_token(tmp_path: Path, decoder_references: Path) -> None:
    record = generated(tmp_path, decoder_references)
    assert record["status"] == "ok", record["reason"]
    (rank,) = record["ranks"]
    seconds = np.array(rank["token_seconds"])
    assert seconds.shape == (3, 5)
    assert seconds.sum() == pytest.approx(rank["window_seconds"], rel=0.2)
    metrics = {name: metric["value"] for name, metric in record["metrics"].items()}
    assert metrics["throughput"] == pytest.approx(2 * 5 * 3 / rank["window_seconds"])
    assert metrics["time_to_first_token"] == pytest.approx(np.median(seconds[:, 0]))
    each = np.median(seconds[:, 1:].mean(axis=1))
    assert metrics["time_per_output_token"] == pytest.approx(each)
    assert metrics["inter_token_p50"] in seconds[:, 1:]
    assert "inter_token_p90" not in metrics, "twelve tokens have no 90th percentile"
    assert np.array(rank["generated"]).shape == (2, 5)


@pytest.mark.parametrize(
    "given",
    [{}, {"kind": verifications.KIND, "parameters": {"mode": GENERATE, "reference": "none"}}],
)
def test_a_framework_that_does_not_generate_is_unsupported(
    tmp_path: Path, decoder_references: Path, given: dict[str, Any]
) -> None:
    record = generated(tmp_path, decoder_references, sequence_length=None, **TOY, **given)
    assert record["status"] == "unsupported"
    assert "toy does not generate text" in record["reason"]


@pytest.mark.parametrize(
    ("compiler", "length", "hyperparameters", "reason"),
    [
        ("none", 1020, {}, "has 1024 positions: fewer than 1020 of the prompt and 5 new"),
        ("inductor", 8, {}, "generation is not compiled by inductor"),
        ("none", 8, {"classes": 100}, "gpt2_small does not generate text: it has 100 classes"),
        ("none", None, {}, "gpt2_small has no sequences to continue"),
    ],
)
def test_what_cannot_be_generated_is_unsupported(
    compiler: str, length: int | None, hyperparameters: dict[str, Any], reason: str
) -> None:
    case = Case("pytorch", "gpt2_small", "inference", 1, 1, 2, "fp32", compiler, length)
    config = {"hyperparameters": hyperparameters, "sequence_lengths": [1, 1024]}
    workload = Workload(case, config, {"new_tokens": 5}, 1, None, 3)
    context = Mock(workload=workload, adapter=Mock(GENERATES_WITH=("none",)))
    with pytest.raises(Unsupported, match=reason):
        Generate().measure(context)
