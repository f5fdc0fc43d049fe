"""Advice of the tests when a package cannot be installed."""

from __future__ import annotations

import os

import pytest

from .debian import install_debian_packages


def test_without_the_right_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert "(as root) apt-get install munge slurmd" in install_debian_packages("munge", "slurmd")


def test_elsewhere_than_on_debian(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert "no Debian: install what its packages munge" in install_debian_packages("munge")
