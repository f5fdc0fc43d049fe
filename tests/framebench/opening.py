"""Modules of the driver that open files other than with the bounded reader."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

WORKFLOW = Path(__file__).parents[2] / "workflow"
#: Methods of any object, and functions by their full name.
METHODS = {"open", "read_text", "read_bytes", "fromfile", "memmap", "ZipFile"}
LIBRARIES = {
    *("np.load", "numpy.load", "json.load", "pd.read_csv", "pd.read_json", "pd.read_parquet"),
    *("sqlite3.connect", "mmap.mmap", "linecache.getlines", "shelve.open", "yaml.load"),
}
MODULES = {"pickle", "marshal", "shelve", "dill", "joblib", "cloudpickle"}


def name_of(function: ast.expr) -> str:
    """Return the called name, with the object's name if it is a plain one."""
    if isinstance(function, ast.Name):
        return function.id
    if not isinstance(function, ast.Attribute):
        return ""
    owner = function.value
    return f"{owner.id}.{function.attr}" if isinstance(owner, ast.Name) else f"?.{function.attr}"


def opening(path: Path) -> Iterator[str]:
    """Yield all calls in a module that open a file, except those of the bounded reader."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in MODULES)
        if isinstance(node, ast.ImportFrom) and node.module in MODULES:
            yield str(node.module)
        if not isinstance(node, ast.Call):
            continue
        name = name_of(node.func)
        owner, _, method = name.rpartition(".")
        is_reader = owner == "bounded"
        is_of_text = name == "pd.read_csv" and "StringIO" in ast.dump(node.args[0])
        opens = name == "open" or (owner and method in METHODS) or name in LIBRARIES
        if opens and not (is_reader or is_of_text):
            yield name


def opening_modules(paths: Iterable[Path]) -> dict[str, set[str]]:
    """Return the modules that open files, with the calls that do so."""
    actual = {path.relative_to(WORKFLOW).as_posix(): set(opening(path)) for path in paths}
    return {name: calls for name, calls in actual.items() if calls}
