"""A place outside any workspace where commands really run, are preserved for first, and are taken back."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from agentrewind.backup.decide import decide
from agentrewind.backup.entries import Entry
from agentrewind.backup.hook import Backups, Guarded
from agentrewind.backup.log import BackupLog
from agentrewind.backup.policy import BackupPolicy
from agentrewind.backup.restoring import Restoring, Result
from agentrewind.backup.rules.loading import load_rules
from agentrewind.backup.store import BackupStore
from agentrewind.backup.values import Context, Decision, ToolCall
from agentrewind.clock import SystemClock
from tests.workspace.disk import GIT_ENVIRONMENT, Fact, manifest

RULES = load_rules(None)


@dataclass(kw_only=True)
class Bench:
    """A directory `out` that is no workspace, a workspace beside it, and a store of backups."""

    base: Path
    policy: BackupPolicy = field(default_factory=BackupPolicy)
    more: Mapping[str, str] = field(default_factory=dict)
    store_at: Path | None = None

    def __post_init__(self) -> None:
        self.out, self.workspace, home = self.base / "out", self.base / "ws", self.base / "home"
        for directory in (self.out, self.workspace, home):
            directory.mkdir(parents=True)
        # its own file, and never a device: git puts a new file in the place of the one that it changes
        config = {"GIT_CONFIG_GLOBAL": str(home / ".gitconfig")}
        self.environment = {**GIT_ENVIRONMENT, **config, "HOME": str(home), "OUT": str(self.out), **self.more}
        self.context = Context(cwd=self.out, env=self.environment, home=home, workspace=self.workspace)
        place = self.store_at or self.base / "store"
        self.store = BackupStore(place)
        self.log = BackupLog(place, SystemClock())

    @property
    def backups(self) -> Backups:
        return Backups(
            policy=self.policy,
            decide=lambda call, context: decide(call, context, RULES),
            store=self.store,
            log=self.log,
            clock=SystemClock(),
            context=self.context,
            run_id="run",
        )

    @property
    def restoring(self) -> Restoring:
        return Restoring(
            store=self.store,
            log=self.log,
            clock=SystemClock(),
            environment=self.environment,
            workspace=self.workspace,
        )

    def decision(self, command: str) -> Decision:
        return decide(self.call(command), self.context, RULES)

    @staticmethod
    def call(command: str) -> ToolCall:
        return ToolCall(name="bash", arguments={"command": command})

    def run(self, command: str) -> subprocess.CompletedProcess[bytes]:
        """The command alone, as an agent's shell runs it."""
        return subprocess.run(
            ["bash", "-c", command],
            cwd=self.out,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )

    def do(self, command: str, node: str = "rec_000001") -> Guarded:
        """Preserve, run and compare, as the layer does; a blocked command does not run."""
        guarded = self.backups.before(self.call(command), node)
        if not guarded.blocked:
            self.run(command)
        self.backups.after(guarded)
        return guarded

    def entries(self) -> list[Entry]:
        return list(self.log.read().entries.values())

    def take_back(self, *ids: str, by: str = "test", force: bool = False) -> list[Result]:
        """Restore these entries, or all that calls made."""
        chosen = ids or tuple(entry.id for entry in self.entries() if entry.undoes is None)
        return self.restoring.restore(chosen, by=by, force=force)

    def facts(self, root: Path | None = None) -> dict[bytes, Fact]:
        """What is on the disk; a directory's time alone says nothing of what is in it."""
        found = manifest(root or self.out)
        return {
            path: replace(fact, mtime_ns=0) if fact.kind == "dir" else fact for path, fact in found.items()
        }

    def write(self, name: str, content: str = "", mode: int = 0o644) -> Path:
        path = self.out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
        path.chmod(mode)
        os.utime(path, ns=(1_600_000_000_123_456_789, 1_600_000_000_123_456_789))
        return path
