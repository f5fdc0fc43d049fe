"""Rank of a program in a process of its own."""

import faulthandler
import importlib
import json
import os
import time
from types import SimpleNamespace

#: Rank of this process in the program; after other ranks have left, it may change.
place = SimpleNamespace(rank=0, ranks=1)


def run(program, **arguments):
    """Call a function by the names of its module in this package and its own."""
    module, _, name = program.rpartition(".")
    return getattr(importlib.import_module(f"{__package__}.{module}"), name)(**arguments)


def answer(**values):
    """Write this rank's answer to the test to a file, over an earlier answer.
    Printed answers could be mixed with messages of workers."""
    with open(f"{place.rank}.json", "w") as file:
        json.dump(values, file)


def await_ranks(seconds=120):
    """Wait until all ranks call this.
    A rank that exits early can break or block the others' last collective."""
    open(f"{place.rank}.done", "w").close()
    faulthandler.dump_traceback_later(min(120, seconds), exit=True)
    while not all(os.path.exists(f"{rank}.done") for rank in range(place.ranks)):
        time.sleep(0.005)
