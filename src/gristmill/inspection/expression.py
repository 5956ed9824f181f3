"""Conditions on rows, written as Python expressions: `score > 0.5 and "http" in text`.

A condition is text from a command line, a keyboard or a browser. It is parsed by Python's own parser into a syntax
tree, of which a few kinds of node are understood and all others refused; what is understood becomes calls of Arrow's
functions on columns. Nothing is evaluated as Python: there is no name but those of columns, no call but `len`,
`contains` and `column`, no attribute but a field of a record, and no operator whose result can grow without bound.

Null is as in SQL: a comparison with null is null, and a row is wanted only if its condition is true.
"""

import ast
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gristmill.errors import ConfigError, nearest
from gristmill.inspection import comparisons
from gristmill.inspection.arrow_values import is_true, scalar
from gristmill.inspection.columns import Kind, of_table

MOST_CHARS = 2_000  # the parser of Python 3.11 overflows on some thousand nested brackets
MOST_NODES = 500
DEEPEST = 40
FUNCTIONS = ("len(x)", "contains(text, 'part')", "column('name')")
_INT64 = range(-(2**63), 2**63)
_ARITHMETIC = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%"}
_COMPARED = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}

Result: TypeAlias = "pa.ChunkedArray | pa.Array | pa.Scalar"


@dataclass(frozen=True)
class _Part:
    """A part of a condition: what kind of value it has, and how Arrow computes it. A literal also has its value."""

    kind: Kind
    run: Callable[[pa.Table], Result]
    literal: object = None
    is_literal: bool = False


@dataclass(frozen=True)
class Expression:
    """A condition that was checked: which columns it reads, and for which rows of a table it is true."""

    source: str
    kinds: Mapping[str, Kind]  # of the columns it reads
    _part: _Part

    def mask(self, table: pa.Table) -> NDArray[np.bool_]:
        """True where a row is wanted. The table has the columns, under their names or inside records."""
        try:
            found = self._part.run(table)
        except pa.ArrowException as error:
            raise ConfigError(f"--where {self.source!r}: expected columns Arrow can compare; got {error}") from error
        if isinstance(found, pa.Scalar):
            return np.full(len(table), found.as_py() is True)
        return is_true(found.cast(pa.bool_()))


def parse(source: str, columns: Mapping[str, Kind]) -> Expression:
    """Check a condition against the columns there are; whatever is wrong with it is a ConfigError that says so."""
    builder = _Builder(source, columns)
    part = builder.part(_syntax(source))
    if part.kind not in {"flag", "unknown"}:
        builder.refuse(f"a condition that is true or false, such as {_example(columns)}", f"a {part.kind}")
    return Expression(source, builder.used, part)


def _syntax(source: str) -> ast.expr:
    if len(source) > MOST_CHARS:
        raise ConfigError(f"--where: expected at most {MOST_CHARS:,} characters; got {len(source):,}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "\d" in a text is a warning of the parser's
            tree = ast.parse(source.strip(), mode="eval").body
    except SyntaxError as error:
        where = f" at character {error.offset}" if error.offset else ""
        raise ConfigError(f"--where {source!r}: expected a Python expression; got {error.msg}{where}") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise ConfigError(f"--where {source!r}: expected a Python expression; got {error}") from None
    _check_size(source, tree)
    return tree


def _check_size(source: str, tree: ast.expr) -> None:
    """Refuse what is nested too deeply for the recursive functions here; this one is not recursive."""
    level: list[ast.AST] = [tree]
    num_nodes = depth = 0
    while level:
        num_nodes, depth = num_nodes + len(level), depth + 1
        if num_nodes > MOST_NODES or depth > DEEPEST:
            most = f"at most {MOST_NODES} names, values and operators, {DEEPEST} deep"
            raise ConfigError(f"--where {source[:80]!r}…: expected {most}; got more")
        level = [child for node in level for child in ast.iter_child_nodes(node)]


def _example(columns: Mapping[str, Kind]) -> str:
    name, kind = next(((n, k) for n, k in columns.items() if k in {"number", "text"}), ("score", "number"))
    written = name if name.isidentifier() else f"column({name!r})"
    return f"len({written}) > 100" if kind == "text" else f"{written} > 0"


class _Builder:
    def __init__(self, source: str, columns: Mapping[str, Kind]) -> None:
        self._source, self._columns = source, columns
        self.used: dict[str, Kind] = {}

    def refuse(self, expected: str, got: str) -> NoReturn:
        raise ConfigError(f"--where {self._source!r}: expected {expected}; got {got}")

    def part(self, node: ast.expr) -> _Part:
        method = getattr(self, f"_{type(node).__name__.lower()}", None)
        if method is None:
            understood = f"names of columns, values, comparisons, and, or, not, in, arithmetic, {', '.join(FUNCTIONS)}"
            self.refuse(understood, repr(_written(node)))
        return method(node)  # type: ignore[no-any-return]

    def _constant(self, node: ast.Constant) -> _Part:
        value = node.value
        if isinstance(value, bool):
            return _literal(value, "flag")
        if isinstance(value, int) and value not in _INT64:
            self.refuse("numbers of at most 64 bits", repr(_written(node)))
        if isinstance(value, int | float):
            return _literal(value, "number")
        if isinstance(value, str):
            if any("\ud800" <= c <= "\udfff" for c in value):
                self.refuse("text that UTF-8 can hold", repr(_written(node)))
            return _literal(value, "text")
        if value is None:
            return _literal(None, "unknown")
        return self.refuse("numbers, texts, True, False or None", repr(_written(node)))

    def _name(self, node: ast.Name) -> _Part:
        return self._column(node.id)

    def _attribute(self, node: ast.Attribute) -> _Part:
        return self._column(_written(node))

    def _column(self, name: str) -> _Part:
        if name not in self._columns:
            known = ", ".join(sorted(self._columns)[:20]) or "none"
            self.refuse(f"the name of a column ({known})", f"{name!r}{nearest(name, self._columns)}")
        self.used[name] = self._columns[name]
        return _Part(self._columns[name], lambda table: of_table(table, name))

    def _call(self, node: ast.Call) -> _Part:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        counts = {"len": 1, "contains": 2, "column": 1}
        if name not in counts or node.keywords or len(node.args) != counts[name]:
            self.refuse(f"no call but {', '.join(FUNCTIONS)}", repr(_written(node)))
        if name == "column":
            argument = node.args[0]
            if not isinstance(argument, ast.Constant) or not isinstance(argument.value, str):
                self.refuse("column('name') with a name in quotes", repr(_written(node)))
            return self._column(argument.value)
        parts = [self.part(argument) for argument in node.args]
        return self._length(parts[0], node) if name == "len" else self._contains(parts[0], parts[1], node)

    def _length(self, part: _Part, node: ast.expr) -> _Part:
        if part.kind not in {"text", "list", "bytes", "unknown"} or part.is_literal:
            self.refuse("len of a column of texts or lists", repr(_written(node)))
        return _Part("number", lambda table: comparisons.length(part.run(table)))

    def _contains(self, whole: _Part, piece: _Part, node: ast.expr) -> _Part:
        if whole.kind not in {"text", "list", "unknown"} or whole.is_literal:
            self.refuse("a column of texts or lists to look into", repr(_written(node)))
        wanted = piece.literal
        if not piece.is_literal or (whole.kind == "text" and not isinstance(wanted, str)) or wanted is None:
            self.refuse("a text in quotes to look for", repr(_written(node)))
        return _Part("flag", lambda table: comparisons.contains(whole.run(table), wanted))

    def _unaryop(self, node: ast.UnaryOp) -> _Part:
        part = self.part(node.operand)
        if isinstance(node.op, ast.Not):
            self._need(part, "flag", node)
            return _Part("flag", lambda table: comparisons.opposite(part.run(table)))
        if isinstance(node.op, ast.USub | ast.UAdd):
            self._need(part, "number", node)
            if part.is_literal and isinstance(part.literal, int | float):
                return _literal(-part.literal if isinstance(node.op, ast.USub) else part.literal, "number")
            sign = -1 if isinstance(node.op, ast.USub) else 1
            return _Part("number", lambda table: comparisons.arithmetic("*", part.run(table), scalar(sign)))
        return self.refuse("no operator but not, +, -, *, /, //, %", repr(_written(node)))

    def _boolop(self, node: ast.BoolOp) -> _Part:
        parts = [self.part(value) for value in node.values]
        for part in parts:
            self._need(part, "flag", node)
        all_of = isinstance(node.op, ast.And)
        return _Part("flag", lambda table: comparisons.combined([p.run(table) for p in parts], all_of=all_of))

    def _binop(self, node: ast.BinOp) -> _Part:
        sign = _ARITHMETIC.get(type(node.op))
        if sign is None:
            self.refuse("no operator but +, -, *, /, //, %", repr(_written(node)))
        left, right = self.part(node.left), self.part(node.right)
        for part in (left, right):
            self._need(part, "number", node)
        return _Part("number", lambda table: comparisons.arithmetic(sign, left.run(table), right.run(table)))

    def _need(self, part: _Part, kind: Kind, node: ast.expr) -> None:
        if part.kind not in {kind, "unknown"}:
            self.refuse(f"a {kind} on each side in {_written(node)!r}", f"a {part.kind}")

    def _compare(self, node: ast.Compare) -> _Part:
        sides = [node.left, *node.comparators]
        pairs = zip(sides, node.ops, sides[1:], strict=False)
        parts = [self._compared(left, operator, right, node) for left, operator, right in pairs]
        return parts[0] if len(parts) == 1 else _Part(
            "flag", lambda table: comparisons.combined([p.run(table) for p in parts], all_of=True)
        )  # fmt: skip

    def _compared(self, left: ast.expr, operator: ast.cmpop, right: ast.expr, node: ast.expr) -> _Part:
        if isinstance(operator, ast.In | ast.NotIn):
            found = self._in(left, right, node)
            if isinstance(operator, ast.In):
                return found
            return _Part("flag", lambda table: comparisons.opposite(found.run(table)))
        one, other = self.part(left), self.part(right)
        for part, column in ((one, other), (other, one)):
            if part.is_literal and part.literal is None:
                return self._is_null(column, operator, node)
        sign = _COMPARED.get(type(operator))
        if sign is None:
            self.refuse("`is` with None only; values are compared with ==", repr(_written(node)))
        one, other = self._dates(one, other, node), self._dates(other, one, node)
        if "unknown" not in {one.kind, other.kind} and one.kind != other.kind:
            self.refuse(f"the same kind on both sides of {_written(node)!r}", f"a {one.kind} and a {other.kind}")
        if {one.kind, other.kind} & {"list", "record"}:
            self.refuse("texts, numbers, times, True or False to compare", repr(_written(node)))
        return _Part("flag", lambda table: comparisons.compared(sign, one.run(table), other.run(table)))

    def _dates(self, part: _Part, other: _Part, node: ast.expr) -> _Part:
        """A text beside a time is a time."""
        if other.kind != "time" or not isinstance(part.literal, str):
            return part
        moment = comparisons.moment(part.literal)
        if moment is None:
            self.refuse(
                "a date such as '2026-11-17' or '2026-11-17T12:30:00'", f"{part.literal!r} in {_written(node)!r}"
            )
        return _literal(moment, "time")

    def _is_null(self, part: _Part, operator: ast.cmpop, node: ast.expr) -> _Part:
        if isinstance(operator, ast.Is | ast.Eq):
            return _Part("flag", lambda table: comparisons.is_null(part.run(table)))
        if isinstance(operator, ast.IsNot | ast.NotEq):
            return _Part("flag", lambda table: comparisons.opposite(comparisons.is_null(part.run(table))))
        return self.refuse("`is None` or `is not None`", repr(_written(node)))

    def _in(self, left: ast.expr, right: ast.expr, node: ast.expr) -> _Part:
        if not isinstance(right, ast.List | ast.Tuple | ast.Set):
            return self._contains(self.part(right), self.part(left), node)
        part, choices = self.part(left), [self.part(element) for element in right.elts]
        wanted = self._choices(part, choices, node)
        return _Part("flag", lambda table: comparisons.is_one_of(part.run(table), wanted))

    def _choices(self, part: _Part, choices: Sequence[_Part], node: ast.expr) -> list[object]:
        for choice in choices:
            if not choice.is_literal or (part.kind != "unknown" and choice.kind not in {part.kind, "unknown"}):
                self.refuse(f"values of one kind, {part.kind}, to choose from", repr(_written(node)))
        if len({choice.kind for choice in choices if choice.literal is not None}) > 1:
            self.refuse("values of one kind to choose from", repr(_written(node)))
        return [choice.literal for choice in choices]


def _literal(value: object, kind: Kind) -> _Part:
    made = scalar(value)
    return _Part(kind, lambda _: made, value, is_literal=True)


def _written(node: ast.AST) -> str:
    text = ast.unparse(node)
    return text if len(text) <= 60 else f"{text[:59]}…"
