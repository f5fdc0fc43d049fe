"""A framework's update is followed by its contract tests and a gate of both environments."""

from __future__ import annotations

import re
from pathlib import Path

from framebench.commands import upkeep
from framebench.environments.updating import Moved
from framebench.features.gate import command, sides

from ...settings import CATALOG, ROOT


def test_what_follows_tests_the_framework_and_compares_both_environments(tmp_path: Path) -> None:
    file = ROOT / "envs" / "jax.yaml"
    before = tmp_path / "jax-before.yaml"
    before.write_text(re.sub("scipy==.*", "scipy==1.0.0", file.read_text()))
    moved = Moved(file, before, {})
    testing, gate = upkeep.commands_of_checks(
        "jax", moved, tmp_path, ["suite=micro", "--pairs", "8"]
    ).values()
    assert testing[-2:] == ["-k", "jax"]
    assert (ROOT / testing[-3]).is_file()
    options = command.parser().parse_args(gate[3:])
    base, candidate = sides.both(options.base, options.candidate, {}, ["jax"], CATALOG)
    assert {*base.settings["environments"]} == {*candidate.settings["environments"]} == {"jax"}
    assert options.config == ["frameworks=jax", "accelerator=cpu", "suite=micro"]
    assert options.pairs == 8
