"""The described networks have the sizes counted in torchvision."""

from __future__ import annotations

import csv
import json
import math
from typing import Any

import networks
import pytest
from framebench.config.catalog import forward_multiply_adds, load_catalog
from harness.declaration import read_model
from networks.schedule import schedule
from reference.compute import reduced

from ..conftest import ROOT

with (ROOT / "tests/data/torchvision_models_counted.csv").open() as file:
    COUNTED = {row["name"]: row for row in csv.DictReader(file)}

MODELS = load_catalog(ROOT).models


DESCRIBED = [
    name for name, model_config in MODELS.items() if model_config.get("definition") == "cnn"
]


def sizes_of(network: networks.LayerGraph) -> dict[str, int]:
    weights = networks.weights(network)
    return {name: math.prod(entry.shape) for name, entry in weights.items() if entry.trained}


@pytest.mark.parametrize("name", DESCRIBED)
def test_configs_have_the_parameters_and_multiply_adds_of_the_layers(name: str) -> None:
    model_config = MODELS[name]
    network = networks.describe(model_config)
    assert model_config["trainable_parameters"] == sum(sizes_of(network).values())
    for training in (False, True):
        exact = networks.forward_multiply_adds(network, training)
        assert forward_multiply_adds(model_config, None, training) == exact


@pytest.mark.parametrize("name", COUNTED)
def test_parameters_and_multiply_adds_are_those_of_torchvision(name: str) -> None:
    model_config, counted = MODELS[name], COUNTED[name]
    network = networks.describe(model_config)
    sizes = sizes_of(network)
    heads = tuple(f"{layer}." for layer in network.auxiliary)
    without = sum(size for key, size in sizes.items() if not key.startswith(heads or ("-",)))
    assert model_config["inputs"][0]["shape"][1] == int(counted["input_size"])
    assert sum(sizes.values()) == int(counted["trainable_parameters"])
    assert without == int(counted["trainable_parameters_without_auxiliary_heads"])
    for training, mode in ((False, "evaluation"), (True, "training")):
        exact = int(counted[f"forward_multiply_adds_{mode}"])
        assert networks.forward_multiply_adds(network, training) == exact


def test_both_sides_read_the_same_config() -> None:
    for name, model_config in MODELS.items():
        assert read_model(str(ROOT / f"scripts/models/{name}.json")) == model_config


def test_a_base_that_is_missing_is_named(tmp_path: Any) -> None:
    (tmp_path / "new.json").write_text(json.dumps({"name": "new", "base": "nobody"}))
    with pytest.raises(ValueError, match=r"bases/nobody\.json"):
        read_model(str(tmp_path / "new.json"))


def layers(*layers: dict[str, Any], size: int = 8) -> networks.LayerGraph:
    hyper = {"family": "layers", "layers": layers, "batch_norm_epsilon": 1e-5}
    return networks.describe_images(hyper, networks.SampleShape(size, size, 3))


def test_a_ceiling_pool_begins_no_window_behind_its_input() -> None:
    pool = {"op": "max_pool", "name": "pool", "ceil": True}
    cases = {
        (8, 3, 2, 0): (4, 1),  # the last window exceeds the end by one
        (7, 3, 2, 0): (3, 0),
        (8, 2, 2, 1): (5, 0),
        (7, 2, 3, 1): (3, 0),
        (5, 1, 3, 0): (2, 0),  # another window would start after the end
    }
    for (size, kernel, stride, padding), (places, extra) in cases.items():
        arguments = {"kernel": kernel, "stride": stride, "padding": padding}
        network = layers({**pool, **arguments}, size=size)
        assert network.layers[0].shape == (places, places, 3)
        assert network.layers[0].extra == (extra, extra)


def test_an_adaptive_pool_to_the_size_that_is_there_is_left_out() -> None:
    pool = {"op": "adaptive_average_pool", "name": "pool", "size": 4}
    linear = {"op": "global_average_pool", "name": "logits"}
    assert [layer.name for layer in layers(pool, linear, size=4).layers] == ["logits"]
    assert [layer.name for layer in layers(pool, linear, size=6).layers] == ["pool", "logits"]


def test_what_cannot_be_is_refused_by_the_name_of_its_layer() -> None:
    convolution = {"op": "convolution", "name": "here", "channels": 4, "kernel": 3}
    with pytest.raises(ValueError, match="here: 3 or 4 channels cannot be divided into 2 groups"):
        layers({**convolution, "groups": 2})
    with pytest.raises(ValueError, match="here: the images are too small"):
        layers({**convolution, "kernel": 9, "padding": 0})
    with pytest.raises(ValueError, match="two layers are named here"):
        layers(convolution, convolution)


def test_a_layer_may_only_write_over_what_nobody_else_reads() -> None:
    calls = schedule(networks.describe(MODELS["mobilenet_v2"]), training=True).calls
    told = {(call.layer.op, call.in_place) for call in calls if call.layer.op in ("relu6", "add")}
    assert told == {("relu6", True), ("add", False)}, "an addend of a block is read again"


@pytest.mark.parametrize("name", COUNTED)
def test_each_can_be_made_small(name: str) -> None:
    small = reduced(MODELS[name])
    assert small["trainable_parameters"] < 700_000
    assert networks.forward_multiply_adds(networks.describe(small), training=True) < 70e6
