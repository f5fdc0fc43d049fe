"""Criteria of SuperBench: Python lambdas with arithmetic and comparisons, parsed but never
executed."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

ALLOWED = (
    "a lambda of one name, made of it, numbers, True, False, + - * / // %, comparisons, and, or, "
    "not, .. if .. else .., bool(..), abs(..), min(..), max(..), sum(..), len(..) and, of several "
    'rules, label["NAME"], label["NAME"].values(), label["NAME"]["METRIC"]; of a single value its '
    "result is True or False"
)
#: Largest number of syntax nodes; more than any rule has.
_MOST = 500

_OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
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
_CALLS: dict[str, Callable[..., Any]] = {
    "bool": bool, "abs": abs, "min": min, "max": max, "sum": sum, "len": len,
}  # fmt: skip
#: Errors for a missing figure. SuperBench counts the rule as kept then.
_MISSING = (ArithmeticError, LookupError, TypeError, ValueError)


class Unreadable(ValueError):
    """Text that is no allowed lambda."""


def of_value(text: str) -> Callable[[float], bool]:
    """Return the criterion for a single value. Raises Unreadable for anything outside ALLOWED."""
    meaning = _criterion(text)
    try:
        if not isinstance(meaning(0), bool):
            raise Unreadable(text)
    except ArithmeticError:
        pass  # the criterion divides by the value
    except (LookupError, TypeError, ValueError):
        raise Unreadable(text) from None

    def meets(value: float) -> bool:
        try:
            return bool(meaning(value))
        except ArithmeticError:
            return False

    return meets


def of_labels(text: str) -> Callable[[Mapping[str, Any]], bool]:
    """Return the criterion for stored results of several rules.

    A result that is neither True nor False breaks no rule. Raises Unreadable for anything outside
    ALLOWED.
    """
    meaning = _criterion(text)

    def meets(labels: Mapping[str, Any]) -> bool:
        try:
            return meaning(labels) is True
        except _MISSING:
            return False

    return meets


def _criterion(text: str) -> Callable[[Any], Any]:
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
    return _read(tree.body, arguments.args[0].arg, text)


def names(text: str) -> list[str]:
    """Return the rules whose labels a criterion reads."""
    return [
        str(node.slice.value)
        for node in ast.walk(ast.parse(text.strip(), mode="eval"))
        if isinstance(node, ast.Subscript)
        and isinstance(node.value, ast.Name)
        and isinstance(node.slice, ast.Constant)
    ]


def _read(node: ast.expr, name: str, text: str) -> Callable[[Any], Any]:
    def read(expr: ast.expr) -> Callable[[Any], Any]:
        return _read(expr, name, text)

    match node:
        case ast.Constant(value=bool() | int() | float() as constant):
            return lambda _: constant
        case ast.Name(id=found) if found == name:
            return lambda value: value
        case ast.Subscript(value=inner, slice=ast.Constant(value=str() as label)):
            return _applied(operator.itemgetter(label), read(inner))
        case ast.Call(
            func=ast.Name(id=called),
            args=[ast.Call(func=ast.Attribute(value=inner, attr="values"), args=[], keywords=[])],
            keywords=[],
        ) if called in _CALLS:
            return _applied(_CALLS[called], _applied(_values, read(inner)))
        case ast.UnaryOp(op=sign, operand=inner) if type(sign) in _OPERATORS:
            return _applied(_OPERATORS[type(sign)], read(inner))
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _OPERATORS:
            return _applied(_OPERATORS[type(sign)], read(left), read(right))
        case ast.Compare(left=left, ops=signs, comparators=rest) if all(
            type(sign) in _OPERATORS for sign in signs
        ):
            return _compared(
                [_OPERATORS[type(sign)] for sign in signs], [*map(read, [left, *rest])]
            )
        case ast.BoolOp(op=sign, values=parts):
            return _joined(isinstance(sign, ast.And), [read(part) for part in parts])
        case ast.IfExp(test=test, body=body, orelse=orelse):
            asked, then, other = read(test), read(body), read(orelse)
            return lambda value: then(value) if asked(value) else other(value)
        case ast.Call(func=ast.Name(id=called), args=[_, *_] as given, keywords=[]) if (
            called in _CALLS
        ):
            return _applied(_CALLS[called], *map(read, given))
    raise Unreadable(text)


def _applied(what: Callable[..., Any], *parts: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: what(*(part(value) for part in parts))


def _compared(
    signs: Sequence[Callable[..., Any]], parts: Sequence[Callable[[Any], Any]]
) -> Callable[[Any], Any]:
    """Compare neighbours, as in 1 < x < 2."""

    def compare(value: Any) -> bool:
        found = [part(value) for part in parts]
        return all(sign(*pair) for sign, pair in zip(signs, pairwise(found), strict=True))

    return compare


def _joined(is_and: bool, parts: Sequence[Callable[[Any], Any]]) -> Callable[[Any], Any]:
    """Return the last value that Python's ``and`` or ``or`` looks at."""

    def join(value: Any) -> Any:
        result: Any = is_and
        for part in parts:
            result = part(value)
            if bool(result) is not is_and:
                break
        return result

    return join


def _values(stored: Any) -> list[Any]:
    if not isinstance(stored, Mapping):
        raise TypeError("a count has no values")
    return [*stored.values()]
