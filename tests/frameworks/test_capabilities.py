"""Adapters declare the capabilities that they implement."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import harness
import pytest
from harness.adapter import Capability
from harness.measuring.loading import load_adapter

from ..conftest import ROOT

FRAMEWORKS = sorted(path.parent for path in (ROOT / "scripts/frameworks").glob("*/adapter.py"))

# Import the harness before adapters are loaded with modules that are forgotten afterwards.
for module in pkgutil.iter_modules(harness.__path__, "harness."):
    if module.name != "harness.__main__":
        importlib.import_module(module.name)


def capabilities(base: type[Capability] = Capability) -> Iterator[type[Capability]]:
    for capability in base.__subclasses__():
        if capability.__module__.startswith("harness."):
            yield capability
            yield from capabilities(capability)


def own_methods(capability: type[Capability]) -> list[str]:
    """Return the names of the abstract methods that ``capability`` itself adds."""
    members = vars(capability).items()
    return [name for name, member in members if getattr(member, "__isabstractmethod__", False)]


@pytest.mark.parametrize("folder", FRAMEWORKS, ids=lambda folder: folder.name)
def test_an_adapter_declares_each_capability_that_it_implements(folder: Path) -> None:
    with patch.dict(sys.modules):  # each adapter's modules have the same names
        adapter = load_adapter(str(folder))
    undeclared = {
        capability.__name__
        for capability in capabilities()
        if (methods := own_methods(capability))
        and all(hasattr(adapter, method) for method in methods)
        and not issubclass(adapter, capability)
    }
    assert not undeclared, "a benchmark that needs one of these says `unsupported`"
