"""Work of a sample of a user's own model."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from harness.adapter import Variable
from harness.measuring.model import sample_work


def test_a_table_with_a_row_for_each_token_is_not_read_whole() -> None:
    shapes = {"tokens": (50, 8), "hidden": (8, 32), "head": (8, 50), "filter": (3, 3, 4, 64)}
    state = {name: Variable(np.zeros(shape)) for name, shape in shapes.items()}
    adapter: Any = SimpleNamespace(state=lambda: state, multiply_adds=lambda: 40)
    tokens, labels = np.array([[0, 49, 2], [1, 3, 5]]), np.array([60, 1])
    work = sample_work(adapter, [tokens, labels], 2)
    assert work["multiply_adds"] == 20
    assert work["tokens"] == 3
    assert work["read_parameters"] == 8 * 32 + 3 * 3 * 4 * 64
    images = sample_work(adapter, [np.zeros((2, 3, 4, 4)), labels], 2)
    assert images["tokens"] is None
    assert images["read_parameters"] == 50 * 8 + 8 * 32 + 8 * 50 + 3 * 3 * 4 * 64


def test_products_that_cannot_be_counted_leave_the_work_unknown() -> None:
    adapter: Any = SimpleNamespace(state=dict, multiply_adds=lambda: None)
    assert sample_work(adapter, [np.zeros((2, 3))], 2)["multiply_adds"] is None
