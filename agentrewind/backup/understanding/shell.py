"""Reads shell text into the simple commands that it may run, each with its directory, words and redirections.

Every branch counts as taken and every function as called where it is called. What cannot be told is said on
the command (`unclear`, words that are not `literal`, `cwd` None), never guessed.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from agentrewind.backup.understanding import builtins
from agentrewind.backup.understanding.clauses import clause
from agentrewind.backup.understanding.finding import prints_matches
from agentrewind.backup.understanding.nested import Nested
from agentrewind.backup.understanding.reading import reads
from agentrewind.backup.understanding.scope import Scope, merged, scope_of
from agentrewind.backup.understanding.syntax import (
    Node,
    SyntaxUnclearError,
    TooMuchError,
    parse,
    substitutions,
)
from agentrewind.backup.understanding.words import expand, expand_one, here_document, is_quoted
from agentrewind.backup.understanding.wrappers import unwrap
from agentrewind.backup.values import Command, Context, Redirect, Word

if TYPE_CHECKING:
    from collections.abc import Iterator

_DEEPEST = 12
_MOST_COMMANDS = 2000


@dataclass(frozen=True, slots=True)
class Reading:
    """The commands of a text in order. `unclear`: why the text as a whole cannot be read, else empty."""

    commands: tuple[Command, ...]
    unclear: str = ""


def read_shell(text: str, context: Context) -> Reading:
    """The simple commands in `text` as a shell started in `context` may run them. Raises for no text."""
    reader = _Reader()
    try:
        reader.script(text, scope_of(context))
    except SyntaxUnclearError as error:
        return Reading((), str(error))
    except RecursionError:
        return Reading((), "it is nested too deep")
    return Reading(tuple(reader.found))


@dataclass(slots=True)
class _Reader:
    found: list[Command] = field(default_factory=list)
    outer: tuple[Redirect, ...] = ()
    wrappers: tuple[str, ...] = ()
    user: str | None = None
    host: str | None = None
    stdin: str | None = None
    stdin_file: Redirect | None = None
    source: Command | None = None
    depth: int = 0
    functions: int = 0
    locals: set[str] = field(default_factory=set)

    def script(self, text: str, scope: Scope) -> Scope | None:
        """Read a whole text in this scope."""
        with self.deeper():
            return self.statements(parse(text), scope)

    @contextmanager
    def deeper(self) -> Iterator[None]:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise TooMuchError("it is nested too deep")
        try:
            yield
        finally:
            self.depth -= 1

    def statements(self, nodes: Iterable[Node], scope: Scope | None) -> Scope | None:
        for node in nodes:
            if scope is None:
                # after exit or return: read all the same, the condition before it may be wrong
                return scope
            ok, failed = self.statement(node, scope)
            scope = merged(ok, failed)
        return scope

    def statement(self, node: Node, scope: Scope) -> tuple[Scope | None, Scope | None]:
        """The scope after success and after failure."""
        if node.get("Background") or node.get("Coprocess"):
            self.command(node, scope.copy())
            return scope, scope
        ok, failed = self.command(node, scope)
        return (failed, ok) if node.get("Negated") else (ok, failed)

    def command(self, node: Node, scope: Scope) -> tuple[Scope | None, Scope | None]:
        command = node.get("Cmd") or {"Type": "CallExpr"}
        redirects, stdin = self.redirects(node.get("Redirs", []), scope)
        if command["Type"] == "CallExpr":
            return self.call(command, redirects, stdin, scope)
        before = (self.outer, self.stdin, self.stdin_file, self.source)
        start = len(self.found)
        self.outer = (*redirects, *self.outer)
        if stdin is not None:
            self.stdin, self.stdin_file = stdin, None
        if _reads(redirects):
            self.source = None
        try:
            after = self.compound(command, scope)
            if redirects and len(self.found) == start:
                self.emit(Command(argv=(), redirects=redirects, cwd=scope.cwd))
        finally:
            self.outer, self.stdin, self.stdin_file, self.source = before
        return after

    def compound(self, node: Node, scope: Scope) -> tuple[Scope | None, Scope | None]:
        match node["Type"]:
            case "BinaryCmd":
                return self.binary(node, scope)
            case "TimeClause" | "CoprocClause":
                return self.statement(node.get("Stmt") or {}, scope)
            case "Block":
                after = self.statements(node.get("Stmts", []), scope)
            case "Subshell":
                self.statements(node.get("Stmts", []), scope.copy())
                after = scope
            case "FuncDecl":
                scope.functions[node["Name"]["Value"]] = node["Body"]
                after = scope
            case _:
                after = clause(self, node, scope)
        return after, after

    def binary(self, node: Node, scope: Scope) -> tuple[Scope | None, Scope | None]:
        left, right, operator = node["X"], node["Y"], node["Op"]
        if operator in ("|", "|&"):
            self.pipe(left, right, scope, both=operator == "|&")
            return scope, scope
        ok, failed = self.statement(left, scope.copy())
        way = ok if operator == "&&" else failed
        if way is None:
            # the other side is never reached by what is known, and read all the same
            way = scope.copy()
        right_ok, right_failed = self.statement(right, way.copy())
        if operator == "&&":
            return right_ok, merged(failed, right_failed)
        return merged(ok, right_ok), right_failed

    def pipe(self, left: Node, right: Node, scope: Scope, *, both: bool) -> None:
        before = (self.stdin, self.stdin_file, self.source)
        start = len(self.found)
        self.statement(left, scope.copy())
        made = self.found[start:]
        self.stdin, self.stdin_file = builtins.output_of(made[0]) if len(made) == 1 else (None, None)
        self.source = made[0] if len(made) == 1 and not both and prints_matches(made[0]) else None
        self.statement(right, scope.copy())
        self.stdin, self.stdin_file, self.source = before

    def assignment(self, node: Node, scope: Scope, *, exporting: bool = False) -> tuple[str, Word]:
        name = node["Name"]["Value"]
        whole = not (node.get("Append") or node.get("Index") or node.get("Array") or node.get("Naked"))
        word = expand_one(node.get("Value"), scope) if whole else Word("…", literal=False)
        if not node.get("Naked"):
            builtins.assign(scope, name, word.text if word.literal else None, exporting=exporting)
        return name, word

    def evaluated(self, node: object, scope: Scope) -> None:
        """Read an expression: names and quoted text in it may be code, if they hold some."""
        self.nested(node, scope)
        if scope.taint or builtins.holds_code(node):
            self.emit(Command(argv=(Word("[["),), cwd=scope.cwd, unclear=scope.taint or "it evaluates code"))

    def nested(self, node: object, scope: Scope) -> None:
        """Read the substitutions under a node, each in a shell of its own."""
        for each in substitutions(node):
            before = (self.outer, self.stdin, self.stdin_file, self.source)
            self.outer, self.stdin, self.stdin_file, self.source = (), None, None, None
            with self.deeper():
                self.statements(each.get("Stmts", []), scope.copy())
            self.outer, self.stdin, self.stdin_file, self.source = before
        builtins.forget_defaults(node, scope)

    def redirects(self, nodes: list[Node], scope: Scope) -> tuple[tuple[Redirect, ...], str | None]:
        found: list[Redirect] = []
        stdin: str | None = None
        for node in nodes:
            operator = node["Op"]
            self.nested([node.get("Word"), node.get("Hdoc")], scope)
            descriptor = node.get("N", {}).get("Value", "")
            number = int(descriptor) if descriptor.isdigit() else None
            if operator in ("<<", "<<-"):
                quoted = is_quoted(node["Word"])
                stdin = here_document(node.get("Hdoc", {}), scope, quoted=quoted, tabs=operator == "<<-")
                found.append(Redirect(operator=operator, target=Word("", literal=stdin is not None)))
            else:
                target = expand_one(node.get("Word"), scope)
                if operator == "<<<":
                    stdin = target.text + "\n" if target.literal else None
                found.append(Redirect(operator=operator, target=target, descriptor=number))
        return tuple(found), stdin

    def call(
        self, node: Node, redirects: tuple[Redirect, ...], stdin: str | None, scope: Scope
    ) -> tuple[Scope | None, Scope | None]:
        """A simple command, an assignment, a function's call or a builtin."""
        self.nested([node.get("Args"), node.get("Assigns")], scope)
        words = tuple(word for arg in node.get("Args", []) for word in expand(arg, scope))
        own = scope if not words else scope.copy()
        assigned = dict(self.assignment(each, own, exporting=bool(words)) for each in node.get("Assigns", []))
        taint = own.taint
        if not words:
            if redirects:
                self.emit(Command(argv=(), redirects=(*redirects, *self.outer), cwd=scope.cwd))
            return scope, scope
        command = Command(
            argv=words,
            assignments={**own.exports, **assigned},
            redirects=(*redirects, *self.outer),
            wrappers=self.wrappers,
            cwd=scope.cwd,
            stdin=self.stdin if stdin is None and not _reads(redirects) else stdin,
            user=self.user,
            host=self.host,
            source=None if _reads(redirects) else self.source,
            unclear=taint,
        )
        if self.stdin_file is not None and not _reads(redirects):
            command = replace(command, redirects=(*command.redirects, self.stdin_file))
        return self.simple(command, scope)

    def simple(self, command: Command, scope: Scope) -> tuple[Scope | None, Scope | None]:
        name = command.argv[0].text if command.argv[0].literal else ""
        if name in scope.functions and self.host is None:
            return self.function(command, name, scope)
        while name in ("command", "builtin") and len(command.argv) > 1 and command.argv[1].text[:1] != "-":
            command = replace(command, argv=command.argv[1:])
            name = command.argv[0].text if command.argv[0].literal else ""
        effect = builtins.effect_of(name)
        if effect is None:
            self.unwrapped(command, scope)
            return scope, scope
        return self.builtin(command, effect, scope)

    def builtin(
        self, command: Command, effect: builtins.Effect, scope: Scope
    ) -> tuple[Scope | None, Scope | None]:
        before = scope.taint
        after = effect(command, scope)
        settled = all(reads(each) for each in self.found)
        if command.name in builtins.RUNS_TEXT and scope.taint != before:
            command = replace(command, unclear=scope.taint)
        self.emit(command)
        if after.text is not None:
            for name, word in command.assignments.items():
                if scope.exports.get(name) != word:
                    builtins.assign(scope, name, None)
            ended = self.script(after.text, scope)
            return ended, ended
        ok, failed = after.ok, after.failed
        if settled and ok is not None and ok.cwd is not None and ok is not failed and ok.cwd.is_dir():
            # nothing before it can have taken the directory away
            failed = ok
        return ok, failed

    def function(self, command: Command, name: str, scope: Scope) -> tuple[Scope | None, Scope | None]:
        body = scope.functions[name]
        if body is None:
            self.emit(replace(command, unclear=f"{name} is a function in some cases"))
            return scope, scope
        inner = scope.copy()
        inner.arguments = command.argv[1:]
        given = [each for each, word in command.assignments.items() if scope.exports.get(each) != word]
        for each in given:
            word = command.assignments[each]
            builtins.assign(inner, each, word.text if word.literal else None)
        around, self.locals = self.locals, set()
        self.functions += 1
        before = (self.outer, self.stdin, self.stdin_file, self.source)
        self.outer, self.stdin, self.source = command.redirects, command.stdin, command.source
        with self.deeper():
            after = merged(*self.statement(body, inner))
        self.outer, self.stdin, self.stdin_file, self.source = before
        self.functions -= 1
        own, self.locals = {*self.locals, *given}, around
        for each in own if after is not None else ():
            builtins.assign(after or scope, each, None)
        if after is None:
            return scope, scope
        after.arguments = scope.arguments
        return after, after

    def unwrapped(self, command: Command, scope: Scope) -> None:
        """Emit a command without its wrappers, and read what it is given to run as text."""
        for part in unwrap(command):
            if isinstance(part, Command):
                self.emit(part)
            elif part.words is not None:
                self.inside(part, scope, part.words)
            else:
                self.inside(part, scope, None)

    def inside(self, part: Nested, scope: Scope, words: tuple[Word, ...] | None) -> None:
        """Read a text or a command that another one runs, in a shell of its own."""
        reader = _Reader(
            found=self.found,
            outer=part.command.redirects,
            wrappers=part.command.wrappers,
            user=part.command.user,
            host=part.command.host,
            stdin=part.command.stdin if part.keeps_stdin else None,
            depth=self.depth + 1,
        )
        inner = scope.copy()
        inner.cwd = part.command.cwd
        inner.functions = {}
        inner.arguments = part.arguments
        inner.taint = part.command.unclear
        if part.command.host is not None:
            inner.variables, inner.cwd = {"IFS": " \t\n"}, None
        if reader.depth > _DEEPEST:
            raise TooMuchError("it is nested too deep")
        if words is not None:
            reader.simple(replace(part.command, argv=words), inner)
            return
        try:
            reader.script(part.text, inner)
        except TooMuchError:
            raise
        except SyntaxUnclearError as error:
            self.emit(replace(part.command, unclear=f"what it runs does not parse: {error}"))

    def emit(self, command: Command) -> None:
        if len(self.found) >= _MOST_COMMANDS:
            raise TooMuchError(f"it runs more than {_MOST_COMMANDS} commands")
        if command.argv and (not command.argv[0].literal or command.argv[0].glob) and not command.unclear:
            command = replace(
                command, unclear=f"which program {command.argv[0].text} is, is only known at run time"
            )
        self.found.append(command)


def _reads(redirects: tuple[Redirect, ...]) -> bool:
    return any(each.operator.startswith("<") and each.descriptor in (None, 0) for each in redirects)
