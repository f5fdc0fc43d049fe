"""Small models, for tests and for the programs that they run."""

import os
from typing import Any, Dict

from harness.declaration import read_model

SCRIPTS = os.path.join(os.path.abspath(__file__ + 4 * "/.."), "scripts")

#: Frameworks in which each computation of a network is compiled or traced.
SLOW = ("jax", "tensorflow", "tensorflow1")

# Matmuls in a layer of the small BERT (4 projections, 2 in attention, 2 after it), and in
# two layers and the two heads.
LAYER_PRODUCTS = 4 + 2 + 2
BERT_PRODUCTS = 2 * LAYER_PRODUCTS + 4
# Matmuls of the small ResNet: 3 and a shortcut per block, the first and last layer.
RESNET_PRODUCTS = 4 * (3 + 1) + 2


def model_config_of(model: str) -> Dict[str, Any]:
    return read_model(f"{SCRIPTS}/models/{model}.json")


def small_bert(**changes: Any) -> Dict[str, Any]:
    """Return a BERT of few parameters without dropout, so that gradients can be compared."""
    model_config = model_config_of("bert_base")
    model_config["hyperparameters"].update(
        vocabulary=50, hidden=32, layers=2, heads=4, intermediate=64, dropout=0.0
    )
    model_config["hyperparameters"].update(changes)
    for item in model_config["inputs"]:
        if item.get("below") == 30522:
            item["below"] = 50
    return model_config


def small_images(blocks: int = 4) -> Dict[str, Any]:
    model_config = model_config_of("resnet50_v1.5")
    model_config["hyperparameters"]["blocks"] = [1] * blocks
    model_config["inputs"][0]["shape"] = ["batch", 32, 32, 3]
    return model_config
