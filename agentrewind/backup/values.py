"""What BackUpper knows of a call: its parts, what it may change, and the decision about it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from agentrewind.records import Json, JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """Where a call runs.

    Attributes:
        cwd: directory of the call before any `cd` in it.
        env: environment of the call, as far as it is known.
        workspace: root whose files the snapshots cover, or None where there is none.
        home: home directory for `~`.
    """

    cwd: Path
    env: Mapping[str, str]
    home: Path
    workspace: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A tool call before it runs.

    Attributes:
        name: the harness's name for the tool, `mcp__SERVER__TOOL` for tools of an MCP server.
        arguments: its arguments, as JSON.
        call_id: the model's id of the call, None where it has none.
        tagged: the agent marked the call with `[BACKUP NEEDED]`.
    """

    name: str
    arguments: Json
    call_id: str | None = None
    tagged: bool = False


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a command after quote removal.

    Attributes:
        text: as the program gets it; where `glob`, a pattern in which quoted signs are escaped (`[*]`).
        literal: no variable or substitution in it is only known at run time.
        glob: the shell expands it to the names that it fits.
    """

    text: str
    literal: bool = True
    glob: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Redirect:
    """A redirection. `operator` as written (`>`, `>>`, `>|`, `&>`, `<`, …); `target` its word."""

    operator: str
    target: Word
    descriptor: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A simple command with its wrappers (`sudo`, `env`, `timeout`, `bash -c` …) taken off.

    Attributes:
        argv: the words; empty for a redirection or an assignment alone.
        assignments: variables set for this command alone.
        redirects: its redirections, and those of the compound commands around it.
        wrappers: names of what was taken off, outermost first.
        cwd: its working directory if the `cd` before it can be told, None where it cannot.
        stdin: what a here-document, a here-string or `echo`, `printf`, `cat FILE` before a pipe give it.
        user: whom `sudo -u`, `su` or `runuser` run it as, None for the caller.
        host: where `ssh`, `docker exec` or `kubectl exec` run it, None for here.
        open_ended: operands come from elsewhere (`xargs`, `find -exec`); argv holds only the fixed ones.
        source: the find whose matches it gets and nothing else, None where its operands come from elsewhere.
        unclear: why it is not wholly understood, empty where it is.
    """

    argv: tuple[Word, ...]
    assignments: Mapping[str, Word] = field(default_factory=dict)
    redirects: tuple[Redirect, ...] = ()
    wrappers: tuple[str, ...] = ()
    cwd: Path | None = None
    stdin: str | None = None
    user: str | None = None
    host: str | None = None
    open_ended: bool = False
    source: Command | None = None
    unclear: str = ""

    @property
    def name(self) -> str:
        """Base name of the program, empty where there is none or it is not literal."""
        if not self.argv or not self.argv[0].literal:
            return ""
        return self.argv[0].text.rpartition("/")[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One piece of state that a call may change.

    Attributes:
        kind: who captures it (a key of `kinds.table.KINDS`).
        name: what a person would call it (`/etc/hosts`, `database shop on localhost:5432`); with `kind`
            its identity.
        detail: what the kind needs to find it again. JSON, no credentials.
    """

    kind: str
    name: str
    detail: JsonObject


class Tier(StrEnum):
    """Who deals with a call (paper, Algorithm 1)."""

    NONE = "none"
    """Nothing is preserved: read-only, inside the workspace, or not asked for by the mode."""
    REWRITE = "rewrite"
    PAIR = "pair"
    SNAPSHOT = "snapshot"
    SUBAGENT = "subagent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What is done before a call runs.

    Attributes:
        read_only: the call changes nothing.
        tier: the first tier that matched any part of the call; SUBAGENT also where no model is configured.
        rules: ids of the rules that matched, in order of the call's parts.
        targets: what is preserved.
        restore: how each target would come back, one line each, in the targets' order.
        reason: why, in a sentence or two.
        uncovered: what the call may change and nothing here preserves; empty where all is.
        untried: the rules among these that no test has proven.
    """

    read_only: bool
    tier: Tier
    rules: tuple[str, ...] = ()
    targets: tuple[Target, ...] = ()
    restore: tuple[str, ...] = ()
    reason: str
    uncovered: tuple[str, ...] = ()
    untried: tuple[str, ...] = ()
