"""Lines of adapters that only GPUs reach, and that no test on a double of a GPU executes.

    .venv/bin/python benchmarks/gpu_branches.py [FRAMEWORK ..]

Runs ``tests/frameworks/test_gpu.py`` and notes each executed line of the adapters. Prints the lines
of branches for GPUs that were not among them, with the reason where one is known. Exits with 1 if a
line has none.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ADAPTERS = ROOT / "scripts" / "frameworks"
#: Conditions that tell GPUs from CPUs, and those that hold on CPUs.
GPU = re.compile(r"gpu|cuda|nccl|channels_last|NCHW|device_type|accelerator|platform|_stream\b")
CPU = re.compile(
    r"^not |not self\._gpu|is None|== '(cpu|NCHW)'|!= '(cuda|gpu)'|not in|layout\(\) == 'NCHW'"
)
#: Why no double executes a line, by the beginning of its text.
REASONS = {
    'raise Mismatch(f"parts of the model are in no CUDA graph': "TorchInductor counts them on GPUs",
}


def branches(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of ``body`` that only GPUs reach, and of all blocks within it."""
    for number, statement in enumerate(body):
        if isinstance(statement, ast.If) and GPU.search(ast.unparse(statement.test)):
            if not CPU.search(ast.unparse(statement.test)):
                yield from statement.body
            elif statement.orelse:
                yield from statement.orelse
            elif isinstance(statement.body[-1], (ast.Return, ast.Raise)):
                yield from body[number + 1 :]
        for name in ("body", "orelse", "finalbody"):
            yield from branches(getattr(statement, name, ()))


def missing(framework: str, executed: set[tuple[str, int]]) -> Iterator[tuple[str, int, str]]:
    """Yield file, number and text of each line that was not executed."""
    for path in sorted((ADAPTERS / framework).rglob("*.py")):
        text = path.read_text()
        name, lines = str(path.relative_to(ADAPTERS)), text.splitlines()
        numbers = {statement.lineno for statement in branches(ast.parse(text).body)}
        for number in sorted(numbers):
            if (name, number) not in executed:
                yield name, number, lines[number - 1].strip()


def main() -> int:
    frameworks = sys.argv[1:] or sorted(path.parent.name for path in ADAPTERS.glob("*/adapter.py"))
    with tempfile.TemporaryDirectory(prefix="gpu-branches-") as folder:
        command = [sys.executable, "-m", "pytest", "-n", "0", "-q", "tests/frameworks/test_gpu.py"]
        chosen = ["-k", " or ".join(frameworks)] if sys.argv[1:] else []
        variables = {**os.environ, "FRAMEBENCH_GPU_LINES": folder}
        subprocess.run([*command, *chosen], cwd=ROOT, env=variables, check=True)
        executed = set()
        for path in Path(folder).iterdir():
            for line in path.read_text().splitlines():
                name, _, number = line.rpartition(":")
                executed.add((name, int(number)))
    unexplained = 0
    for framework in frameworks:
        for name, number, text in missing(framework, executed):
            reason = next((why for start, why in REASONS.items() if text.startswith(start)), "")
            unexplained += not reason
            print(f"{name}:{number}: {text}", reason or "NO TEST", sep=" | ")
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
