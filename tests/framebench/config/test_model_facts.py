"""Model configs equal those of the programs that they are named after.
Sources: SuperBench (commit 700d6501), NVIDIA's DeepLearningExamples (729963dd), torchvision 0.28.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
from harness.request.declaration import of_length

from ...conftest import ROOT
from ..settings import CATALOG

MODELS = CATALOG.models
SIZE = ("hidden", "layers", "heads", "intermediate")
#: Sizes from superbench/benchmarks/model_benchmarks/pytorch_bert.py, pytorch_gpt2.py, and papers.
SIZES = {
    "bert_base": (768, 12, 12, 3072),
    "bert_large": (1024, 24, 16, 4096),
    "gpt2_small": (768, 12, 12, 3072),
    "gpt2_medium": (1024, 24, 16, 4096),
    "gpt2_large": (1280, 36, 20, 5120),
    "gpt2_xl": (1600, 48, 25, 6400),
}
ADAMW = {"optimizer": "adamw", "learning_rate": 1e-5, "beta1": 0.9, "beta2": 0.999,
         "epsilon": 1e-8, "weight_decay": 0.01}  # fmt: skip
EXPECTED: dict[str, dict[str, Any]] = {
    **{
        f"{ours}{name}": dict(zip(SIZE, sizes, strict=True))
        for name, sizes in SIZES.items()
        for ours in ("", "superbench_")
    },
    # megatron_gpt3.py
    "gpt_6.7b": {
        **dict(zip(SIZE, (4096, 32, 32, 16384), strict=True)),
        **{"learning_rate": 1.2e-4, "beta1": 0.9, "beta2": 0.95, "weight_decay": 0.1},
        **{"clip_global_norm": 1.0, "dropout": 0.0, "initializer_range": 0.009},
    },
    "superbench_lstm": {"features": 256, "hidden": 1024, "layers": 8, "classes": 100},
}  # fmt: skip


@pytest.mark.parametrize("name", EXPECTED)
def test_sizes_are_as_published(name: str) -> None:
    hyper = MODELS[name]["hyperparameters"]
    assert {key: hyper[key] for key in EXPECTED[name]} == EXPECTED[name]


@pytest.mark.parametrize("name", [name for name in MODELS if name.startswith("superbench_")])
def test_superbenchs_own_have_a_head_of_100_classes_and_the_honest_ones_do_not(name: str) -> None:
    hyper = MODELS[name]["hyperparameters"]
    assert hyper["classes"] == 100
    (labels,) = (entry for entry in MODELS[name]["inputs"] if entry["name"] == "labels")
    assert (labels["shape"], labels["below"]) == (["batch"], 100)
    if name == "superbench_lstm":
        return
    assert {key: hyper[key] for key in ADAMW} == ADAMW
    assert "clip_global_norm" not in hyper, "nothing is clipped there"
    assert hyper["dropout"] == 0.1
    honest = MODELS[name.removeprefix("superbench_")]
    assert "classes" not in honest["hyperparameters"]
    assert honest["trainable_parameters"] != MODELS[name]["trainable_parameters"]


def test_language_models_have_a_tied_head_and_places_for_1024_tokens() -> None:
    for size in ("small", "medium", "large", "xl"):
        model_config = MODELS[f"gpt2_{size}"]
        hyper = model_config["hyperparameters"]
        assert (hyper["tied"], hyper["positions"], hyper["vocabulary"]) == (True, 1024, 50257)
        assert (hyper["norm_epsilon"], hyper["dropout"], hyper["activation"]) == (
            *(1e-5, 0.1),
            "gelu_tanh",
        )
        assert model_config["sequence_lengths"] == [1, 1024]


@pytest.mark.parametrize("size", ["1b", "8b"])
def test_llamas_are_of_rms_norm_rotary_places_a_gate_and_grouped_keys(size: str) -> None:
    hyper = MODELS[f"llama_{size}"]["hyperparameters"]
    kinds = [hyper[key] for key in ("norm", "position", "activation", "bias")]
    assert kinds == ["rms", "rotary", "swiglu", False]
    assert hyper["heads"] == 4 * hyper["key_value_heads"] == 32


@pytest.mark.parametrize(
    ("name", "generator"), [("electra_base", (256, 4, 1024)), ("electra_large", (384, 6, 1536))]
)
def test_electra_is_nvidias(name: str, generator: tuple[int, ...]) -> None:
    """Fail if ELECTRA differs from NVIDIA's: both phases, generator depth, LAMB, loss and
    masking."""
    model_config = MODELS[name]
    hyper = model_config["hyperparameters"]
    generator_hyper = hyper["generator"]
    assert set(generator_hyper) == {"hidden", "heads", "intermediate"}, "no depth of its own"
    assert (
        generator_hyper["hidden"],
        generator_hyper["heads"],
        generator_hyper["intermediate"],
    ) == generator
    assert generator_hyper["hidden"] // generator_hyper["heads"] == 64
    assert (hyper["generator_weight"], hyper["discriminator_weight"]) == (1.0, 50.0)
    assert (hyper["masked_percent"], hyper["vocabulary"]) == (85, 30528)
    lamb = ("optimizer", "beta1", "beta2", "epsilon", "weight_decay", "clip_global_norm")
    assert [hyper[key] for key in lamb] == ["lamb", 0.878, 0.974, 1e-6, 0.01, 1.0]
    assert hyper["no_weight_decay"] == hyper["no_trust_ratio"] == ["bias", "norm"]
    rates = [of_length(model_config, n)["hyperparameters"]["learning_rate"] for n in (128, 512)]
    assert rates == [6e-3, 4e-3]


def test_traps_of_convolutional_networks_are_facts() -> None:
    """Fail if a CNN config misses an unusual value: image size, auxiliary loss weight, epsilon,
    momentum."""
    sizes = {
        name: facts["inputs"][0]["shape"][1]
        for name, facts in MODELS.items()
        if facts.get("definition") == "cnn" and "task" not in facts
    }
    assert {name for name, size in sizes.items() if size != 224} == {"inception_v3"}
    assert sizes["inception_v3"] == 299
    hyper = {name: MODELS[name]["hyperparameters"] for name in sizes}
    weights = {name: entry.get("auxiliary_weight") for name, entry in hyper.items()}
    assert {name: weight for name, weight in weights.items() if weight is not None} == {
        **{"googlenet": 0.3, "inception_v3": 0.4},
    }
    epsilons = {name for name, entry in hyper.items() if entry["batch_norm_epsilon"] == 1e-3}
    assert epsilons == {"googlenet", "inception_v3"}
    assert MODELS["googlenet"]["trainable_parameters"] == 13_004_888, "with both heads"


def test_what_only_differs_in_size_is_a_few_lines() -> None:
    """Fail if a model that only differs in size needs a long config.
    ``docs/adding-a-model.md`` shows ShuffleNet's file."""
    page = (ROOT / "docs/adding-a-model.md").read_text()
    block = re.search(r'```json\n(\{\n  "name": "shufflenet.*?)```', page, re.DOTALL)
    assert block
    text = (ROOT / "scripts/models/shufflenet_v2_x1_0.json").read_text()
    assert block[1].strip() == text.strip()
    lines = {
        path.stem: len(path.read_text().strip().splitlines())
        for path in (ROOT / "scripts/models").glob("*.json")
    }
    of_their_own = {"superbench_lstm", "span_encoder", "digits_resnet", "topics_electra"}
    assert max(lines[name] for name in {*lines} - of_their_own) <= 26
