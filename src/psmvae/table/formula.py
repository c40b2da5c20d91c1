"""Formulas of derived columns: arithmetic on columns, evaluated without running code."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psmvae.table.errors import FormulaError
from psmvae.table.wording import quoted

Floats = NDArray[np.float64]

_MAX_LENGTH, _MAX_DEPTH = 1000, 100
_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
_SIGNS: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
}
_FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "log": np.log,
    "log10": np.log10,
    "log2": np.log2,
    "exp": np.exp,
    "sqrt": np.sqrt,
    "abs": np.abs,
}
# functions of two arguments or more
_REDUCTIONS: dict[str, Callable[[Any, Any], Any]] = {"min": np.minimum, "max": np.maximum}
_ALLOWED = (
    "a formula has column names, numbers, + - * / ** and parentheses, and the functions "
    f"{', '.join([*_FUNCTIONS, *_REDUCTIONS])}; a name with other characters is written `in "
    "backticks`"
)
_QUOTED = re.compile(r"`([^`]+)`")


@dataclass(frozen=True)
class Formula:
    """A formula of the columns `names`; call it with their values ``(row,)``."""

    text: str
    names: tuple[str, ...]
    tree: ast.expr
    # names of columns by how they are spelled in the tree
    spelled: Mapping[str, str]

    def __call__(self, values: Mapping[str, Floats]) -> Floats:
        """Return the result ``(row,)``, NaN where a column is missing."""
        columns = {alias: values[name] for alias, name in self.spelled.items()}
        with np.errstate(all="ignore"):
            result = evaluate_arithmetic(self.tree, columns)
        return np.asarray(result, dtype=np.float64)


def parse_formula(column: str, text: Any) -> Formula:
    """Parse the formula of a derived column; raise `FormulaError` for what is not arithmetic."""
    if not isinstance(text, str) or not text.strip() or len(text) > _MAX_LENGTH:
        raise FormulaError(column, str(text)[:80], "it is not the text of a formula", _ALLOWED)
    try:
        tree, original = read_expression(text)
        check_arithmetic(tree)
    except EXPRESSION_ERRORS as error:
        raise FormulaError(column, text, reason_of(error), _ALLOWED) from error
    spelled = spelled_names(tree, original)
    if not spelled:
        raise FormulaError(column, text, "it names no column", _ALLOWED)
    return Formula(text, tuple(spelled.values()), tree, spelled)


class NotAllowedError(ValueError):
    """A part of an expression that is not allowed."""


# what `ast.parse` and a check of its tree can raise for a bad text
EXPRESSION_ERRORS = (SyntaxError, ValueError, RecursionError, MemoryError)


def read_expression(text: str) -> tuple[ast.expr, dict[str, str]]:
    """Parse an expression; return its tree, and the names in backticks by their aliases in it."""
    quoted_names = dict.fromkeys(_QUOTED.findall(text))
    aliases = {name: f"quoted_column_{k}" for k, name in enumerate(quoted_names)}
    plain = _QUOTED.sub(lambda match: aliases[match[1]], text)
    plain = plain.strip()
    tree = ast.parse(plain, mode="eval").body
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            # Python normalises identifiers, so that a decomposed é would be another column
            node.id = ast.get_source_segment(plain, node) or node.id
    return tree, {alias: name for name, alias in aliases.items()}


def spelled_names(tree: ast.expr, original: Mapping[str, str]) -> dict[str, str]:
    """Return the names of the columns of a tree, by how they are spelled in it."""
    nodes = list(ast.walk(tree))
    functions = {_function_name(node) for node in nodes if isinstance(node, ast.Call)}
    found = dict.fromkeys(node.id for node in nodes if isinstance(node, ast.Name))
    return {name: original.get(name, name) for name in found if name not in functions}


def reason_of(error: BaseException) -> str:
    """Word one of `EXPRESSION_ERRORS`."""
    return str(error) if isinstance(error, NotAllowedError) else "it cannot be parsed"


def check_arithmetic(node: ast.expr, depth: int = 0) -> None:
    """Raise for a node that is not arithmetic, or nested too deeply to be evaluated."""
    if depth > _MAX_DEPTH:
        raise NotAllowedError(f"it is nested more than {_MAX_DEPTH} levels deep")
    match node:
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            parts = [left, right]
        case ast.UnaryOp(op=sign, operand=operand) if type(sign) in _SIGNS:
            parts = [operand]
        case ast.Call(args=arguments) if _is_function(node):
            parts = arguments
        case ast.Name():
            parts = []
        case ast.Constant(value=value) if type(value) in (int, float):
            parts = []
        case _:
            raise NotAllowedError(f"{shown(node)} is not arithmetic")
    for part in parts:
        check_arithmetic(part, depth + 1)


def _is_function(node: ast.Call) -> bool:
    name, n = _function_name(node), len(node.args)
    if node.keywords or any(isinstance(one, ast.Starred) for one in node.args):
        return False
    if name in _FUNCTIONS or name in _REDUCTIONS:
        if n >= 2 if name in _REDUCTIONS else n == 1:
            return True
        needed = "two arguments or more" if name in _REDUCTIONS else "one argument"
        raise NotAllowedError(f"{name} takes {needed}, got {n}")
    return False


def _function_name(node: ast.Call) -> str:
    return node.func.id if isinstance(node.func, ast.Name) else ""


def shown(node: ast.expr) -> str:
    """Return the start of the text of a node."""
    return quoted([ast.unparse(node)[:40]])


def evaluate_arithmetic(node: ast.expr, columns: Mapping[str, Floats]) -> Any:
    """Return the value of a node that `check_arithmetic` accepted; all numbers are float64."""
    match node:
        case ast.BinOp(left=left, op=op, right=right):
            return _OPERATORS[type(op)](
                evaluate_arithmetic(left, columns), evaluate_arithmetic(right, columns)
            )
        case ast.UnaryOp(op=sign, operand=operand):
            return _SIGNS[type(sign)](evaluate_arithmetic(operand, columns))
        case ast.Call(args=arguments):
            values = [evaluate_arithmetic(one, columns) for one in arguments]
            name = _function_name(node)
            if name in _REDUCTIONS:
                return reduce(_REDUCTIONS[name], values)
            return _FUNCTIONS[name](values[0])
        case ast.Constant(value=value):
            return np.float64(value)  # type: ignore[arg-type]
    return columns[node.id]  # type: ignore[attr-defined]
