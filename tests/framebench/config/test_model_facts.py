"""Model configs equal those of the programs that they are named after.
Sources: SuperBench (commit 700d6501), NVIDIA's DeepLearningExamples (729963dd), torchvision 0.28.
"""

from __future__ import annotations

import pytest
from harness.request.declaration import of_length

from ..settings import CATALOG

MODELS = CATALOG.models
ADAMW = {"optimizer": "adamw", "learning_rate": 1e-5, "beta1": 0.9, "beta2": 0.999,
         "epsilon": 1e-8, "weight_decay": 0.01}  # fmt: skip


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
