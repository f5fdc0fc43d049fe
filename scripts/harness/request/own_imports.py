"""Check that an environment has the imports of a user's own model, before the model is built."""

from __future__ import annotations

import ast
import difflib
import importlib
from typing import Iterator, List, Tuple

from harness import hooks
from harness.adapter.own_models import put_on_path
from harness.request import own_model
from harness.request.own_model import NotAModel

_SUGGESTIONS = 3


def check(text: str) -> None:
    """Import what the model ``text`` needs. Raises :class:`NotAModel` for failing imports."""
    hooks.install()
    declaration = own_model.model_config(text)["own"]
    if not text.endswith(".py"):
        name = declaration["source"].partition(":")[2]
        _check_name(
            text, declaration["library"], name or own_model.architecture_of(declaration["text"])
        )
        return
    put_on_path(declaration)
    tree = ast.parse(declaration["text"])
    lacking = [pair for pair in _failures(tree, text, declaration["package"]) if pair[1]]
    if lacking:
        problems = "; ".join(f"line {line}: {error}" for line, error in lacking)
        raise NotAModel(
            f"{text!r}, {problems}", "imports that its environment has, or gets by `packages`"
        )


def imports(tree: ast.AST) -> Iterator[ast.stmt]:
    """Yield the import statements of a file that always execute: none within ``try`` or ``if``."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            continue
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield node
        elif not isinstance(node, (ast.Try, ast.If)):
            yield from imports(node)


def _failures(tree: ast.AST, path: str, package: str) -> Iterator[Tuple[int, str]]:
    """Yield the line of each import, and why it fails, "" if it does not."""
    names = {"__name__": "own_model", "__package__": package}
    for node in imports(tree):
        statement = compile(ast.Module(body=[node], type_ignores=[]), path, "exec")
        try:
            exec(statement, dict(names))
        except (Exception, SystemExit) as error:
            message = " ".join(f"{type(error).__name__}: {error}".split())
            yield node.lineno, message
        else:
            yield node.lineno, ""


def _check_name(text: str, library: str, model: str) -> None:
    try:
        known = _names(library)
    except (Exception, SystemExit) as error:
        message = " ".join(f"{type(error).__name__}: {error}".split())
        raise NotAModel(
            f"{text!r}, but importing {library} fails ({message})", "one that works"
        ) from None
    # timm's names may end in a point and the name of the weights
    if model not in known and model.partition(".")[0] not in known:
        near = difflib.get_close_matches(model, known, _SUGGESTIONS)
        meant = f" (did you mean {', '.join(near)}?)" if near else ""
        found = text if model in text else f"{text}: {model}"
        raise NotAModel(f"{found!r}{meant}", f"one of the {len(known)} names of {library}")


def _names(library: str) -> List[str]:
    if library == "keras":
        applications = vars(importlib.import_module("keras.applications"))
        return sorted(name for name in applications if name[0].isupper())
    if library != own_model.TRANSFORMERS:
        module = importlib.import_module(
            "torchvision.models" if library == "torchvision" else library
        )
        return [str(name) for name in module.list_models()]
    auto = importlib.import_module("transformers.models.auto.modeling_auto")
    mappings = [
        mapping
        for name, mapping in vars(auto).items()
        if name.startswith("MODEL") and name.endswith("MAPPING_NAMES")
    ]
    classes = [some for mapping in mappings for some in mapping.values()]
    known = {name for some in classes for name in ([some] if isinstance(some, str) else some)}
    return sorted(known)
