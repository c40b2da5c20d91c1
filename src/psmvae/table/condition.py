"""Conditions that select rows: comparisons of columns, evaluated without running code."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psmvae.table.cells import Cells
from psmvae.table.errors import ConditionError
from psmvae.table.formula import (
    EXPRESSION_ERRORS,
    NotAllowedError,
    check_arithmetic,
    evaluate_arithmetic,
    read_expression,
    reason_of,
    shown,
    spelled_names,
)
from psmvae.table.wording import quoted

Bools = NDArray[np.bool_]

_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
# comparisons that texts have, too
_EQUALITIES = (ast.Eq, ast.NotEq)
_ALLOWED = (
    "a condition compares columns with numbers or 'texts' by == != < <= > >= and in, such as "
    "\"arm == 'treated' and age > 60\"; a name with other characters is written `in backticks`"
)


@dataclass(frozen=True)
class Condition:
    """A condition on the columns `names`; call it with their cells."""

    text: str
    names: tuple[str, ...]
    tree: ast.expr
    # names of columns by how they are spelled in the tree
    spelled: Mapping[str, str]

    def __call__(self, cells: Mapping[str, Cells]) -> Bools:
        """Return which rows meet the condition ``(row,)``; arbitrary where a column is missing."""
        columns = {alias: _values(cells[name]) for alias, name in self.spelled.items()}
        try:
            with np.errstate(all="ignore"):
                return np.asarray(_truth(self.tree, columns), dtype=bool)
        except NotAllowedError as error:
            raise ConditionError(self.text, str(error), _ALLOWED) from error


def parse_condition(text: Any, columns: Sequence[str]) -> Condition:
    """Parse a condition on a table with these columns; raise `ConditionError` if it is none."""
    if not isinstance(text, str) or not text.strip():
        raise ConditionError(str(text)[:80], "it is not the text of a condition", _ALLOWED)
    try:
        tree, original = read_expression(text)
        _check(tree)
    except EXPRESSION_ERRORS as error:
        raise ConditionError(text, reason_of(error), _ALLOWED) from error
    spelled = spelled_names(tree, original)
    unknown = [name for name in spelled.values() if name not in columns]
    if unknown:
        reason = f"there is no column {quoted(unknown)} in the table"
        raise ConditionError(text, reason, f"the columns are {quoted(columns)}")
    if not spelled:
        raise ConditionError(text, "it names no column", _ALLOWED)
    return Condition(text, tuple(spelled.values()), tree, spelled)


def _check(node: ast.expr) -> None:
    """Raise for a node that is not a condition."""
    match node:
        case ast.BoolOp(values=values):
            parts = values
        case ast.BinOp(left=left, op=ast.BitAnd() | ast.BitOr(), right=right):
            parts = [left, right]
        case ast.UnaryOp(op=ast.Not() | ast.Invert(), operand=operand):
            parts = [operand]
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            _check_operand(left)
            for op, right in zip(ops, comparators, strict=True):
                if type(op) in _COMPARISONS:
                    _check_operand(right)
                elif not isinstance(op, ast.In | ast.NotIn) or _constants(right) is None:
                    raise NotAllowedError(f"{shown(node)} is not a comparison")
            return
        case ast.Name():
            return
        case _:
            raise NotAllowedError(f"{shown(node)} is not a comparison")
    for part in parts:
        _check(part)


def _check_operand(node: ast.expr) -> None:
    if not (isinstance(node, ast.Constant) and isinstance(node.value, str | bool)):
        check_arithmetic(node)


def _constants(node: ast.expr) -> list[Any] | None:
    """Return the values of a list of texts and numbers, None for anything else."""
    if not isinstance(node, ast.List | ast.Tuple | ast.Set):
        return None
    values = [ast.literal_eval(one) for one in node.elts if _is_literal(one)]
    return values if len(values) == len(node.elts) else None


def _is_literal(node: ast.expr) -> bool:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        node = node.operand
        return isinstance(node, ast.Constant) and type(node.value) in (int, float)
    return isinstance(node, ast.Constant) and isinstance(node.value, str | bool | int | float)


def _values(cells: Cells) -> NDArray[Any]:
    """Return texts as they are, numbers and bools as float64, and no cells as NaN."""
    return cells.raw if cells.family == "string" else cells.values()


def _truth(node: ast.expr, columns: Mapping[str, NDArray[Any]]) -> Any:
    """Return where a node that `_check` accepted is true."""
    match node:
        case ast.BoolOp(op=op, values=values):
            join = np.logical_and if isinstance(op, ast.And) else np.logical_or
            return reduce(join, [_truth(one, columns) for one in values])
        case ast.BinOp(left=left, op=bit, right=right):
            join = np.logical_and if isinstance(bit, ast.BitAnd) else np.logical_or
            return join(_truth(left, columns), _truth(right, columns))
        case ast.UnaryOp(operand=operand):
            return np.logical_not(_truth(operand, columns))
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            sides = [left, *comparators]
            steps = zip(sides, ops, sides[1:], strict=False)
            return reduce(np.logical_and, [_compare(*step, columns) for step in steps])
        case ast.Name(id=name):
            return _as_bools(name, columns[name])
    raise NotAllowedError(f"{shown(node)} is not a comparison")


def _compare(
    left: ast.expr, op: ast.cmpop, right: ast.expr, columns: Mapping[str, NDArray[Any]]
) -> Any:
    one = _operand(left, columns)
    if isinstance(op, ast.In | ast.NotIn):
        found = [_equal(one, value, left, right) for value in _constants(right) or []]
        inside = reduce(np.logical_or, found, np.zeros(np.shape(one), dtype=bool))
        return inside if isinstance(op, ast.In) else ~inside
    other = _operand(right, columns)
    if isinstance(op, _EQUALITIES):
        equal = _equal(one, other, left, right)
        return equal if isinstance(op, ast.Eq) else np.logical_not(equal)
    if _is_text(one) or _is_text(other):
        raise NotAllowedError(f"{shown(left)} and {shown(right)} are texts, which have no order")
    return _COMPARISONS[type(op)](one, other)


def _operand(node: ast.expr, columns: Mapping[str, NDArray[Any]]) -> Any:
    if isinstance(node, ast.Constant) and isinstance(node.value, str | bool):
        return node.value
    if isinstance(node, ast.Name):
        return columns[node.id]
    texts = [one for one in ast.walk(node) if isinstance(one, ast.Name) and one.id in columns]
    if any(_is_text(columns[one.id]) for one in texts):
        raise NotAllowedError(f"{shown(node)} computes with texts")
    return evaluate_arithmetic(node, columns)


def _equal(one: Any, other: Any, left: ast.expr, right: ast.expr) -> Any:
    if _is_text(one) != _is_text(other):
        raise NotAllowedError(f"{shown(left)} and {shown(right)}: one is a text, the other is not")
    return np.equal(one, other)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, np.ndarray) and value.dtype == object)


def _as_bools(name: str, values: NDArray[Any]) -> Bools:
    if _is_text(values) or not np.isin(values[~np.isnan(values)], (0, 1)).all():
        raise NotAllowedError(f"{name!r} is compared with nothing, and is not of True and False")
    return np.asarray(values == 1)
