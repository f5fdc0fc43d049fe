"""Lines of adapters that only GPUs reach, and that no test on a double of a GPU executes.

    .venv/bin/python benchmarks/gpu_branches.py [FRAMEWORK ..]

Runs ``tests/frameworks/test_gpu.py`` and notes each executed line of the adapters. Prints the lines
of branches for GPUs, and of functions that these alone call, that were not among them, with the
reason where one is known. Exits with 1 if a line has none.
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
    'raise Unsupported(f"OneFlow {oneflow.__version__} is a build without': "no such wheel is here",
    "return handle": "on the CPU, in a function that GPUs alone name",
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


def reached(trees: Sequence[ast.Module]) -> set[ast.stmt]:
    """Return the statements of an adapter that only GPUs reach: of branches, and of functions that
    these alone name."""
    nodes = [node for tree in trees for node in ast.walk(tree)]
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef)]
    roots: list[ast.AST] = [statement for tree in trees for statement in branches(tree.body)]
    for node in nodes:
        if isinstance(node, ast.IfExp) and GPU.search(text := ast.unparse(node.test)):
            roots.append(node.orelse if CPU.search(text) else node.body)
    while True:
        inside = {node for root in roots for node in ast.walk(root)}
        named, elsewhere = names(inside), names(set(nodes) - inside)
        more = [
            function
            for function in functions
            if function not in inside and function.name in named - elsewhere
        ]
        if not more:
            return {node for node in inside if isinstance(node, ast.stmt)}
        roots += more


def names(nodes: set[ast.AST]) -> set[str]:
    """Return the names and attributes among these nodes."""
    plain = {node.id for node in nodes if isinstance(node, ast.Name)}
    return plain | {node.attr for node in nodes if isinstance(node, ast.Attribute)}


def missing(framework: str, executed: set[tuple[str, int]]) -> Iterator[tuple[str, int, str]]:
    """Yield file, number and text of each line that was not executed."""
    trees = {
        path: ast.parse(path.read_text()) for path in sorted((ADAPTERS / framework).rglob("*.py"))
    }
    only = reached([*trees.values()])
    for path, tree in trees.items():
        name, lines = str(path.relative_to(ADAPTERS)), path.read_text().splitlines()
        for statement in ast.walk(tree):
            if statement in only and not is_comment(statement):
                number = statement.lineno
                if (name, number) not in executed:
                    yield name, number, lines[number - 1].strip()


def is_comment(statement: ast.stmt) -> bool:
    """Return whether a statement is executed without a trace: a docstring or a declaration."""
    text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    return text or isinstance(statement, (ast.Global, ast.Nonlocal, ast.Pass))


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
                file, _, line_number = line.rpartition(":")
                executed.add((file, int(line_number)))
    unexplained = 0
    for framework in frameworks:
        for name, number, text in missing(framework, executed):
            reason = next((why for start, why in REASONS.items() if text.startswith(start)), "")
            unexplained += not reason
            print(f"{name}:{number}: {text}", reason or "NO TEST", sep=" | ")
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
