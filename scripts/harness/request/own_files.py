"""Files that a user's own model imports from beside it, found in the text of its import statements.

Nothing is run. Imports whose names are computed are found by none of this: the rank refuses them
(``harness/adapter/own_models.py``).
"""

from __future__ import annotations

import ast
import glob
import hashlib
import os
import pathlib
from typing import Any, Dict, Iterator, List, NamedTuple, Sequence, Tuple

from core import bounded

#: Nodes and attributes of an expression that adds a folder to ``sys.path``.
_NODES = "Name Attribute Call Constant Str Num BinOp Div Add Subscript Index UnaryOp USub Load"
_PURE = "path join dirname abspath realpath normpath Path parent parents resolve absolute joinpath"
_SCRIPTS = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))


class OwnFiles(NamedTuple):
    """Files of a model besides its own.

    ``roots``: folders that it imports from; ``package``: that of its file, "" if it is in none;
    ``modules``: path of each module by name."""

    roots: List[str]
    package: str
    modules: Dict[str, str]

    def reserved(self) -> List[str]:
        """Return the names among them that packages of Framebench have."""
        names = {name.partition(".")[0] for name in self.modules}
        taken = os.path.join(_SCRIPTS, "{}", "__init__.py")
        return sorted(name for name in names if os.path.isfile(taken.format(name)))

    def digests(self) -> Dict[str, str]:
        """Return the SHA-256 of each module by name. Raises OSError."""
        return {
            name: hashlib.sha256(bounded.read_bytes(path)).hexdigest()
            for name, path in sorted(self.modules.items())
        }


class _Source(NamedTuple):
    imports: List[str]
    roots: List[str]


def own_files(path: str, text: str) -> OwnFiles:
    """Return the files that the model ``text`` in ``path`` imports, directly or not, wherever an
    import statement stands: from its folder, from the folder of its outermost package, and from
    folders that it adds to ``sys.path``."""
    path = os.path.realpath(path)
    folder = root = os.path.dirname(path)
    levels = max((n.level or 0 for n in _nodes(text) if isinstance(n, ast.ImportFrom)), default=0)
    package: List[str] = []
    while os.path.isfile(os.path.join(root, "__init__.py")) or len(package) < levels:
        root, name = os.path.split(root)
        package.insert(0, name)
    sources = {"": _source(path, text, package)}
    modules: Dict[str, str] = {}
    roots = [folder, root]
    while True:
        roots += [found for source in sources.values() for found in source.roots]
        roots = list(dict.fromkeys(roots))
        names = sorted({name for source in sources.values() for name in source.imports})
        modules = dict(pair for name in names for pair in _located(name, roots))
        new = [name for name in modules if name not in sources]
        if not new:
            return OwnFiles(roots, ".".join(package), modules)
        for name in new:
            is_package = os.path.basename(modules[name]) == "__init__.py"
            parts = name.split(".")
            sources[name] = _source(modules[name], None, parts if is_package else parts[:-1])


def _source(path: str, text: Any, package: Sequence[str]) -> _Source:
    try:
        nodes = _nodes(bounded.read_text(path) if text is None else text)
        return _Source([*_imports(nodes, package)], [*_added(nodes, path)])
    except (OSError, ValueError, SyntaxError, RecursionError, MemoryError):
        return _Source([], [])  # not Python: importing it says why


def _nodes(text: str) -> List[ast.AST]:
    return [*ast.walk(ast.parse(text))]


def _imports(nodes: Sequence[ast.AST], package: Sequence[str]) -> Iterator[str]:
    """Yield the absolute names that may be modules. ``package``: that relative names begin at."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _base(package, node.level or 0) + ([node.module] if node.module else [])
            yield from (".".join([*base, alias.name]) for alias in node.names)
        elif isinstance(node, ast.Call) and node.args:
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            value = _value(node.args[0], {})
            if name in ("import_module", "__import__") and isinstance(value, str):
                module = value.lstrip(".")
                yield ".".join([*_base(package, len(value) - len(module)), module])


def _base(package: Sequence[str], level: int) -> List[str]:
    return list(package[: len(package) - level + 1]) if level else []


def _added(nodes: Sequence[ast.AST], path: str) -> Iterator[str]:
    """Yield the folders that a file adds to ``sys.path``, where their paths are written out."""
    known: Dict[str, Any] = {"os": os, "path": os.path, "osp": os.path, "pathlib": pathlib}
    known.update(Path=pathlib.Path, str=str, __file__=path)
    for node in nodes:
        targets = getattr(node, "targets", [getattr(node, "target", None)])
        if isinstance(node, ast.Assign) and isinstance(targets[0], ast.Name):
            known[targets[0].id] = _value(node.value, known)
        given: List[Any] = []
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            adds = node.func.attr in ("insert", "append", "extend") and _is_path(node.func.value)
            given = node.args if adds or node.func.attr == "addsitedir" else []
        elif isinstance(node, (ast.Assign, ast.AugAssign)) and _is_path(targets[0]):
            given = [node.value]
        for part in (inner for entry in given for inner in _parts(entry)):
            value = _value(part, known)
            if isinstance(value, (str, pathlib.Path)) and os.path.isdir(value):
                found = os.path.realpath(value)
                if not {"site-packages", "dist-packages"} & {*found.split(os.sep)}:
                    yield found


def _is_path(node: Any) -> bool:
    """Return whether an expression is ``sys.path``, or a part of it."""
    node = node.value if isinstance(node, ast.Subscript) else node
    of = node.value if isinstance(node, ast.Attribute) and node.attr == "path" else None
    return isinstance(of, ast.Name) and of.id == "sys"


def _parts(node: Any) -> Iterator[Any]:
    """Yield the entries of a list, or of a sum of lists; any other expression itself."""
    if isinstance(node, (ast.List, ast.Tuple)):
        yield from node.elts
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        yield from (*_parts(node.left), *_parts(node.right))
    else:
        yield node


def _value(node: ast.expr, known: Dict[str, Any]) -> Any:
    """Return the value of an expression of paths and constants; None for any other."""
    for inner in ast.walk(node):
        kind, name = type(inner).__name__, getattr(inner, "id", "str")
        if kind not in [*_NODES.split(), "keyword"] or name not in {*known, "str"}:
            return None
        if isinstance(inner, ast.Attribute) and inner.attr not in _PURE.split():
            return None
    try:
        return eval(compile(ast.Expression(node), "", "eval"), {"__builtins__": {}}, known)
    except Exception:
        return None


def _located(name: str, roots: Sequence[str]) -> Iterator[Tuple[str, str]]:
    """Yield name and path of a module and of its packages, as far as they are in ``roots``; a
    package without ``__init__.py`` has no file of its own."""
    places, parts = list(roots), name.split(".")
    for count, part in enumerate(parts, 1):
        bases = [os.path.join(place, part) for place in places]
        files = [(base, file) for base in bases for file in _files(base)]
        if files:
            yield ".".join(parts[:count]), files[0][1]
        places = [files[0][0]] if files else [base for base in bases if os.path.isdir(base)]


def _files(base: str) -> List[str]:
    names = [os.path.join(base, "__init__.py"), f"{base}.py", f"{base}.so"]
    return [*filter(os.path.isfile, names), *glob.glob(f"{glob.escape(base)}.*.so")]
