"""The comparison with the reference finds mistakes in PyTorch's adapter, and no others."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from framebench.config import catalog
from reference import compute

from . import comparing
from .comparing import DROPOUT, beyond
from .fork_server import ForkServer, served
from .models import (
    BERT,
    BLOCKS,
    DEFINITIONS,
    EMBEDDING,
    MODELS,
    RESNET,
    has_reference,
    model_config_of,
    reference_module,
    sequence_of,
    small,
    trained_parameters,
)

forked = served("pytorch")


def test_what_is_right_passes(forked: ForkServer, references: dict[str, Path]) -> None:
    """Fail if ResNet-50 differs from the reference; ``test_contract.py`` covers other models."""
    errors = comparing.compared(forked, [references[RESNET]], ("fp32", "amp"))
    assert not beyond(errors)
    for mode in ("train", "inference"):
        for precision in ("fp32", "amp"):
            _, actual = errors[f"{RESNET}, model_config, {mode}, {precision}"]
            assert {entry["quantity"] for entry in actual} == quantities(mode, precision)


def quantities(mode: str, precision: str) -> set[str]:
    """Return the names of everything of ResNet-50 that is compared with the reference."""
    both = {"trainable parameters", "outputs"}
    both |= {"other dtypes"} if precision == "amp" else set()
    training = {"loss", "losses", "losses in half precision", "gradients",
                "gradients, total", "first update", "first update, total", "two updates",
                "two updates, total", "running statistics",
                "running statistics, total"}  # fmt: skip
    return both | (training if mode == "train" else set())


@pytest.mark.parametrize("definition", sorted({*DEFINITIONS.values()}))
def test_every_model_has_a_reference(definition: str) -> None:
    assert has_reference(definition), f"scripts/reference/{definition}.py is missing"


@pytest.mark.parametrize("model", sorted({*MODELS, BLOCKS} - {BERT}))
def test_the_reference_has_the_parameters_and_matmuls_of_the_config(model: str) -> None:
    """Fail if counts of the reference differ; ``test_encoders.py`` counts BERT's by hand."""
    model_config, module = model_config_of(model), reference_module(model)
    assert trained_parameters(model_config) == model_config["trainable_parameters"]
    length = 32 if model_config["sequence_lengths"] else None
    batch = compute.make_batch(model_config["inputs"], 1, length, 0, 0)
    weights = compute.draw(module.parameters(model_config), 0)
    hyper = model_config["hyperparameters"]
    for training in (False, True):
        counted = compute.count_multiply_adds(module, weights, batch, hyper, training)
        assert counted == catalog.forward_multiply_adds(model_config, length, training)


class Small(NamedTuple):
    """Small reference, and its compared computation. ``quantity``: an error that only
    one check finds, "" where several do."""

    model: str
    parts: int = 2
    soft_labels: bool = False
    micro_steps: bool = False
    ranks: int = 1
    options: Mapping[str, Any] = {}
    quantity: str = ""

    @property
    def reference(self) -> tuple[Any, ...]:
        """Arguments of the reference: the fields before ``ranks``."""
        return self[: self._fields.index("ranks")]


IMAGES, FOUR = Small("digits_resnet"), {"parts": 4, "ranks": 2}
DROPPING = {"config_name": DROPOUT}
#: Mistakes that any framework can make in reading the model config or a schedule.
COMMON = {
    "ignore_second_rate": IMAGES._replace(quantity="losses"),
    "decay_half_more": IMAGES._replace(quantity="two updates"),
    "mix_statistics_faster": IMAGES._replace(quantity="running statistics"),
    "drop_twice_as_much": Small(EMBEDDING, options=DROPPING, quantity="dropout"),
}
#: Mistakes in the code that is specific to one framework.
OWN: dict[str, dict[str, Small]] = {
    "pytorch": {
        "average_twice": Small("digits_resnet", **FOUR, options={"steps": 2}),
        "repeat_masks": Small(
            EMBEDDING, **FOUR, micro_steps=True, options={"steps": 2, **DROPPING}
        ),
        "share_masks": Small(EMBEDDING, ranks=2, options=DROPPING),
        "lose_momentum": IMAGES._replace(ranks=2),
        "spoil_third_sample": IMAGES,
        "harden_labels": IMAGES._replace(soft_labels=True),
        "round_for_all_reduce": Small(EMBEDDING, ranks=2, options={"precision": "amp"}),
    },
    "jax": {"sum_in_jax": Small(EMBEDDING, ranks=2)},
    "tensorflow": {"sum_in_tensorflow": Small(EMBEDDING, ranks=2)},
    "tensorflow1": {"sum_in_tensorflow1": Small(EMBEDDING, ranks=2)},
    "mindspore": {"sum_in_mindspore": Small(EMBEDDING, ranks=2)},
    "mxnet": {"clip_by_the_sum": Small(EMBEDDING, ranks=2)},
    "paddle": {"differentiate_alone": Small(EMBEDDING, ranks=2)},
    "oneflow": {"drop_views_of_buckets": Small(EMBEDDING, ranks=2)},
    "megengine": {"accumulate_unasked": Small(EMBEDDING)},
}
every = served(*OWN)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[Any, ...], Path]:
    folders = {}
    for case in [*COMMON.values(), *(case for own in OWN.values() for case in own.values())]:
        key = case.reference
        if key not in folders:
            folders[key] = tmp_path_factory.mktemp("small") / "reference"
            config = small(BERT, layers=0) if case.model == EMBEDDING else small(case.model)
            compute.write(config, sequence_of(config), 0, folders[key], *key[1:])
    return folders


def compared_with(
    run: ForkServer, mistakes: Mapping[str, Small], written: dict[tuple[Any, ...], Path]
) -> list[dict[str, Any]]:
    cases = []
    for name, case in mistakes.items():
        options = dict(case.options)
        config = options.pop("config_name", "model_config")
        cases.append((name, str(written[case.reference]), config, options))
    (ranks,) = {case.ranks for case in mistakes.values()}
    answers = run("mistakes.compare_patched", ranks, cases=cases)
    return [answer["errors"] for answer in answers]


def test_finds_mistakes_that_only_one_check_shows(
    every: ForkServer, written: dict[tuple[Any, ...], Path]
) -> None:
    (errors,) = compared_with(every, COMMON, written)
    for name, case in COMMON.items():
        found = beyond({name: errors[name]})
        assert any(quantity.startswith(case.quantity) for _, quantity, _ in found), (name, found)


@pytest.mark.parametrize(
    ("every", "mistake"),
    [(framework, mistake) for framework, own in OWN.items() for mistake in own],
    indirect=["every"],
)
def test_finds_mistakes_in_what_a_framework_does(
    mistake: str, every: ForkServer, written: dict[tuple[Any, ...], Path]
) -> None:
    case = OWN[every.framework][mistake]
    # Correct steps on two devices are tested in ``test_contract.py`` for all frameworks.
    for patch in ("", mistake) if every.framework == "pytorch" else (mistake,):
        answers = compared_with(every, {patch: case}, written)
        assert bool(beyond({rank: own[patch] for rank, own in enumerate(answers)})) is bool(patch)
