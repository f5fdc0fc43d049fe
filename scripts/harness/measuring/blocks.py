"""Blocks of an operation that is run again and again: timed together, because a single one is
shorter than reading a clock and waiting for a device.

The time of a block goes from when the device has nothing to do to when it has nothing left to do.
"""

from __future__ import annotations

import contextlib
import math
import statistics
import time
from typing import Any, Callable, Dict, Iterator, List, Mapping, Sequence, Tuple

from harness.adapter import Adapter, Mismatch
from harness.kind import Context, Parameter, above_zero, at_least
from harness.measuring import libraries
from harness.measuring.checks import check_cores
from harness.measuring.window import all_ready
from harness.operations import Operation

#: Blocks of a point, and how long each takes at least.
BLOCKS, BLOCK_SECONDS = 5, 0.1
_MOST_IN_A_BLOCK = 1000000
#: What is still to be done for this part of a block, and for these seconds, when the device was
#: waited for, was not waited for. See window.py for what honest reads take.
_LATE_PART, _LATE_SECONDS = 0.5, 0.1
_READ_AGAIN = 3
#: Of work that is timed in parts, each alone and together.
BOTH = "both"
#: Blocks of both that are all shorter, by this part, than all blocks of one of them alone were not
#: waited for: nothing is faster for something beside it, but for the seconds that it takes in each
#: run to wake a process that had nothing to do in between.
_SHORTER, _WAKING = 0.1, 5e-5


def parameters(
    what: str, seconds: float = BLOCK_SECONDS, fewest: int = 1
) -> Tuple[Parameter, Parameter]:
    """Of a kind that times ``what`` in blocks, each of them for about so many ``seconds``."""
    return (
        Parameter("blocks", at_least(fewest), "", f"how often {what} is timed", BLOCKS),
        Parameter(
            "block_seconds", above_zero, "s", "how long each of them takes about", seconds
        ),
    )  # fmt: skip


@contextlib.contextmanager
def of_run(context: Context) -> Iterator[List[Dict[str, Any]]]:
    """All blocks of a rank: what is added to them is in its report at once. Behind them when they
    were timed, on which cores, and with which libraries where there is a framework. Raises Mismatch
    where the rank is on other cores than its own."""
    fields = context.fields
    found: List[Dict[str, Any]] = []
    fields["blocks"] = found
    start = time.perf_counter()
    yield found
    fields["window_start"], fields["window_seconds"] = start, time.perf_counter() - start
    fields["cores"] = check_cores(context.cores)
    if context.adapter is not None:
        fields["libraries"] = libraries.in_use()


def time_together(adapter: Adapter, run: Callable[[], Any], count: int) -> float:
    """Seconds of ``count`` runs, one behind the other."""
    adapter.synchronize()
    start = time.perf_counter()
    for _ in range(count):
        run()
    adapter.synchronize()
    return time.perf_counter() - start


def runs_of_block(adapter: Adapter, run: Callable[[], Any], seconds: float) -> int:
    """How many runs take so many seconds: tried with more and more of them, for of one alone a
    large part may be waiting."""
    time_together(adapter, run, 1)  # compiles, and makes room for the result
    count = 1
    while True:
        taken = time_together(adapter, run, count)
        if taken >= seconds or count >= _MOST_IN_A_BLOCK:
            return count
        wanted = math.ceil(count * seconds / max(taken, 1e-9))
        if taken >= 0.5 * seconds:
            return min(wanted, _MOST_IN_A_BLOCK)
        count = min(wanted, 10 * count, _MOST_IN_A_BLOCK)


def measure(context: Context, made: Operation, together: bool = True) -> Dict[str, Any]:
    """``{"operations": in a block, "seconds": of each block}`` of what was ``made``, in as many and
    as long blocks as the parameters say. Raises Mismatch where work was still under way at the end
    of the last. ``together``: with all ranks of this node, which exchange nothing; else alone."""
    adapter, parameters = context.adapter, context.workload.parameters
    count = runs_of_block(adapter, made.run, parameters["block_seconds"])
    with all_ready(adapter, context.barrier if together else None):
        taken = [
            time_together(adapter, made.run, count) for _ in range(parameters["blocks"])
        ]  # fmt: skip
        late = seconds_of(made.result)
    check_complete(late, taken[-1], made.result)
    return {"operations": count, "seconds": taken}


def check_complete(late: float, block: float, result: Callable[[], Any]) -> None:
    """Raises Mismatch where reading the ``result`` right behind a ``block`` (seconds) took ``late``
    seconds because of work, and not because reading takes that long: it is read again to tell."""
    allowed = max(_LATE_SECONDS, _LATE_PART * block)
    if late <= allowed:
        return
    again = min(seconds_of(result) for _ in range(_READ_AGAIN))
    if late > again + allowed:
        raise Mismatch(
            f"the result came {late:.3g} s after a block of {block:.3g} s, and reading takes "
            f"{again:.3g} s: synchronize() returned before the work was complete"
        )


def check_longer(seconds: Mapping[str, Sequence[float]], runs: int) -> None:
    """Raises Mismatch where both together took less than one of them alone, by more than noise, in
    blocks of so many ``runs``. The other way round nothing is wrong: they compete for cores and
    memory, and may take longer than one behind the other."""
    longest = max(seconds[BOTH])
    for part, taken in seconds.items():
        shortest = min(taken)
        if part != BOTH and longest < (1 - _SHORTER) * shortest - _WAKING * runs:
            raise Mismatch(
                f"both together took {longest:.3g} s at most, and {part} alone {shortest:.3g} s at "
                "least: together it was not waited for"
            )


def check_alike(ranks: Sequence[Mapping[str, Any]], *names: str) -> None:
    """Raises Mismatch where ranks that exchange something were not in the same blocks: each has a
    number by each of ``names``."""
    numbers = {
        tuple(tuple(block[name] for name in names) for block in rank["blocks"]) for rank in ranks
    }
    if len(numbers) > 1:
        raise Mismatch(f"the ranks had other {' and '.join(names)} in a block: {sorted(numbers)}")


def seconds_of_one(rank: Mapping[str, Any], at: Mapping[str, Any]) -> float:
    """Seconds of one operation in the median block of a rank's ``blocks`` at a point. Raises
    KeyError where it has none."""
    for block in rank["blocks"]:
        if block["at"] == at:
            return float(statistics.median(block["seconds"]) / block["operations"])
    raise KeyError(f"no blocks at {dict(at)}")


def seconds_of(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
