"""Mistakes planted in the frameworks' adapters, and which of them verification does not find.

    .venv/bin/python benchmarks/planted_mistakes.py [FRAMEWORK ..]

Verifies each framework's small models unchanged and then with each mistake of
``tests/frameworks/mistakes``. Prints the comparison in which an error exceeds its bound the most,
and for each framework how many are found. Exits with 1 if a mistake is not found that is not known
to be missed, or something right fails. Goals: all are found, and right code stays below a fifth of
each bound, in standard errors of statistics below the bound.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / folder) for folder in ("workflow", "scripts", "")]

from framebench.records import verifications  # noqa: E402

from tests.frameworks.blocks import write_block_references  # noqa: E402
from tests.frameworks.comparing import Errors  # noqa: E402
from tests.frameworks.fork_server import ForkServer, ForkServers  # noqa: E402
from tests.frameworks.mistakes import FRAMEWORKS, of_framework  # noqa: E402
from tests.frameworks.mistakes.planted import PlantedMistake  # noqa: E402
from tests.frameworks.models import write_references  # noqa: E402
from tests.frameworks.optimizers import write_branch_references  # noqa: E402
from tests.frameworks.planting import (  # noqa: E402
    ADAPTERS,
    errors_of,
    planted_errors,
    references_of,
)
from tests.frameworks.transformers import write_decoder_references  # noqa: E402


def written(folder: Path) -> dict[str, Path]:
    """Write the references in which mistakes are planted; return their folders by name."""
    writes = {
        "decoders": write_decoder_references,
        "blocks": write_block_references,
        "branches": write_branch_references,
    }
    for name, write in writes.items():
        (folder / name).mkdir()
        write(folder / name)
    return references_of(write_references(folder / "small"), *(folder / name for name in writes))


#: Errors in standard errors, of which right code has a few.
STATISTICS = ("dropout", "masks of dropout")
#: Largest error of right code as part of its bound, apart from STATISTICS.
RIGHT = 0.2


class Row(NamedTuple):
    """A comparison. ``mistake``: None if the adapter is unchanged; ``part``: the largest error as
    part of its bound, infinite for a wrong count; ``quantity``: its name."""

    model: str
    what: str
    mistake: PlantedMistake | None
    part: float
    quantity: str

    @property
    def is_right(self) -> bool:
        """Return whether the checks judged as expected: they reject a mistake, unless it is known
        to be missed, and accept correct code."""
        missed = self.mistake is None or bool(self.mistake.missed)
        return (self.part > 1) != missed


def largest(errors: Errors, without: Collection[str] = ()) -> tuple[float, str]:
    """Return the largest error as part of its bound, and its name, ``without`` some quantities."""
    found = [(0.0, "")]
    for precision, measured in errors.values():
        for entry in measured:
            if entry["quantity"] in without:
                continue
            bound = verifications.bound(precision, entry["quantity"])
            error = (
                float("inf")
                if entry["error"] is None
                else entry["error"] - entry.get("rounding", 0)
            )
            part = error / bound if bound else float("inf") if error else 0.0
            found.append((float("inf") if part != part else part, entry["quantity"]))
    return max(found)


def compared(run: ForkServer, references: dict[str, Path], folder: Path) -> Iterator[Row]:
    """Yield the comparisons of what is right, and then of each mistake."""
    mistakes = of_framework(run.framework)
    for model, computation in sorted(
        {(mistake.model, mistake.computation) for mistake in mistakes}
    ):
        errors = errors_of(run, references[model], ADAPTERS / run.framework, computation)
        part, name = largest(errors)
        if part <= 1:
            part, name = largest(errors, STATISTICS)
        chosen = [str(value) for value in computation if value]
        yield Row(model, f"none ({', '.join(chosen)})", None, part, name)
    for number, mistake in enumerate(mistakes):
        copied = folder / run.framework / str(number)
        try:
            part, name = largest(planted_errors(run, mistake, references, copied))
        except AssertionError as error:  # nothing was compared, so that nothing is found
            part, name = 0.0, f"no answer: {str(error).strip().splitlines()[-1][:60]}"
        yield Row(mistake.model, mistake.about, mistake, part, name)


def summary(framework: str, rows: Sequence[Row]) -> str:
    """Return the numbers of mistakes, and the largest error of right code."""
    planted = [row for row in rows if row.mistake]
    found = sum(row.part > 1 for row in planted)
    right = max((row for row in rows if not row.mistake), key=lambda row: row.part)
    above = sum(row.part > RIGHT for row in rows if not row.mistake)
    return (
        f"{framework:12} {len(planted):3} mistakes, {found:3} found, {len(planted) - found} not; "
        f"right code at most {right.part:.2g} of a bound ({right.model}, {right.what}: "
        f"{right.quantity}), above {RIGHT} in {above} of {len(rows) - len(planted)} comparisons"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("framework", nargs="*", choices=[[], *FRAMEWORKS], help="default: all")
    wrong, summaries = [], []
    with tempfile.TemporaryDirectory(prefix="planted-") as name:
        folder = Path(name)
        references = written(folder)
        servers = ForkServers(lambda kind: Path(tempfile.mkdtemp(prefix=kind, dir=folder)))
        try:
            for framework in parser.parse_args().framework or FRAMEWORKS:
                rows = []
                for row in compared(servers(framework), references, folder):
                    rows.append(row)
                    known = row.mistake.missed if row.mistake else ""
                    note = (f"  known: {known}" if known else "") + "  <- WRONG" * (
                        not row.is_right
                    )
                    print(
                        f"{framework:12} {row.model:26} {row.what:60} {row.part:9.3g} "
                        f"{row.quantity}{note}",
                        flush=True,
                    )
                wrong += [
                    f"{framework}, {row.model}: {row.what}" for row in rows if not row.is_right
                ]
                summaries.append(summary(framework, rows))
        finally:
            servers.stop()
    print(*summaries, f"{len(wrong)} not as they must be", *wrong, sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
