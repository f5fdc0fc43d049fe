"""The LSTM in each framework's own layer computes what the reference does."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import pytest
from framebench.config.catalog import forward_multiply_adds
from reference import compute, superbench_lstm

from ..conftest import ROOT, build_environment
from .comparing import beyond, compared
from .fork_server import ForkServer
from .models import SEQUENCE, facts_of, trained_parameters

MODEL = "superbench_lstm"
FRAMEWORKS = sorted(path.parent.name for path in ROOT.glob(f"scripts/frameworks/*/{MODEL}.py"))
#: What a framework's own compiler computes, in the words of refusal where it has none for this.
COMPILED = """
import json
from harness.kinds.parity import Comparison, compare
with open(f"{SCRIPTS}/frameworks/{FRAMEWORK}/framework.json") as file:
    compiler = json.load(file)["native_compiler"]
with open("FOLDER/facts.json") as file:
    facts = json.load(file)
reference = Comparison("FOLDER")
try:
    adapter = started(facts, mode="MODE", compiler=compiler)
    adapter.build(dict(reference.arrays("batch-0")))
    errors, refused = compare(adapter, reference, print), ""
    adapter.compiled()
    adapter.stop()
except Unsupported as reason:
    errors, refused = [], str(reason)
answer(errors=errors, refused=refused)
"""


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reference") / MODEL
    compute.write(compute.reduced(facts_of(MODEL)), SEQUENCE, 0, folder)
    return folder


@pytest.fixture(scope="module", params=FRAMEWORKS)
def run(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ForkServer]:
    python = build_environment(request.param)
    with ForkServer(request.param, python, "", tmp_path_factory.mktemp("ranks")) as server:
        yield server


@pytest.mark.parametrize("precision", ["fp32", "amp"])
def test_it_computes_what_the_reference_does(
    run: ForkServer, reference: Path, precision: str
) -> None:
    assert not beyond(compared(run, [reference], [precision]))


@pytest.mark.parametrize("mode", ["train", "inference"])
def test_compiled_it_computes_the_same_or_says_why_not(
    run: ForkServer, reference: Path, mode: str
) -> None:
    (found,) = run(COMPILED.replace("FOLDER", str(reference)).replace("MODE", mode))
    assert bool(found["errors"]) != bool(found["refused"])
    assert not beyond({mode: ("fp32", found["errors"])})


def test_the_facts_have_the_parameters_of_superbench_and_the_products_of_their_matrices() -> None:
    """With two bias vectors a layer; with one there would be 64,098,404."""
    facts = facts_of(MODEL)
    assert facts["trainable_parameters"] == trained_parameters(facts) == 64_131_172
    drawn = superbench_lstm.parameters(facts)
    sizes = {name: math.prod(one.shape) for name, one in drawn.items() if len(one.shape) == 2}
    last = sizes.pop("classifier.weight")
    assert facts["forward_multiply_adds"] == {"per_sample": last, "per_token": sum(sizes.values())}


def test_the_reference_multiplies_as_often_as_its_matrices_say() -> None:
    facts = compute.reduced(facts_of(MODEL))
    drawn = superbench_lstm.parameters(facts)
    batch = compute.make_batch(facts["inputs"], 1, SEQUENCE, 0, 0)
    counted = compute.count_multiply_adds(
        superbench_lstm, compute.draw(drawn, 0), batch, facts["hyperparameters"]
    )
    sizes = {name: math.prod(one.shape) for name, one in drawn.items() if len(one.shape) == 2}
    last = sizes.pop("classifier.weight")
    polynomial = {"per_sample": last, "per_token": sum(sizes.values())}
    assert counted == forward_multiply_adds({"forward_multiply_adds": polynomial}, SEQUENCE)
