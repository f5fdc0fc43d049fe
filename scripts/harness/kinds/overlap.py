"""Products beside an all-reduce: how much of the shorter of the two the longer one hides.

In a training step the gradients of the last layers are on their way while those of the layers in
front of them are computed. Here each is timed alone and both together, in turns, and each time what
was enqueued is waited for before the clock is read. Where the number of products is not said, it is
such that they take about as long as the all-reduce: then all of it could be hidden.

All-reduce and last product are checked before anything is timed, and right behind it. Standard
library and numpy.
"""

from __future__ import annotations

import statistics
from typing import Any, Callable, Dict, List, Mapping

from harness.adapter import Unsupported
from harness.communication import ALL_REDUCE, Collective
from harness.kind import Context, Kind, Metric, Parameter, Subject, at_least
from harness.measuring import blocks
from harness.measuring.blocks import BOTH, check_longer
from harness.measuring.checks import check_products
from harness.measuring.micro import collectives
from harness.measuring.micro.products import check_product, operands
from harness.measuring.micro.shapes import Shape, shape
from harness.overlapping import Overlapped, Overlapping

COMPUTE, COMMUNICATION = "compute", "communication"
PARTS = (COMPUTE, COMMUNICATION, BOTH)
#: Products are matched to the all-reduce; of very small ones no more than this.
_MOST_PRODUCTS = 256
_DTYPE = "float32"  # of the message


def one_shape(text: str) -> str:
    """The type of a parameter: the shape of a product of two matrices."""
    found = shape(text)
    if found.batch > 1:
        raise ValueError("must be one shape like 640x1024x1880 (m, k, n)")
    return str(found)


class Overlap(Kind):
    """Milliseconds of the products, of the all-reduce, and of both together; the share of the
    shorter that the longer hides. The slowest rank's times count."""

    needs = Overlapping
    axes = ("framework", "nodes", "devices_per_node", "precision")
    parameters = (
        # Shape and message are those of SuperBench's computation-communication-overlap.
        Parameter("shape", one_shape, "", "m x k x n of each product", "640x1024x1880"),
        Parameter(
            "products", at_least(0), "",
            "beside an all-reduce; 0: as many as take as long as it does", 0,
        ),
        Parameter("message_bytes", at_least(4), "bytes", "of the all-reduce", 28000000),
        *blocks.parameters("each alone and both together", fewest=2),
    )  # fmt: skip

    def metrics(self, subject: Subject) -> Dict[str, Metric]:
        def milliseconds(part: str) -> Callable[[Mapping[str, Any]], float]:
            return lambda rank: 1e3 * blocks.seconds_of_one(rank, {"part": part})

        return {
            "hidden_share": Metric("%", "higher", "min", lambda rank: 100 * hidden_share(rank)),
            **{f"{part}_time": Metric("ms", "lower", "max", milliseconds(part)) for part in PARTS},
        }

    def measure(self, context: Context) -> None:
        if context.place.world_size == 1:
            raise Unsupported("one device has nobody to exchange anything with")
        fields, parameters = context.fields, context.subject.parameters
        trial = _Trial(context)
        with blocks.of_run(context) as found:
            products = parameters["products"] or context.phase("matching", trial.matching_products)
            trial.set_up(products)
            dtypes = {trial.made.dtype: products}
            fields["products"] = check_products(context.subject.case.precision, dtypes)
            trial.check("before it was timed")
            context.report.enter("timed window")
            runs, seconds = trial.timed(parameters["blocks"], parameters["block_seconds"])
            found.extend(
                {"at": {"part": part}, "operations": runs, "products": products, "seconds": taken}
                for part, taken in seconds.items()
            )
            check_longer(seconds, runs)
            trial.check("after it was timed")

    def check(self, subject: Subject, ranks: Any) -> None:
        """All ranks did as much."""
        blocks.check_alike(ranks, "operations", "products")


class _Trial:
    """What a rank multiplies and exchanges, and how it is made sure of."""

    made: Overlapped

    def __init__(self, context: Context) -> None:
        import numpy as np

        self.adapter: Overlapping = context.adapter
        parameters = context.subject.parameters
        place = context.place
        self._random = np.random.RandomState(place.seed)
        self._shape: Shape = shape(parameters["shape"])
        self._left, self._right = operands(self._shape, self._random)
        self._ranks = place.world_size
        count = parameters["message_bytes"] // collectives.ITEM[_DTYPE]
        arrays = [
            collectives.array_of(rank, count, _DTYPE, self._ranks, place.seed)
            for rank in range(self._ranks)
        ]
        self._message = arrays[place.rank]
        self._sum = collectives.expected(ALL_REDUCE, arrays, place.rank)

    def set_up(self, products: int) -> None:
        self.made = self.adapter.overlapped(self._left, self._right, products, self._message)

    def matching_products(self) -> int:
        """How many take as long as the all-reduce; all ranks come to the same number."""
        self.set_up(1)
        for part in PARTS:  # compiles, connects, and makes room
            self._block(part, 1)
        seconds = {
            part: statistics.median(self._block(part, 1) for _ in range(3))
            for part in (COMPUTE, COMMUNICATION)
        }
        summed = {part: self.adapter.all_reduce(value) for part, value in seconds.items()}
        matching = round(summed[COMMUNICATION] / max(summed[COMPUTE], 1e-9))
        return max(1, min(matching, _MOST_PRODUCTS))

    def timed(self, count: int, seconds: float) -> Any:
        """The runs in a block, and of each part the seconds of so many blocks, taken in turns.
        Raises Mismatch where something is still under way behind a block."""
        made = self.made
        most = collectives.most_in_a_row(ALL_REDUCE, _DTYPE, self._ranks) or 1
        both = Collective(made.reset, made.both, made.reduced)
        runs = collectives.runs_of_block(self.adapter, both, most, seconds)
        taken: Dict[str, List[float]] = {part: [] for part in PARTS}
        results = {COMPUTE: [made.product], COMMUNICATION: [made.reduced]}
        results[BOTH] = [made.reduced, made.product]
        for _ in range(count):
            for part, found in taken.items():
                found.append(self._block(part, runs))
                for result in results[part]:
                    late = blocks.seconds_of(result)
                    blocks.check_complete(late, found[-1], result)
        return runs, taken

    def _block(self, part: str, runs: int) -> float:
        made = self.made
        run = {COMPUTE: made.compute, COMMUNICATION: made.communicate, BOTH: made.both}[part]
        return collectives.timed_block(
            self.adapter, Collective(made.reset, run, made.reduced), runs
        )

    def check(self, when: str) -> None:
        """Raises Mismatch where what comes of both together, waited for as in a block, is wrong."""
        self._block(BOTH, 1)
        what = f"{when}: {ALL_REDUCE} beside {self._shape}"
        collectives.check_result(self.made.reduced(), self._sum, what)
        product = self.made.product()
        check_product(product, self._left, self._right, self.made.dtype, self._random)


def hidden_share(rank: Mapping[str, Any]) -> float:
    """Of the shorter of the two: 1 where both together take as long as the longer, 0 where they
    take as long as one behind the other, below 0 where they hinder each other more."""
    alone, beside, both = (blocks.seconds_of_one(rank, {"part": part}) for part in PARTS)
    return (alone + beside - both) / min(alone, beside)
