"""GPU branch of each adapter on a processor.

Doubles in ``gpus`` replace a device's functions alone. Each benchmark runs from ``start`` to its
entry in the record."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from .fork_server import ForkServer, ForkServers
from .models import BERT, small

DOUBLES = Path(__file__).with_name("gpus")
#: Small enough for a second in every framework.
MODEL = small(BERT, layers=1)


@pytest.fixture(scope="module", params=["tensorflow"])
def run(request: pytest.FixtureRequest, fork_servers: ForkServers) -> ForkServer:
    """Return the server of a framework on the double of a GPU."""
    parts = [DOUBLES / f"{request.param}.py", DOUBLES / "running.py"]
    return fork_servers(request.param).after("\n".join(part.read_text() for part in parts))


def measured(run: ForkServer, call: str, ranks: int = 1) -> list[dict[str, Any]]:
    """Return each rank's entry in the record of ``measured(CALL)``, and what its double saw."""
    return run(f"answer(**measured({call}), observed=observed())", ranks=ranks)


@pytest.mark.parametrize("ranks", [1, 2])
def test_training_runs_on_a_gpu(run: ForkServer, ranks: int) -> None:
    found = measured(run, f"'train', {MODEL!r}", ranks)
    for number, rank in enumerate(found):
        assert rank["device"].startswith(f"cuda:{number} NVIDIA A100")
        assert rank["run_ahead"] == 1, "a GPU that is asynchronous runs a step at a time"
        assert len(rank["step_seconds"]) == 2
        assert rank["observed"]["waits"] > 0
        assert rank["peak_device_memory_bytes"] > 0
        assert rank["settings"]["tf32"] is False
