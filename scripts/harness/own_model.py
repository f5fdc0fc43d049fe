"""A user's own model: a Python file that makes it, or a name in a model library.

This module finds the properties that are known before the framework is imported. Files are parsed,
not run.
"""

from __future__ import annotations

import ast
import hashlib
import os
import re
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

from core import bounded

#: Model libraries, with their framework.
LIBRARIES = {"torchvision": "pytorch", "timm": "pytorch", "keras": "tensorflow"}
#: Definition of users' models in a framework. Each model in ``scripts/models`` has its own
#: definition.
DEFINITION = "own_model"
#: Largest file in bytes; ranks get its whole content.
LARGEST = 256 * 1024
#: Default optimizer of a file without one.
OPTIMIZER = {"optimizer": "sgd", "learning_rate": 0.01, "momentum": 0.9, "weight_decay": 0.0}

ALLOWED = f"the path of a Python file, or {':NAME, '.join(LIBRARIES)}:NAME"
_NAME = re.compile(r"[A-Za-z0-9_.-]+")
_FRAMEWORKS = os.path.join(
    os.path.dirname(os.path.dirname(os.path.realpath(__file__))), "frameworks"
)


class NotAModel(ValueError):
    """Raised for a text that does not name a user's model; ``found`` and ``allowed`` form the
    message."""

    def __init__(self, found: str, allowed: str = ALLOWED) -> None:
        super().__init__(f"found {found}; allowed: {allowed}")
        self.found, self.allowed = found, allowed


def library(text: str) -> Optional[str]:
    """Return the library of a model name; None for a path."""
    name, separator, _ = text.partition(":")
    return name if separator and name in LIBRARIES else None


def is_own(text: str) -> bool:
    """Return whether ``text`` names a user's own model, not a model config."""
    return library(text) is not None or text.endswith(".py")


def absolute(text: str) -> str:
    """Return ``text`` as an absolute path, if it is a path."""
    return text if library(text) else os.path.abspath(text)


def model_config(text: str) -> Dict[str, Any]:
    """Return the model config of a user's own model.

    Its ``name`` is the file's, followed by eight digits of the digest of all its files.
    Raises :class:`NotAModel`.
    """
    own = library(text)
    if own:
        if not _NAME.fullmatch(text.partition(":")[2]):
            raise NotAModel(repr(text), f"{own}:NAME, of letters, digits, '_', '-' and '.'")
        name, declaration = text, _own(own, LIBRARIES[own], text, None)
    elif text.endswith(".py"):
        stem, declaration = _file_declaration(text)
        name = f"{stem}@{declaration['sha256'][:8]}"
    else:
        raise NotAModel(repr(text))
    return {
        "name": name,
        "title": name,
        "unit": "samples/s",
        "definition": DEFINITION,
        "own": declaration,
        "trainable_parameters": None,  # any number is allowed
        "forward_multiply_adds": {},  # unknown
        "sequence_lengths": [],
        "inputs": [],  # the model makes its own batch
        "hyperparameters": OPTIMIZER,
        "verification": {"batch_per_device": 8},
    }


def _own(
    library: str,
    framework: str,
    source: str,
    text: Optional[str],
    modules: Optional[Dict[str, str]] = None,
    roots: Sequence[str] = (),
    package: str = "",
) -> Dict[str, Any]:
    """Return the declaration of a model.

    ``modules``: paths of the modules next to the model's file, by name; ``roots``: folders that
    they are imported from; ``package``: the file's package, "" if it has none. ``files`` of the
    declaration: digests of the modules, by name; ``sha256``: SHA-256 of its own file and, if there
    are any, of their names and digests. Raises OSError."""
    files = {
        name: hashlib.sha256(bounded.read_bytes(path)).hexdigest()
        for name, path in sorted((modules or {}).items())
    }
    lines = "".join(f"\n{name} {digest}" for name, digest in files.items())
    digest = None if text is None else hashlib.sha256((text + lines).encode()).hexdigest()
    return {
        "library": library,
        "framework": framework,
        "source": source,
        "sha256": digest,
        "text": text,
        "files": files,
        "modules": modules or {},
        "roots": list(roots),
        "package": package,
    }


def _content(path: str, stem: str) -> str:
    """Return the text of a file; ``stem``: its model's name."""
    if not _NAME.fullmatch(stem):
        raise NotAModel(repr(path), "a name of letters, digits, '_', '-' and '.' alone")
    try:
        return bounded.read_bytes(path, LARGEST).decode("utf-8")
    except OSError as error:
        raise NotAModel(f"{path!r}: {error.strerror}") from None
    except ValueError as error:  # the path contains NUL, or the file is not text
        raise NotAModel(f"{path!r}: {error}") from None


def _file_declaration(path: str) -> Tuple[str, Dict[str, Any]]:
    name = os.path.splitext(os.path.basename(path))[0]
    text = _content(path, name)
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError) as error:
        line = f", line {error.lineno}" if isinstance(error, SyntaxError) else ""
        problem = error.msg if isinstance(error, SyntaxError) else error
        raise NotAModel(f"{path!r}, which is not Python{line}: {problem}") from None
    framework = _framework(tree, path)
    if not any(isinstance(node, ast.FunctionDef) and node.name == "make" for node in tree.body):
        raise NotAModel(
            f"{path!r} without make",
            "a function make at its top level, which returns model, (inputs, targets), loss",
        )
    try:
        return name, _own("", framework, path, text, *_modules_beside(path, text))
    except (OSError, ValueError) as error:
        raise NotAModel(f"{path!r}, which imports a module that cannot be read: {error}") from None


def _framework(tree: ast.Module, path: str) -> str:
    known = ", ".join(_known())
    for node in tree.body:
        if not isinstance(node, ast.Assign):
            continue
        if any(getattr(target, "id", "") == "FRAMEWORK" for target in node.targets):
            try:
                value = ast.literal_eval(node.value)
            except ValueError:  # the value is computed
                value = None
            if value not in _known():
                raise NotAModel(f"{path!r} with FRAMEWORK = {value!r}", f"one of {known}")
            return str(value)
    raise NotAModel(f"{path!r} without FRAMEWORK", f'FRAMEWORK = "..", one of {known}')


def _known() -> Any:
    """Return the frameworks that run users' own models."""
    return [
        name
        for name in sorted(os.listdir(_FRAMEWORKS))
        if os.path.isfile(os.path.join(_FRAMEWORKS, name, "models", f"{DEFINITION}.py"))
    ]


def _modules_beside(path: str, text: str) -> Tuple[Dict[str, str], List[str], str]:
    """Find the packages of the model ``text`` in ``path``, and all modules next to it that are
    imported, directly or by such modules. Return their paths by name, the folders that they are
    imported from (the file's and its outermost package's), and the package of the file."""
    folder = root = os.path.dirname(os.path.realpath(path))
    package: List[str] = []
    while os.path.isfile(os.path.join(root, "__init__.py")):
        root, name = os.path.split(root)
        package.insert(0, name)
    roots = list(dict.fromkeys([folder, root]))
    modules: Dict[str, str] = {}
    names = [".".join(package), *_imports(text, package)]
    while names:
        for name, file in _located(names.pop(), roots):
            if name not in modules:
                modules[name] = file
                parts = name.split(".")
                is_package = os.path.basename(file) == "__init__.py"
                names += _imports(bounded.read_text(file), parts if is_package else parts[:-1])
    return modules, roots, ".".join(package)


def _imports(text: str, package: Sequence[str]) -> Iterator[str]:
    """Yield the absolute names that a file imports; some may not be modules. ``package``:
    where relative names begin."""
    try:
        nodes = [*ast.walk(ast.parse(text))]
    except (SyntaxError, ValueError):  # importing the model reports the error
        return
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = list(package[: len(package) - node.level + 1]) if node.level else []
            base += [node.module] if node.module else []
            yield from (".".join([*base, alias.name]) for alias in node.names)


def _located(name: str, roots: Sequence[str]) -> Iterator[Tuple[str, str]]:
    """Yield name and path of a module in one of ``roots``, and of its packages."""
    parts = name.split(".")
    for count in range(1, len(parts) + 1):
        bases = [os.path.join(root, *parts[:count]) for root in roots]
        files = [f for b in bases for f in (os.path.join(b, "__init__.py"), f"{b}.py")]
        file = next(filter(os.path.isfile, files), None)
        if file:
            yield ".".join(parts[:count]), file
