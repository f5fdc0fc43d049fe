"""Mistakes planted in the frameworks' adapters, and which of them verification does not find.

    .venv/bin/python benchmarks/planted_mistakes.py [FRAMEWORK ..]

Verifies each framework's small models unchanged and then with each mistake of
``tests/frameworks/mistakes``. Prints the comparison in which an error exceeds its bound the most,
and exits with 1 if a mistake is not found or something right fails. Goals: all are found, and right
code stays below a fifth of each bound.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / folder) for folder in ("workflow", "scripts", "")]

from framebench.records import verifications  # noqa: E402

from tests.frameworks.blocks import write_block_references  # noqa: E402
from tests.frameworks.comparing import Errors  # noqa: E402
from tests.frameworks.fork_server import ForkServer, ForkServers  # noqa: E402
from tests.frameworks.mistakes import FRAMEWORKS, of_framework  # noqa: E402
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


def largest(errors: Errors) -> tuple[float, str]:
    """Return the largest error as part of its bound (infinite for a wrong count), and its name."""
    found = [(0.0, "")]
    for precision, measured in errors.values():
        for one in measured:
            bound = verifications.bound(precision, one["quantity"])
            error = float("inf") if one["error"] is None else one["error"]
            part = error / bound if bound else float("inf") if error else 0.0
            found.append((float("inf") if part != part else part, one["quantity"]))
    return max(found)


def verified(
    run: ForkServer, references: dict[str, Path], folder: Path
) -> Iterator[tuple[str, str, float, str, bool]]:
    """Yield model, mistake, the largest error as part of its bound, its name, and whether this is
    as it must be, for what is right and then for each mistake."""
    mistakes = of_framework(run.framework)
    for model, computation in sorted({(one.model, one.computation) for one in mistakes}):
        adapter = ADAPTERS / run.framework
        part, name = largest(errors_of(run, references[model], adapter, computation))
        chosen = [str(value) for value in computation if value]
        yield model, f"none ({', '.join(chosen)})", part, name, part <= 1
    for number, mistake in enumerate(mistakes):
        copied = folder / run.framework / str(number)
        try:
            part, name = largest(planted_errors(run, mistake, references, copied))
        except AssertionError as error:  # a rank that gave no answer: the run would fail
            part, name = float("inf"), str(error).strip().splitlines()[-1][:60]
        # One that is known to be missed is shown, and must be named anew when it is found.
        yield (
            mistake.model,
            mistake.about,
            part,
            mistake.missed or name,
            (part > 1) != bool(mistake.missed),
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("framework", nargs="*", choices=[[], *FRAMEWORKS], help="default: all")
    wrong, count = [], 0
    with tempfile.TemporaryDirectory(prefix="planted-") as name:
        folder = Path(name)
        references = written(folder)
        servers = ForkServers(lambda kind: Path(tempfile.mkdtemp(prefix=kind, dir=folder)))
        try:
            for framework in parser.parse_args().framework or FRAMEWORKS:
                for row in verified(servers(framework), references, folder):
                    model, what, part, quantity, as_expected = row
                    verdict = "" if as_expected else "  <- WRONG"
                    print(
                        f"{framework:12} {model:26} {what:60} {part:9.3g} {quantity}{verdict}",
                        flush=True,
                    )
                    count += 1
                    wrong += [] if as_expected else [f"{framework}, {model}: {what}"]
        finally:
            servers.stop()
    print(f"{count} comparisons, {len(wrong)} not as they must be", *wrong, sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
