"""Which formulas are evaluated: patsy evaluates the factors of a formula as Python code."""

from __future__ import annotations

import ast
from typing import Any

from psmvae.cli.terminal import UsageError

_MAX_LENGTH, _MAX_DEPTH = 10_000, 50
# Functions of patsy, their contrasts, and functions of numbers.
_FUNCTIONS = frozenset(
    [
        "C",
        "Q",
        "I",
        "center",
        "scale",
        "standardize",
        "bs",
        "cr",
        "cc",
        "te",
        "Treatment",
        "Poly",
        "Sum",
        "Helmert",
        "Diff",
        "log",
        "exp",
        "sqrt",
        "abs",
    ]
)
_NUMPY = frozenset(
    [
        "log",
        "log2",
        "log10",
        "log1p",
        "exp",
        "exp2",
        "expm1",
        "sqrt",
        "cbrt",
        "square",
        "power",
        "reciprocal",
        "abs",
        "absolute",
        "sign",
        "minimum",
        "maximum",
        "clip",
        "where",
        "floor",
        "ceil",
        "rint",
        "round",
        "trunc",
        "sin",
        "cos",
        "tan",
        "arcsin",
        "arccos",
        "arctan",
        "sinh",
        "cosh",
        "tanh",
        "arctan2",
        "hypot",
        "isnan",
        "logical_not",
        "logical_and",
        "logical_or",
    ]
)
_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow)
_OPERATORS = (*_ARITHMETIC, ast.BitAnd, ast.BitOr)
_COMPARISONS = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_CONSTANTS = (int, float, str, bool, type(None))
_NAMES = (
    "a column whose name is not one of Python, as with a blank, is written Q('blood pressure'), "
    "and all columns are written out, without a dot"
)
_ALLOWED = (
    "a formula has names of columns, numbers, texts, arithmetic, comparisons, the functions "
    f"{', '.join(sorted(_FUNCTIONS))}, and np.log and other functions of numbers"
)


def parsed_formula(formula: str) -> Any:
    """Return patsy's description of a formula; raise UsageError unless all of it is allowed.

    Parsing evaluates nothing.
    """
    import patsy

    if len(formula) > _MAX_LENGTH:
        raise UsageError(f"--formula has {len(formula):,} characters, at most {_MAX_LENGTH:,}")
    described = patsy.ModelDesc.from_formula(formula)
    for term in [*described.lhs_termlist, *described.rhs_termlist]:
        for factor in term.factors:
            try:
                _check(ast.parse(factor.code, mode="eval").body)
            except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
                reason = str(error)
                if type(error) is not ValueError:
                    reason = f"{factor.code[:60]!r} cannot be parsed; {_NAMES}"
                raise UsageError(f"--formula {formula!r}: {reason}; {_ALLOWED}") from error
    return described


def _check(node: ast.expr, depth: int = 0) -> None:
    """Raise ValueError for a node that is not allowed."""
    if depth > _MAX_DEPTH:
        raise ValueError(f"it is nested more than {_MAX_DEPTH} levels deep")
    parts: list[ast.expr]
    match node:
        case ast.BinOp(left=left, op=op, right=right) if isinstance(op, _OPERATORS):
            parts = [left, right]
        case ast.UnaryOp(operand=operand):
            parts = [operand]
        case ast.Compare(left=left, ops=ops, comparators=others) if all(
            isinstance(op, _COMPARISONS) for op in ops
        ):
            parts = [left, *others]
        case ast.Call(args=arguments, keywords=keywords) if _is_allowed(node):
            parts = [*arguments, *(keyword.value for keyword in keywords)]
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            pass
        case ast.Name(id=name) if not name.startswith("__"):
            parts = []
        case ast.Constant(value=value) if type(value) in _CONSTANTS:
            parts = []
        case _:
            raise ValueError(f"{ast.unparse(node)[:60]!r} is not allowed")
    for part in parts:
        _check(part, depth + 1)


def _is_allowed(node: ast.Call) -> bool:
    """Whether a call is of a known function, by its own name or as ``np.name``."""
    # **mapping has no name
    if any(keyword.arg is None for keyword in node.keywords):
        return False
    match node.func:
        case ast.Name(id=name):
            return name in _FUNCTIONS
        case ast.Attribute(value=ast.Name(id="np"), attr=name):
            return name in _NUMPY
    return False
