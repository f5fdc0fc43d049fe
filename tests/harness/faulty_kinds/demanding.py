"""Benchmark that needs a capability which no framework has."""

from __future__ import annotations

from harness.adapter import Adapter
from harness.kind import Context, Kind


class Generation(Adapter):
    """Capability of no framework."""


class Demanding(Kind):
    """Benchmark of that capability."""

    needs = Generation

    def measure(self, context: Context) -> None:
        raise AssertionError("it was asked all the same")
