"""The page about a new framework names what there is to derive from, and what each asks for."""

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
#: Named behind the table: what nearly every framework has of it, in one.
TOGETHER = "CommonCapabilities"


def below(one: type) -> Iterator[type]:
    for inner in one.__subclasses__():
        yield inner
        yield from below(inner)


def capabilities() -> dict[str, type]:
    """Those of the harness, by name; not what a kind of measurement calls several of them."""
    for module in pkgutil.walk_packages(harness.__path__, "harness."):
        if "start_" not in module.name and "__main__" not in module.name:
            with suppress(ModuleNotFoundError):  # a loader with a framework's own
                importlib.import_module(module.name)
    return {
        one.__name__: one
        for one in below(Capability)
        if one.__module__.startswith("harness.")
        and not {"kinds", "learning"} & {*one.__module__.split(".")}
    }


def asked(one: type) -> set[str]:
    """What a class asks for that none of its bases does."""
    inherited: set[str] = set()
    for base in one.__bases__:
        inherited |= getattr(base, "__abstractmethods__", frozenset())
    return {*getattr(one, "__abstractmethods__", frozenset())} - inherited


def rows() -> dict[str, set[str]]:
    """The capabilities of the table, and what stands behind each."""
    cells = re.findall(r"^\| (?:the core, )?`([A-Z]\w+)`(.*?) \|", PAGE.read_text(), re.MULTILINE)
    return {name: {*re.findall(r"`([a-z_]\w*)`", rest)} for name, rest in cells}


def test_the_page_names_every_capability_and_all_that_it_asks_for() -> None:
    named, there = rows(), {"Adapter": Adapter, **capabilities()}
    assert there.pop(TOGETHER)
    assert f"`{TOGETHER}`" in PAGE.read_text()
    assert sorted(named) == sorted(there)
    lacking = {name: asked(one) - named[name] for name, one in there.items()}
    assert {name: one for name, one in lacking.items() if one} == {}
    assert named["Adapter"] == asked(Adapter), "the core is no more than it has to be"
    assert len(asked(Adapter)) <= 7
