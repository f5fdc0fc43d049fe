"""SuperBench's criteria: Python's lambdas, of which arithmetic and comparisons are read. Nothing of
a file is ever run."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

ALLOWED = (
    "a lambda of one name, made of it, numbers, True, False, + - * /, comparisons, and, or, not, "
    '.. if .. else .., bool(..), abs(..) and, of several rules, label["NAME"]'
)
#: More nodes than any rule has.
_MOST = 500

_OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Not: operator.not_,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_CALLS: dict[str, Callable[[Any], Any]] = {"bool": bool, "abs": abs}


class Unreadable(ValueError):
    """What is no such lambda."""


def criterion(text: str) -> Callable[[Any], bool]:
    """Whether a number, or a mapping from rules to numbers, meets it. Raises Unreadable for what is
    none of ALLOWED."""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise Unreadable(text) from None
    if not isinstance(tree, ast.Lambda) or sum(1 for _ in ast.walk(tree)) > _MOST:
        raise Unreadable(text)
    arguments = tree.args
    others = (*arguments.posonlyargs, *arguments.kwonlyargs, *arguments.defaults)
    if len(arguments.args) != 1 or others or arguments.vararg or arguments.kwarg:
        raise Unreadable(text)
    meaning = _read(tree.body, arguments.args[0].arg, text)

    def meets(value: Any) -> bool:
        try:
            return bool(meaning(value))
        except ZeroDivisionError:
            return False

    return meets


def names(text: str) -> list[str]:
    """Those of the rules whose labels it asks for."""
    return [
        str(node.slice.value)
        for node in ast.walk(ast.parse(text.strip(), mode="eval"))
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant)
    ]


def _read(node: ast.expr, name: str, text: str) -> Callable[[Any], Any]:
    def read(one: ast.expr) -> Callable[[Any], Any]:
        return _read(one, name, text)

    match node:
        case ast.Constant(value=bool() | int() | float() as constant):
            return lambda _: constant
        case ast.Name(id=found) if found == name:
            return lambda value: value
        case ast.Subscript(value=ast.Name(id=found), slice=ast.Constant(value=str() as label)) if (
            found == name
        ):
            return lambda value: _of_label(value, label)
        case ast.UnaryOp(op=sign, operand=inner) if type(sign) in _OPERATORS:
            return _applied(_OPERATORS[type(sign)], read(inner))
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _OPERATORS:
            return _applied(_OPERATORS[type(sign)], read(left), read(right))
        case ast.Compare(left=left, ops=[sign], comparators=[right]) if type(sign) in _OPERATORS:
            return _applied(_OPERATORS[type(sign)], read(left), read(right))
        case ast.BoolOp(op=sign, values=parts):
            every = all if isinstance(sign, ast.And) else any
            several = [read(part) for part in parts]
            return lambda value: every(one(value) for one in several)
        case ast.IfExp(test=test, body=body, orelse=orelse):
            asked, then, other = read(test), read(body), read(orelse)
            return lambda value: then(value) if asked(value) else other(value)
        case ast.Call(func=ast.Name(id=called), args=[inner], keywords=[]) if called in _CALLS:
            return _applied(_CALLS[called], read(inner))
    raise Unreadable(text)


def _applied(what: Callable[..., Any], *parts: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: what(*(part(value) for part in parts))


def _of_label(value: Any, label: str) -> Any:
    return value.get(label, 0) if isinstance(value, Mapping) else 0
