"""The page about the frameworks' own networks says what is found in their environments."""

from __future__ import annotations

import pytest

from ..conftest import ROOT
from . import zoos

#: One of each family: all of them take minutes.
SAMPLE = (
    *("alexnet", "densenet121", "googlenet", "mobilenet_v2", "resnet18", "resnet50"),
    *("resnext50_32x4d", "shufflenet_v2_x0_5", "squeezenet1_0", "vgg16"),
)
HEADING, *SECTIONS = (ROOT / "docs/zoos.md").read_text().split("\n## ")


def on_the_page(framework: str) -> list[str]:
    """The rows of its table."""
    (section,) = (one for one in SECTIONS if one.startswith(zoos.TITLES[framework]))
    return [row for row in section.splitlines() if row.startswith("| `")]


@pytest.mark.parametrize("framework", zoos.TITLES)
def test_a_network_of_each_family_is_what_the_page_says(framework: str) -> None:
    stated = [row for row in on_the_page(framework) if row.split("`")[1] in SAMPLE]
    assert zoos.rows(framework, SAMPLE) == stated


def test_its_sentences_are_those_of_its_rows() -> None:
    assert HEADING.strip() == zoos.HEADING.strip()
    assert len(SECTIONS) == len(zoos.TITLES)
    for framework in zoos.TITLES:
        assert f"\n{zoos.summary(on_the_page(framework))}\n" in "\n".join(SECTIONS)
