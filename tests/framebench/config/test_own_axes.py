"""Values of a user's own axis: which are allowed, and which need a verification of their own."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from core import axes, own_axes
from core.case import Case
from framebench.config.validation import ConfigError
from framebench.runs import verify

from ...conftest import ROOT
from ..made_up_verifications import CASE, flag_of, run_in, verification_in
from ..settings import CATALOG, assert_clear, changed, plan, settings

AXIS, DEFAULT, OTHER = "batch_order", "given", "reversed"


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(axes, "REGISTERED", {})
    own_axes.load(str(ROOT / "tests" / "axes"))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["backwards"], ["axes.batch_order[0]: found 'backwards'", "one of given, reversed"]),
        ([OTHER, OTHER], ["axes.batch_order", "each value once"]),
    ],
)
@pytest.mark.usefixtures("registered")
def test_wrong_values_are_refused(tmp_path: Path, values: object, expected: list[str]) -> None:
    with pytest.raises(ConfigError) as error:
        settings(tmp_path, changed(**{AXIS: values}))
    assert_clear(error, expected)


def test_a_further_axis_of_the_register_is_in_folder_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Extend the register by an axis whose value is another than its default in every case."""
    axis = axes.Axis("prefetch", "", axes.count, axes.COUNT, default=1, label="p{}".format)
    optional = [*axes.optional(), axis]
    monkeypatch.setattr(axes, "optional", lambda: optional)
    monkeypatch.setattr(Case, axis.name, 4, raising=False)
    case = Case("jax", "bert_base", "train", 1, 1, 8, "fp32", "jit", 64)
    case = case._replace(accumulation=2, input="synthetic_host")
    assert re.search(r"-b\d+-a2-s64-synthetic_host-p4-[0-9a-f]{8}$", case.folder({}))


def test_an_unknown_axis_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=AXIS):
        settings(tmp_path, changed(**{AXIS: [OTHER]}))


@pytest.mark.usefixtures("registered")
def test_a_figure_is_verified_with_its_value_of_an_axis(tmp_path: Path) -> None:
    training = {**CASE, "mode": "train", "model": "resnet50_v1.5", "sequence_length": None}
    plain, other = (run_in(tmp_path, {**training, AXIS: value}) for value in (DEFAULT, OTHER))
    verification_in(tmp_path, training)
    assert flag_of(tmp_path, plain) is None, "a record without the axis has its default"
    assert flag_of(tmp_path, other) == ("unverified", "")
    own_axes.register(replace(axes.named(AXIS), computes=False))
    assert flag_of(tmp_path, other) is None, "the axis does not change what is computed"
    own_axes.load(str(ROOT / "tests" / "axes"))
    verification_in(tmp_path, {**training, AXIS: OTHER}, error=0.1)
    off = "outputs differ from the reference by 0.1 (allowed 0.0001)"
    assert flag_of(tmp_path, other) == ("incorrect", off)
    assert flag_of(tmp_path, plain) is None
    verification_in(tmp_path, {**training, AXIS: OTHER}, started="2031-01-01")
    assert flag_of(tmp_path, other) is None


@pytest.mark.usefixtures("registered")
def test_each_value_of_an_axis_is_verified(tmp_path: Path) -> None:
    made = plan(tmp_path, changed(**{AXIS: [DEFAULT, OTHER]}))
    named = verify.names(made, CATALOG, verify.full_size(made, CATALOG))
    assert [getattr(verification.case, AXIS) for verification in named.values()] == [DEFAULT, OTHER]
    plain, other = named
    assert (f"-{OTHER}-" in plain, f"-{OTHER}-" in other) == (False, True)
    expected = verify.arguments(made, named[other], "/reference")
    assert expected[expected.index("--batch-order") + 1] == OTHER
    assert "--batch-order" not in verify.arguments(made, named[plain], "/reference")
