"""Triad of the harness benchmark ``memory`` against a hand-built one, as in STREAM.

    .venv/bin/python benchmarks/stream_by_hand.py [--rounds 40]

Both use the same arrays, in turn. Goal: within 5 % (ratio from 0.95 to 1.05), of the best rounds.
One core.
"""

from __future__ import annotations

import argparse
import ctypes
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "scripts")]

from harness.measuring.micro import stream  # noqa: E402

ELEMENTS = 4 << 20
LOW, HIGH = 0.95, 1.05
BY_HAND = """
void by_hand(double *a, double *b, double *c, double s, long n)
{
    long i;
    for (i = 0; i < n; i++)
        a[i] = b[i] + s * c[i];
}
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=40)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder, "by_hand.c"), Path(folder, "by_hand.so")
        source.write_text(BY_HAND)
        flags = ["-O3", "-march=native", "-shared", "-fPIC"]
        subprocess.run(["cc", *flags, "-o", str(library), str(source)], check=True)
        by_hand = ctypes.CDLL(str(library)).by_hand
    by_hand.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_double, ctypes.c_long]
    held = stream.Stream(stream.compiled(), ELEMENTS, threads=1, seed=1)
    bases = [array.ctypes.data for array in (held.a, held.b, held.c)]
    taken: dict[str, list[float]] = {"ours": [], "by hand": []}
    for _ in range(rounds):
        for name, run in (
            ("ours", lambda: held.run("triad")),
            ("by hand", lambda: by_hand(*bases, stream.SCALAR, ELEMENTS)),
        ):
            start = time.perf_counter()
            run()
            taken[name].append(time.perf_counter() - start)
    ratio = min(taken["by hand"]) / min(taken["ours"])
    print(f"triad, ours over one built by hand: {ratio:.3f}  {LOW} .. {HIGH}")
    return 0 if LOW <= ratio <= HIGH else 1


if __name__ == "__main__":
    sys.exit(main())
