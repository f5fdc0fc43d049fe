"""Compilers used by tests that train in every framework."""

from __future__ import annotations

#: Compiler that each framework trains with.
TRAINING_COMPILERS = {
    "pytorch": "none",
    "tensorflow": "none",
    "jax": "jit",
    "mxnet": "hybridize",
    "paddle": "none",
    "oneflow": "none",
    "tensorflow1": "none",
}
