"""``python scripts/reference ..``: compute the float64 results that frameworks are compared
with."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

# As in the harness, only the packages `reference` and `harness` are importable, not their modules
# by bare names.
HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:] = [os.path.dirname(HERE)] + [e for e in sys.path if os.path.realpath(e) != HERE]


def main() -> None:
    from core.parallelism import FEWEST_PARTS
    from core.text import accept_any_text
    from harness.declaration import read_model

    from reference.compute import reduced, write, write_generation

    accept_any_text()
    parser = argparse.ArgumentParser(prog="scripts/reference", description=main.__doc__)
    parser.add_argument("--model", required=True, type=Path, metavar="CONFIG.json")
    parser.add_argument("--sequence-length", type=int, help="tokens, for models with sequences")
    reductions = "make the model smaller, by this key of its config's `verification`"
    parser.add_argument("--reduced", choices=("small", "reduced"), help=reductions)
    parts = "number of batches whose gradients are averaged"
    parser.add_argument("--parts", type=int, default=FEWEST_PARTS, help=parts)
    soft = "train with label smoothing and mixup"
    parser.add_argument("--soft-labels", action="store_true", help=soft)
    micro_steps = "add references for micro-steps with dropout"
    parser.add_argument("--micro-steps", action="store_true", help=micro_steps)
    parser.add_argument("--generate", action="store_true", help="continue prompts without training")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", required=True, type=Path, metavar="DIR")
    arguments = parser.parse_args()
    try:
        model_config = read_model(str(arguments.model))
    except ValueError as error:
        parser.error(str(error))
    if "batch_per_device" not in model_config.get("verification", {}):
        parser.error(f"{arguments.model}: verification lacks the key batch_per_device")
    model_config = reduced(model_config, arguments.reduced) if arguments.reduced else model_config
    about = (model_config, arguments.sequence_length, arguments.seed, arguments.output)
    if arguments.generate:
        write_generation(*about)
    else:
        write(*about, arguments.parts, arguments.soft_labels, arguments.micro_steps)


if __name__ == "__main__":
    main()
