"""Runs one command as an agent would, with a backup before it, and brings the state back."""

from __future__ import annotations

import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path

from agentrewind.backup.kind import Captured, Outcome
from agentrewind.backup.kinds.table import kind_of
from agentrewind.backup.store import BackupStore
from agentrewind.backup.values import Command, Context, Target, Word
from agentrewind.records import Json


@dataclass(frozen=True)
class Preserved:
    """What was captured for a call, in order."""

    entries: tuple[tuple[Target, Captured], ...]
    store: BackupStore
    context: Context

    def restore(self) -> list[Outcome]:
        """Bring all back, last first."""
        return [
            kind_of(target.kind).restore(target, captured, self.store, self.context)
            for target, captured in reversed(self.entries)
        ]

    def plan(self) -> list[str]:
        return [
            line
            for target, captured in reversed(self.entries)
            for line in kind_of(target.kind).plan(target, captured, self.context)
        ]

    def fingerprints(self) -> list[str]:
        return [kind_of(target.kind).fingerprint(target, self.context) for target, _ in self.entries]


def command(text: str, cwd: Path, *, stdin: str | None = None, user: str | None = None) -> Command:
    """A simple command of literal words."""
    return Command(argv=tuple(Word(word) for word in shlex.split(text)), cwd=cwd, stdin=stdin, user=user)


def preserve(kind: str, call: Command, store: BackupStore, context: Context, **parameters: Json) -> Preserved:
    """Capture what the call may change according to this kind."""
    found = kind_of(kind).targets(call, dict(parameters), context)
    return Preserved(
        entries=tuple((each, kind_of(each.kind).capture(each, store, context)) for each in found),
        store=store,
        context=context,
    )


def perform(call: Command, context: Context) -> None:
    """Run the call for real."""
    done = subprocess.run(
        [word.text for word in call.argv],
        cwd=call.cwd,
        env=dict(context.env),
        input=call.stdin,
        stdin=subprocess.DEVNULL if call.stdin is None else None,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
