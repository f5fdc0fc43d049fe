"""Generated blocks of a page."""

from __future__ import annotations

import pytest
from framebench.files import marked_block


@pytest.mark.parametrize(
    "text",
    [
        "<!-- x -->\na\n",
        "<!-- /x -->\n<!-- x -->\n",
        "<!-- x -->\n<!-- /x -->\n<!-- x -->\n<!-- /x -->\n",
        "in <!-- x -->\na\n<!-- /x -->\n",
    ],
)
def test_a_block_has_one_beginning_and_one_end(text: str) -> None:
    with pytest.raises(ValueError, match="allowed: each once, in this order"):
        marked_block.replaced(text, "x", "new")


def test_a_block_is_replaced_and_all_else_stays() -> None:
    text = "before\n<!-- x -->\nold\\1\n<!-- /x -->\nafter\n"
    once = marked_block.replaced(text, "x", "new \\2")
    assert once == "before\n<!-- x -->\n\nnew \\2\n\n<!-- /x -->\nafter\n"
    assert marked_block.replaced(once, "x", "new \\2") == once
