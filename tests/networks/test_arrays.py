"""Arrays of transformers and the LSTM have published sizes; model configs have their products."""

from __future__ import annotations

import math
from typing import Any

import pytest

from ..frameworks.models import DEFINITIONS, NAMES, model_config_of, reference_module

#: Parameters published for BERT and GPT-2, of Hugging Face's models with SuperBench's heads, and by
#: hand.
PARAMETERS = {
    "bert_base": 110_106_428,
    "bert_base_unclipped": 110_106_428,
    "bert_large": 336_226_108,
    "superbench_bert_base": 109_559_140,
    "superbench_bert_large": 335_244_388,
    "electra_base": 119_391_041,
    "electra_large": 378_556_609,
    # equal to Hugging Face's BertForQuestionAnswering
    "bert_base_squad": 108_893_186,
    "electra_base_squad": 108_893_186,
    "span_encoder": 114_690,
    "topics_electra": 39_737,
    "gpt2_small": 124_439_808,  # embedding and head share one array
    "gpt2_medium": 354_823_168,
    "gpt2_large": 774_030_080,
    "gpt2_xl": 1_557_611_200,
    # computed: 32 layers of 4096, Megatron's vocabulary, padded to a multiple of 128
    "gpt_6.7b": 6_658_596_864,
    "llama_1b": 1_235_814_400,
    "llama_8b": 8_030_261_248,
    "llama2_7b": 6_738_415_616,
    "llama2_13b": 13_015_864_320,
    "llama2_70b": 68_976_648_192,
    # gpt2_small plus 100 x hidden + 100 parameters of SuperBench's head
    "superbench_gpt2_small": 124_439_808 + 76_900,
    "superbench_gpt2_medium": 354_823_168 + 102_500,
    "superbench_gpt2_large": 774_030_080 + 128_100,
    "superbench_gpt2_xl": 1_557_611_200 + 160_100,
    "superbench_lstm": 64_131_172,  # with one bias vector per layer there would be 64,098,404
}
#: Layers that see one vector of a sample, or one of a masked position; others see each token.
PER_SAMPLE = ("pooler", "classifier", "next_sentence")
PER_PREDICTION = ("transform", "generator.transform")


def multiply_adds(model_config: dict[str, Any]) -> dict[str, int]:
    """Return the multiply-adds by the shapes of the matrices and their number of uses."""
    hyper = model_config["hyperparameters"]
    counted = {"per_sample": 0, "per_token": 0, "per_token_pair": 0, "per_prediction": 0}
    for name, array in reference_module(model_config["name"]).parameters(model_config).items():
        if len(array.shape) == 2 and not name.startswith("embeddings."):
            layer = name.rpartition(".")[0]
            predicts = "per_prediction" if layer in PER_PREDICTION else "per_token"
            once = layer in PER_SAMPLE or not model_config["sequence_lengths"]
            counted["per_sample" if once else predicts] += math.prod(array.shape)
    if "heads" in hyper:  # all pairs of positions, masked ones included
        widths = hyper["hidden"] + hyper.get("generator", {"hidden": 0})["hidden"]
        counted["per_token_pair"] = 2 * hyper["layers"] * widths
    tied = hyper.get("vocabulary", 0) * hyper.get("hidden", 0)
    if hyper.get("tied"):
        counted["per_token"] += tied
    elif "tied" not in hyper and "classes" not in hyper and hyper.get("head") != "span":
        counted["per_prediction"] += tied
    return {use: count for use, count in counted.items() if count}


@pytest.mark.parametrize("model", [name for name in NAMES if DEFINITIONS[name] != "cnn"])
def test_configs_have_the_parameters_and_the_multiply_adds_of_their_matrices(model: str) -> None:
    assert model in PARAMETERS, f"{__file__}: PARAMETERS: the published number for {model}"
    model_config = model_config_of(model)
    drawn = reference_module(model).parameters(model_config)
    parameters = sum(math.prod(array.shape) for array in drawn.values())
    assert model_config["trainable_parameters"] == parameters == PARAMETERS[model]
    assert model_config["forward_multiply_adds"] == multiply_adds(model_config)
