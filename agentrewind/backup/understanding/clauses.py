"""Reads the clauses of shell text (if, while, for, case, declare) for what they make of variables and places.

Every branch counts as taken, and a loop is read until another round would know no more and no less.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from agentrewind.backup.understanding import builtins
from agentrewind.backup.understanding.scope import Scope, merged
from agentrewind.backup.understanding.syntax import Node, SyntaxUnclearError, TooMuchError
from agentrewind.backup.understanding.words import expand
from agentrewind.backup.values import Command, Word

_MOST_ROUNDS = 16


class Reader(Protocol):
    """Who reads what stands in a clause.

    Attributes:
        found: the commands so far.
        functions: how many calls of functions lie around it.
        locals: variables of the function that is read.
    """

    found: list[Command]
    functions: int
    locals: set[str]

    def statements(self, nodes: Iterable[Node], scope: Scope | None) -> Scope | None:
        """Read these in order; None where the text ends in them."""
        ...

    def assignment(self, node: Node, scope: Scope, *, exporting: bool = False) -> tuple[str, Word]:
        """Read one assignment."""
        ...

    def evaluated(self, node: object, scope: Scope) -> None:
        """Read an expression."""
        ...

    def nested(self, node: object, scope: Scope) -> None:
        """Read the substitutions under a node."""
        ...


def clause(reader: Reader, node: Node, scope: Scope) -> Scope | None:
    """The scope after the clause; None where the text ends in it. Raises SyntaxUnclearError."""
    match node["Type"]:
        case "IfClause":
            return _choice(reader, node, scope)
        case "WhileClause":
            return _loop(reader, [*node.get("Cond", []), *node.get("Do", [])], scope)
        case "ForClause":
            return _for_each(reader, node, scope)
        case "CaseClause":
            return _case(reader, node, scope)
        case "DeclClause":
            return _declare(reader, node, scope)
        case "TestClause" | "ArithmCmd" | "LetClause":
            reader.evaluated(node, scope)
            builtins.forget_arithmetic(node, scope)
            return scope
        case other:
            raise SyntaxUnclearError(f"{other} is not understood")


def _case(reader: Reader, node: Node, scope: Scope) -> Scope | None:
    items = node.get("Items", [])
    reader.nested([node.get("Word"), *[item.get("Patterns") for item in items]], scope)
    after: Scope | None = scope
    for item in items:
        # `;&` runs into the next one
        after = merged(after, reader.statements(item.get("Stmts", []), (after or scope).copy()))
    return after


def _choice(reader: Reader, node: Node, scope: Scope) -> Scope | None:
    """An if, with the else and elif parts that hang on it."""
    start = reader.statements(node.get("Cond", []), scope)
    if start is None:
        return None
    then = reader.statements(node.get("Then", []), start.copy())
    if "Else" not in node:
        return merged(then, start)
    return merged(then, _choice(reader, node["Else"], start.copy()))


def _loop(reader: Reader, body: list[Node], scope: Scope) -> Scope | None:
    """Read a body until another round would know no more and no less."""
    now = scope
    for _ in range(_MOST_ROUNDS):
        mark = len(reader.found)
        after = merged(reader.statements(body, now.copy()), now)
        assert after is not None
        if after == now:
            return now
        del reader.found[mark:]
        now = after
    raise TooMuchError("a loop changes too many variables")


def _for_each(reader: Reader, node: Node, scope: Scope) -> Scope | None:
    loop = node["Loop"]
    reader.nested(loop, scope)
    if loop["Type"] != "WordIter":
        builtins.forget_arithmetic(loop, scope)
        return _loop(reader, node.get("Do", []), scope)
    name = loop["Name"]["Value"]
    words = [word for item in loop.get("Items", []) for word in expand(item, scope)]
    known = all(word.literal and not word.glob for word in words) and bool(words)
    if not known or len(words) > _MOST_ROUNDS:
        builtins.assign(scope, name, None)
        return _loop(reader, node.get("Do", []), scope)
    state: Scope | None = scope
    for word in words:
        assert state is not None
        builtins.assign(state, name, word.text)
        state = merged(reader.statements(node.get("Do", []), state.copy()), state)
    return state


def _declare(reader: Reader, node: Node, scope: Scope) -> Scope:
    variant = node.get("Variant", {}).get("Value")
    exporting = variant in ("export", "declare", "typeset", "readonly")
    options = "r" if variant == "readonly" else ""
    reader.evaluated(node.get("Args"), scope)
    for each in node.get("Args", []):
        if "Name" in each:
            name = each["Name"]["Value"]
            reader.assignment(each, scope, exporting=exporting)
            if reader.functions and variant not in ("export", "readonly"):
                reader.locals.add(name)
                if each.get("Naked"):
                    builtins.assign(scope, name, None)
            scope.fixed |= {name} if set(options) - set("gx") else set()
            continue
        parts = (each.get("Value") or {}).get("Parts", [])
        text = "".join(str(part.get("Value", "")) for part in parts)
        if text[:1] not in ("-", "+") or any(part.get("Type") != "Lit" for part in parts):
            scope.spoil("a variable whose name is only known at run time is set")
        elif variant != "export" and set(text[1:]) & set("niulct"):
            scope.spoil(f"{variant} {text} changes what assignments mean")
        options += text[1:]
    return scope
