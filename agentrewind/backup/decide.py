"""Decides what is preserved before a tool call: Algorithm 1 of the paper, without its model calls.

Each simple command of a call is judged alone: it reads, or a rule's kind says what it may change, or nobody
can tell. State inside the workspace is the snapshots' business; a call is settled by them only if no part of
it can touch anything outside.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

import orjson

from agentrewind.backup.kind import CaptureError, UnclearError
from agentrewind.backup.kinds.files_targets import copied
from agentrewind.backup.kinds.git_watch import git_doubts
from agentrewind.backup.kinds.table import kind_of
from agentrewind.backup.rules.matching import Rules
from agentrewind.backup.rules.rule import Rule
from agentrewind.backup.understanding import mcp, tools
from agentrewind.backup.understanding.code_actions import only_calls_tools
from agentrewind.backup.understanding.finding import parts
from agentrewind.backup.understanding.made import followed
from agentrewind.backup.understanding.reading import reads, writing_redirects
from agentrewind.backup.understanding.shell import read_shell
from agentrewind.backup.values import Command, Context, Decision, Redirect, Target, Tier, ToolCall, Word

_TELLS_READING = ("postgresql", "kubernetes", "imap")
"""Kinds whose state never lies in the workspace: a command without a target only reads it."""


def decide(call: ToolCall, context: Context, rules: Rules) -> Decision:
    """What is preserved before `call`, by which rules, and what nothing covers. Changes nothing.

    Kinds may ask the tools that they drive what a command would touch. A call that the agent tagged and that
    reads, as far as can be told, is left to the subagent.
    """
    gathered = _Gathered()
    text = tools.shell_text(call)
    if text is not None:
        _shell(text, tools.call_context(call, context), rules, gathered)
    else:
        _tool(call, context, rules, gathered)
    return gathered.decision(tagged=call.tagged)


@dataclass(slots=True)
class _Gathered:
    """What the parts of a call have come to."""

    changes: bool = False
    rules: dict[str, Rule] = field(default_factory=dict)
    targets: dict[tuple[str, str], Target] = field(default_factory=dict)
    restore: dict[tuple[str, str], str] = field(default_factory=dict)
    uncovered: dict[str, None] = field(default_factory=dict)

    def add(self, rule: Rule, targets: tuple[Target, ...]) -> None:
        for target in targets:
            key = (target.kind, target.name)
            self.targets.setdefault(key, target)
            self.restore.setdefault(key, kind_of(target.kind).describe(target)[1])
        if targets:
            self.rules.setdefault(rule.id, rule)
        self.changes = self.changes or bool(targets) or rule.kind not in _TELLS_READING

    def cannot_tell(self, what: str, why: str) -> None:
        self.changes = True
        text = f"{what}: {why}" if what else why
        # a name need not be text
        self.uncovered[text.encode("utf-8", "backslashreplace").decode()] = None

    def decision(self, *, tagged: bool) -> Decision:
        uncovered = tuple(self.uncovered)
        if tagged and not uncovered and not self.targets:
            uncovered = ("the agent marked the call, and no rule finds anything outside the workspace in it",)
        if self.targets:
            tier = next(each for each in Tier if any(rule.tier is each for rule in self.rules.values()))
        else:
            tier = Tier.SUBAGENT if uncovered else Tier.NONE
        return Decision(
            read_only=not self.changes,
            tier=tier,
            rules=tuple(self.rules),
            targets=tuple(self._targets(only_removes=len(self.rules) == 1 and not uncovered)),
            restore=tuple(self.restore.values()),
            reason=self._reason(uncovered),
            uncovered=uncovered,
            untried=tuple(rule.id for rule in self.rules.values() if rule.untried),
        )

    def _targets(self, *, only_removes: bool) -> Iterable[Target]:
        return self.targets.values() if only_removes else map(copied, self.targets.values())

    def _reason(self, uncovered: tuple[str, ...]) -> str:
        if not self.changes and not uncovered:
            return "every part of it only reads"
        if not self.targets and not uncovered:
            return "it changes nothing outside the workspace, whose snapshots cover it"
        parts = []
        if self.targets:
            names = ", ".join(target.name for target in self.targets.values())
            parts.append(f"it may change {names}, which can be preserved")
        if uncovered:
            parts.append(f"what else it may change cannot be told ({'; '.join(uncovered)})")
        return "; ".join(parts)


def _shell(text: str, context: Context, rules: Rules, gathered: _Gathered) -> None:
    reading = read_shell(text, context)
    if reading.unclear:
        gathered.cannot_tell("", f"the command cannot be read: {reading.unclear}")
    commands = tuple(followed(reading.commands, text))
    doubts = git_doubts(commands, context)
    for command in _once(commands):
        doubt = doubts.get(repr(command))
        if doubt:
            gathered.cannot_tell(_shown(command), doubt.reason)
        if reads(command):
            continue
        _redirects(command, rules, context, gathered)
        if command.unclear:
            gathered.cannot_tell(_shown(command), command.unclear)
        if command.argv and not (doubt and doubt.asking_runs) and not reads(replace(command, redirects=())):
            _words(command, rules, context, gathered)


def _words(command: Command, rules: Rules, context: Context, gathered: _Gathered) -> None:
    judged, besides = parts(command)
    if besides and not command.unclear:
        gathered.cannot_tell(_shown(command), besides)
    for each in judged:
        _command(each, rules, context, gathered)


def _once(commands: Iterable[Command]) -> Iterator[Command]:
    """Commands in order, the same one only once."""
    seen: set[str] = set()
    for command in commands:
        shape = repr(command)
        if shape not in seen:
            seen.add(shape)
            yield command


def _redirects(command: Command, rules: Rules, context: Context, gathered: _Gathered) -> None:
    writing = writing_redirects(command)
    if not writing:
        return
    asked = replace(command, redirects=writing, unclear="")
    matching = rules.for_redirects()
    for rule in matching[:1]:
        _ask(rule, asked, context, gathered)
    if not matching:
        gathered.cannot_tell(_shown(command), "no rule is for redirections")


def _command(command: Command, rules: Rules, context: Context, gathered: _Gathered) -> None:
    if command.host is not None:
        gathered.cannot_tell(_shown(command), f"it runs elsewhere ({command.host})")
        return
    matching = rules.for_command(command)
    if matching:
        _ask(matching[0], command, context, gathered)
    elif not command.unclear:
        known = "no rule is for this use of it" if rules.knows(command.name) else "no rule knows it"
        gathered.cannot_tell(_shown(command), known)


def _ask(rule: Rule, command: Command, context: Context, gathered: _Gathered) -> None:
    """Let the rule's kind say what the command may change."""
    try:
        targets = kind_of(rule.kind).targets(command, rule.parameters, context)
        gathered.add(rule, targets)
    except (UnclearError, CaptureError) as error:
        gathered.cannot_tell(_shown(command), str(error))
    except OSError as error:
        gathered.cannot_tell(_shown(command), f"{rule.kind} could not look: {error}")
    except ImportError as error:
        gathered.cannot_tell(
            _shown(command), f"{rule.kind} cannot be loaded ({error}); install agentrewind[backup]"
        )


def _tool(call: ToolCall, context: Context, rules: Rules, gathered: _Gathered) -> None:
    if mcp.is_mcp(call.name):
        if mcp.tool_reads(call):
            return
    elif tools.tool_reads(call.name) or only_calls_tools(call):
        return
    patched = tools.patched_paths(call)
    if patched:
        writes = tuple(Redirect(operator=">", target=Word(path)) for path in patched)
        here = tools.call_context(call, context)
        _redirects(Command(argv=(), redirects=writes, cwd=here.cwd), rules, here, gathered)
        return
    matching = rules.for_tool(call.name)
    if not matching:
        gathered.cannot_tell(call.name, "no rule knows this tool")
        return
    command = Command(
        argv=(Word(call.name),), cwd=context.cwd, stdin=orjson.dumps(call.arguments, default=str).decode()
    )
    _ask(matching[0], command, tools.call_context(call, context), gathered)


def _shown(command: Command) -> str:
    text = " ".join(word.text for word in command.argv) or "a redirection"
    return text if len(text) <= 60 else text[:59] + "…"
