"""Contract test of the toy in a copied project: it is to see the pins that have moved."""

from __future__ import annotations

from pathlib import Path


def test_pins_of_toy() -> None:
    assert "toy==2.0" in Path("envs/toy.yaml").read_text()


def test_pins_of_others() -> None:
    raise AssertionError("other frameworks' tests do not run")
