"""Label smoothing, mixup and top-5, by numbers computed by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tasks
from harness.adapter import Case, Unsupported
from harness.kind import Workload
from harness.kinds import converge
from harness.learning.training import Softening, softened, softening_of
from tasks import score_classes

MODEL_CONFIG: dict[str, Any] = {
    "name": "digits_resnet",
    "inputs": [
        {"name": "images", "shape": ["batch", 8, 8, 1]},
        {"name": "labels", "shape": ["batch"]},
    ],
    "hyperparameters": {"classes": 10, "learning_rate": 0.1, "momentum": 0.9, "weight_decay": 0.1},
}


def batch(samples: int = 4) -> dict[str, Any]:
    images = np.arange(samples * 4, dtype=np.float32).reshape(samples, 2, 2, 1)
    return {"images": images, "labels": np.arange(samples) % 3}


def test_smoothing_spreads_a_part_over_all_classes() -> None:
    arguments = batch()
    actual = softened(arguments, Softening(0.1, 0.0, 10), (0,))
    assert actual["labels"].dtype == np.float32
    assert actual["labels"][1] == pytest.approx([0.01, 0.91, *[0.01] * 8])
    assert (actual["images"] == arguments["images"]).all()


def test_mixup_mixes_images_and_answers_by_one_share() -> None:
    arguments = batch(6)
    actual = softened(arguments, Softening(0.0, 0.4, 3), (7, 1, 2, 0))
    assert actual["labels"].sum(axis=1) == pytest.approx(np.ones(6))
    # an image's first value gives its mixing weight, which must explain its other values and its
    # label
    images, hot = arguments["images"], np.eye(3)[arguments["labels"]]
    own, other = images[:, 0, 0, 0], images[::-1, 0, 0, 0]
    share = (actual["images"][:, 0, 0, 0] - other) / (own - other)
    assert ((share >= 0) & (share <= 1)).all()
    assert len({*share.round(4)}) > 3, "a share is drawn for each image"
    for name, whole, mixed in (
        ("labels", hot, actual["labels"]),
        ("images", images, actual["images"]),
    ):
        part = share.reshape(-1, *[1] * (whole.ndim - 1))
        expected = part * whole + (1 - part) * whole[::-1]
        assert mixed == pytest.approx(expected, abs=1e-5), name
    assert actual["images"].dtype == np.float32
    again, others = (softened(arguments, Softening(0.0, 0.4, 3), (7, 1, n, 0)) for n in (2, 3))
    assert (again["images"] == actual["images"]).all()
    assert (others["images"] != actual["images"]).any(), "another step has another mixture"


def test_only_images_with_a_class_have_soft_answers() -> None:
    assert softening_of(MODEL_CONFIG, 0.0, 0.0) is None
    assert softening_of(MODEL_CONFIG, 0.1, 0.2) == Softening(0.1, 0.2, 10)
    spans = {"name": "spans", "inputs": [{"name": "token_ids"}], "hyperparameters": {}}
    with pytest.raises(Unsupported, match="images with one class each, not spans"):
        softening_of(spans, 0.1, 0.0)


def test_the_right_class_among_five() -> None:
    logits = np.tile(np.arange(12.0), (5, 1))
    logits[3, 11], logits[4] = np.nan, 1.0
    actual = score_classes([logits], {"labels": np.array([11, 7, 6, 10, 0])})
    assert actual["accuracy"].tolist() == [1, 0, 0, 0, 1]
    # planted mistakes: NaN, and a dozen equal values, of which argmax takes the first
    assert actual["top_5_accuracy"].tolist() == [1, 1, 0, 0, 0]
    few = score_classes([logits[:, :9]], {"labels": np.array([8, 0, 0, 0, 0])})
    assert "top_5_accuracy" not in few
    for classes, scores in ((9, 1), (10, 2), (1000, 2)):
        expected = ("accuracy", "top_5_accuracy")[:scores]
        assert tasks.class_scoring(classes).names == expected
    assert tasks.load("digits").scoring.names == ("accuracy", "top_5_accuracy")


def workload(**arguments: Any) -> Workload:
    case = Case("pytorch", "digits_resnet", "train", 1, 2, 256, "fp32", "none", None)
    usual = {parameter.name: parameter.default for parameter in converge.Converge.parameters}
    return Workload(case, MODEL_CONFIG, {**usual, **arguments}, 1, None, 1)


def test_the_rate_follows_the_samples_of_a_step() -> None:
    arguments = {"learning_rate": 0.256, "learning_rate_batch": 256}
    assert converge.recipe_of(workload(**arguments)).peak == pytest.approx(0.512)
    assert converge.recipe_of(workload()).peak == 0.1


def test_the_optimizer_has_the_numbers_of_the_recipe() -> None:
    actual = converge.with_recipe(workload(weight_decay=1 / 32768, momentum=0.875))
    hyper = actual["hyperparameters"]
    assert (hyper["weight_decay"], hyper["momentum"]) == (1 / 32768, 0.875)
    assert MODEL_CONFIG["hyperparameters"]["momentum"] == 0.9, "the model config is not changed"
    adam = {**MODEL_CONFIG, "hyperparameters": {"learning_rate": 0.1}}
    other = workload(momentum=0.9)
    with pytest.raises(Unsupported, match="has no momentum"):
        converge.with_recipe(Workload(other.case, adam, other.parameters, 1, None, 1))
