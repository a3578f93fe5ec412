"""Opens backups for a run, or what restores them, from the place where runs are kept."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from agentrewind.backup.decide import decide
from agentrewind.backup.hook import Backups, Covers
from agentrewind.backup.log import BackupLog
from agentrewind.backup.places import directory_of
from agentrewind.backup.policy import BackupPolicy
from agentrewind.backup.rules.loading import load_rules
from agentrewind.backup.store import BackupStore
from agentrewind.backup.understanding.shell import read_shell
from agentrewind.backup.values import Context, Decision, ToolCall
from agentrewind.clock import Clock
from agentrewind.errors import UsageError


def open_backups(
    home: Path,
    *,
    policy: BackupPolicy,
    run_id: str | None,
    workspace: Path | None,
    environment: Mapping[str, str],
    clock: Clock,
    cwd: Path | None = None,
    request: str = "",
) -> Backups:
    """The backups of an agent that works in `workspace`; `request` is what it was asked to do.

    Raises UsageError for rules that cannot be used.
    """
    rules = load_rules(home)

    def chosen(call: ToolCall, context: Context) -> Decision:
        return decide(call, context, rules)

    here = cwd or workspace or Path("/")
    return Backups(
        policy=policy,
        decide=chosen,
        store=BackupStore(directory_of(home)),
        log=BackupLog(directory_of(home), clock),
        clock=clock,
        context=Context(cwd=here, env=environment, home=user_home(environment), workspace=workspace),
        run_id=run_id,
        covers=_covers(policy, clock, request, home),
    )


def _covers(policy: BackupPolicy, clock: Clock, request: str, home: Path) -> Covers | None:
    if not policy.model:
        return None
    from agentrewind.backup.assistant.covering import ModelCovers
    from agentrewind.backup.assistant.model import LitellmModel

    return ModelCovers(
        policy=policy, model=LitellmModel(policy.model), clock=clock, request=request, home=home
    )


def check_ready(home: Path) -> None:
    """Raises UsageError where a run that starts now could make no backups: rules, or packages missing."""
    here = Context(cwd=Path("/"), env={}, home=Path("/"))
    if unclear := read_shell("true", here).unclear:
        raise UsageError(f"backups cannot read commands ({unclear}); install agentrewind[backup]")
    load_rules(home)


def user_home(environment: Mapping[str, str]) -> Path:
    """The home directory that `~` stands for."""
    named = environment.get("HOME", "")
    return Path(named) if named.startswith("/") else Path("/")
