"""The page about the frameworks' own networks agrees with their environments."""

from __future__ import annotations

import pytest

from . import zoos
from .blocks import smallest
from .cnns import CNNS, TORCHVISION

#: Multiply-adds of an image above which a network is compared with ``--all-networks`` alone.
LARGE = 5e9

_, *SECTIONS = zoos.PAGE.read_text().split("\n## ")


def multiply_adds(network: str) -> float:
    return float(CNNS[network]["forward_multiply_adds"]["per_sample"])


def on_the_page(framework: str) -> list[str]:
    """Return the rows of a framework's table on the page."""
    (section,) = (section for section in SECTIONS if section.startswith(zoos.TITLES[framework]))
    return [row for row in section.splitlines() if row.startswith("| `")]


@pytest.mark.parametrize("framework", zoos.TITLES)
def test_every_network_is_what_the_page_says(framework: str, all_networks: bool) -> None:
    """Fail if a row of the page differs from what is observed.
    Networks that differ only in depth or width run the same code: the smallest stands for them.
    VGG and Inception, which compute most, are compared with ``--all-networks`` alone."""
    stated = {row.split("`")[1]: row for row in on_the_page(framework)}
    names = TORCHVISION if all_networks else smallest(stated)
    if not all_networks:
        names = [name for name in names if multiply_adds(name) < LARGE]
    expected = stated if all_networks else {name: stated[name] for name in names}
    assert zoos.rows(framework, names) == [*expected.values()]


def test_its_summaries_are_those_of_its_rows() -> None:
    assert len(SECTIONS) == len(zoos.TITLES)
    for framework in zoos.TITLES:
        assert f"\n{zoos.summary(on_the_page(framework))}\n" in "\n".join(SECTIONS)
