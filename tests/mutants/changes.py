"""What one line can be changed to: each mutant of a module, named so that a list can name it."""

from __future__ import annotations

import ast
import copy
from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple

_SWAPPED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_SHOWN_MAX = 90
# How a dataclass is laid out and called decides nothing; whether it is frozen does.
_WRITTEN = frozenset({"slots", "kw_only"})

# In a copy of the tree: puts something else in the place of a node.
Change = Callable[[ast.AST], None]


class Mutant(NamedTuple):
    """`name`: where it is and how it differs, without the line, which moves."""

    name: str
    line: int
    text: str


def mutants(source: str) -> Iterator[Mutant]:
    """Each mutant of a module, whole; two equal changes in one place are told apart by a number."""
    tree = ast.parse(source)
    within = _places(tree)
    met: Counter[str] = Counter()
    for number, node in enumerate(ast.walk(tree)):
        for how, change in _changes(node):
            name = f"{within[node]}: {how}"
            met[name] += 1
            other = copy.deepcopy(tree)
            change(list(ast.walk(other))[number])
            if met[name] > 1:
                name = f"{name} ({met[name]})"
            yield Mutant(name, getattr(node, "lineno", 0), ast.unparse(other))


def _places(tree: ast.Module) -> dict[ast.AST, str]:
    """The function or class around each node."""
    places: dict[ast.AST, str] = {}

    def visit(node: ast.AST, place: str) -> None:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            place = f"{place}.{node.name}".removeprefix("module.")
        places[node] = place
        for child in ast.iter_child_nodes(node):
            visit(child, place)

    visit(tree, "module")
    return places


def _changes(node: ast.AST) -> Iterator[tuple[str, Change]]:
    yield from _comparisons(node)
    yield from _logic(node)
    yield from _conditions(node)
    yield from _figures(node)
    yield from _members(node)


def _short(node: ast.AST) -> str:
    return " ".join(ast.unparse(node).split())[:_SHOWN_MAX]


def _comparisons(node: ast.AST) -> Iterator[tuple[str, Change]]:
    if not isinstance(node, ast.Compare):
        return
    for place, operator in enumerate(node.ops):

        def swap(target: ast.AST, place: int = place, old: ast.cmpop = operator) -> None:
            assert isinstance(target, ast.Compare)
            target.ops[place] = _SWAPPED[type(old)]()

        new = _SWAPPED[type(operator)].__name__
        yield f"{type(operator).__name__} becomes {new} in {_short(node)}", swap


def _logic(node: ast.AST) -> Iterator[tuple[str, Change]]:
    if isinstance(node, ast.BoolOp):
        new = ast.Or if isinstance(node.op, ast.And) else ast.And

        def turn(target: ast.AST) -> None:
            assert isinstance(target, ast.BoolOp)
            target.op = new()

        yield f"{new.__name__} in {_short(node)}", turn
        for place, operand in enumerate(node.values):
            if isinstance(operand, ast.Constant) and not operand.value:
                continue  # nothing instead of nothing

            def drop(target: ast.AST, place: int = place) -> None:
                assert isinstance(target, ast.BoolOp)
                empty = isinstance(target.op, ast.And)
                target.values[place] = ast.Constant(empty)

            yield f"without {_short(operand)} of {_short(node)}", drop
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):

        def twice(target: ast.AST) -> None:
            assert isinstance(target, ast.UnaryOp)
            target.operand = ast.UnaryOp(op=ast.Not(), operand=target.operand)

        yield f"no longer {_short(node)}", twice


def _conditions(node: ast.AST) -> Iterator[tuple[str, Change]]:
    """A plain condition turned round; comparisons and the like are turned elsewhere."""
    if isinstance(node, ast.If | ast.IfExp) and isinstance(
        node.test, ast.Name | ast.Attribute | ast.Call
    ):

        def turn(target: ast.AST) -> None:
            assert isinstance(target, ast.If | ast.IfExp)
            target.test = ast.UnaryOp(op=ast.Not(), operand=target.test)

        yield f"unless {_short(node.test)}", turn


def _figures(node: ast.AST) -> Iterator[tuple[str, Change]]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        sign = ast.Sub if isinstance(node.op, ast.Add) else ast.Add

        def flip(target: ast.AST) -> None:
            assert isinstance(target, ast.BinOp)
            target.op = sign()

        yield f"{sign.__name__} in {_short(node)}", flip
    if isinstance(node, ast.keyword) and node.arg in _WRITTEN:
        return
    for field, value in ast.iter_fields(node):
        if isinstance(value, ast.Constant) and isinstance(value.value, int):
            old = value.value
            new = (not old) if isinstance(old, bool) else old + 1

            def put(target: ast.AST, field: str = field, new: int = new) -> None:
                setattr(target, field, ast.Constant(new))

            yield f"{new} for {old} in {_short(node)}", put


def _members(node: ast.AST) -> Iterator[tuple[str, Change]]:
    """One member missing in a set, and in what something is looked for."""
    for field, value in ast.iter_fields(node):
        whole = value[0] if field == "comparators" else value
        if not isinstance(whole, ast.Set | ast.Tuple) or isinstance(node, ast.Subscript):
            continue
        if isinstance(whole, ast.Tuple) and field != "comparators":
            continue
        for place, member in enumerate(whole.elts):

            def drop(target: ast.AST, field: str = field, place: int = place) -> None:
                found = getattr(target, field)
                (found[0] if field == "comparators" else found).elts.pop(place)

            yield f"without {_short(member)} in {_short(whole)}", drop
    if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Set):
        for place, member in enumerate(node.args[0].elts):

            def lose(target: ast.AST, place: int = place) -> None:
                assert isinstance(target, ast.Call)
                whole = target.args[0]
                assert isinstance(whole, ast.Set)
                whole.elts.pop(place)
                if not whole.elts:
                    target.args = []

            yield f"without {_short(member)} in {_short(node)}", lose
