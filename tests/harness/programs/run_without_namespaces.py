"""The harness on a kernel that gives no network namespaces."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Sequence

from harness import launcher
from harness.processes.private_network import PrivateNetwork


@contextlib.contextmanager
def none(addresses: Sequence[str]) -> Iterator[PrivateNetwork]:
    yield PrivateNetwork(None, "the kernel gives none")


launcher.private_network = none  # type: ignore[attr-defined]
sys.exit(launcher.main(sys.argv[1:]))
