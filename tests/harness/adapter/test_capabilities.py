"""The page about a new framework names every base class, and what it requires."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator
from contextlib import suppress

import harness
from harness.adapter import Adapter, Capability

from ...conftest import ROOT

PAGE = ROOT / "docs" / "adding-a-framework.md"
#: Class named after the table: the capabilities that nearly every framework has, in one.
TOGETHER = "CommonCapabilities"


def below(entry: type) -> Iterator[type]:
    for inner in entry.__subclasses__():
        yield inner
        yield from below(inner)


def capabilities() -> dict[str, type]:
    """Return the capabilities of the harness, by name, without groups named by benchmarks."""
    for module in pkgutil.walk_packages(harness.__path__, "harness."):
        if "start_" not in module.name and "__main__" not in module.name:
            with suppress(ModuleNotFoundError):  # a loader needs its framework
                importlib.import_module(module.name)
    return {
        entry.__name__: entry
        for entry in below(Capability)
        if entry.__module__.startswith("harness.")
        and not {"kinds", "learning"} & {*entry.__module__.split(".")}
    }


def asked(entry: type) -> set[str]:
    """Return the methods that a class requires and none of its bases does."""
    inherited: set[str] = set()
    for base in entry.__bases__:
        inherited |= getattr(base, "__abstractmethods__", frozenset())
    return {*getattr(entry, "__abstractmethods__", frozenset())} - inherited


def rows() -> dict[str, set[str]]:
    """Return the capabilities in the table, with the methods listed for each."""
    cells = re.findall(r"^\| (?:the core, )?`([A-Z]\w+)`(.*?) \|", PAGE.read_text(), re.MULTILINE)
    return {name: {*re.findall(r"`([a-z_]\w*)`", rest)} for name, rest in cells}


def test_the_page_names_every_capability_and_all_that_it_asks_for() -> None:
    named, there = rows(), {"Adapter": Adapter, **capabilities()}
    assert there.pop(TOGETHER)
    assert f"`{TOGETHER}`" in PAGE.read_text()
    assert sorted(named) == sorted(there)
    lacking = {name: asked(entry) - named[name] for name, entry in there.items()}
    assert {name: entry for name, entry in lacking.items() if entry} == {}
    assert named["Adapter"] == asked(Adapter), "the core is no more than it has to be"
    assert len(asked(Adapter)) <= 7
