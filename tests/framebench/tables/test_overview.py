"""All frameworks side by side, and generated blocks of a page."""

from __future__ import annotations

import pytest
from framebench.files import marked_block
from framebench.tables.declared import overview

from ..made_up_runs import changed, in_markdown, repeats, rows_of, table_of


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


def test_models_of_one_framework_stand_below_each_other() -> None:
    """Fail if models of one framework are not listed below each other.
    With frameworks across the page, too few would fit; SuperBench lists its own likewise."""
    runs = [
        changed(run, model=model, precision=precision, mode=mode)
        for model, speed in (("resnet50", 4.0), ("vgg11", 2.0))
        for precision in ("fp32", "amp")
        for mode in ("train", "inference")
        for run in repeats(speed)
    ]
    rows = rows_of("overview", runs)
    train, inference = overview.crosstabs(rows)
    assert (train.down, train.title) == ("model", "pytorch, train (images/s)")
    assert (list(train.settings), inference.title[:18]) == (
        *(["fp32 1n1g", "amp 1n1g"],),
        "pytorch, inference",
    )
    texts = {
        name: {setting: cell and cell.text for setting, cell in cells.items()}
        for name, cells in train.rows.items()
    }
    assert texts == {
        "resnet50": {"fp32 1n1g": "4", "amp 1n1g": "4"},
        "vgg11": {"fp32 1n1g": "2", "amp 1n1g": "2"},
    }
    text = in_markdown("overview", table_of("overview", runs))
    assert "| model | fp32 1n1g | amp 1n1g |" in text
    assert {crosstab.down for crosstab in overview.by_model(rows)} == {"framework"}
    both = rows + [{**row, "framework": "jax"} for row in rows]
    assert {crosstab.down for crosstab in overview.crosstabs(both)} == {"framework"}
