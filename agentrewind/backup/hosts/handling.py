"""Answers one call of a hook: preserve before it, compare after it, and never fail without saying so."""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from pathlib import Path

import orjson

from agentrewind.backup.hook import Backups, Guarded
from agentrewind.backup.hosts.host import DocumentError, Host, HostCall, Reply, When
from agentrewind.backup.hosts.request import ACTIVE, Request
from agentrewind.backup.hosts.table import host_of
from agentrewind.backup.joining import open_backups
from agentrewind.backup.policy import BackupPolicy
from agentrewind.clock import Clock
from agentrewind.commands.session import Session
from agentrewind.errors import AgentRewindError
from agentrewind.records import Json


def answer(request: Request, clock: Clock) -> Reply:
    """The reply to one request, whatever happens: a failure blocks the call or warns, as its options say."""
    try:
        host = host_of(request.harness)
    except AgentRewindError as error:
        # without a known form, code 2 is what the harnesses take for a refusal
        return Reply(stderr=f"agentrewind backup hook: {error}\n", code=2)
    try:
        return _answer(request, host, clock)
    except (AgentRewindError, OSError) as error:
        return failed(request, host, str(error))
    except Exception:  # noqa: BLE001 - a defect must not let a call through unseen
        return failed(request, host, f"a defect: {traceback.format_exc(limit=-3)}")


def failed(request: Request, host: Host, reason: str) -> Reply:
    """What is said of a hook that could not do its work."""
    if request.blocks_on_failure:
        return host.blocks(f"blocked: the backup hook failed, so nothing was preserved: {reason}")
    return host.passes(f"agentrewind: the backup hook failed, and the call runs without a backup: {reason}")


def _answer(request: Request, host: Host, clock: Clock) -> Reply:
    # options are read first: a wrong one is no reason to let a call pass
    policy = BackupPolicy.from_json(
        {
            "on_failure": request.option("--on-failure", "block"),
            "on_unknown": request.option("--on-unknown", "run"),
            "trigger": request.option("--trigger", "all"),
        }
    )
    if request.environment.get(ACTIVE):
        return host.passes("")
    asked = host.read(_document(request.document))
    if asked is None:
        return host.passes("")
    backups = _backups(request, asked, policy, clock)
    node = f"{request.harness}:{asked.key}"
    if asked.when is When.AFTER:
        _after(backups, node)
        return host.passes("")
    guarded = backups.before(asked.call, node)
    if guarded.blocked:
        return host.blocks(guarded.blocked)
    return host.passes(_failures(guarded))


def _document(data: bytes) -> Mapping[str, Json]:
    try:
        document = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise DocumentError(f"what stands on standard input is not JSON: {error}") from error
    if not isinstance(document, dict):
        raise DocumentError("what stands on standard input is no JSON object")
    return document


def _backups(request: Request, asked: HostCall, policy: BackupPolicy, clock: Clock) -> Backups:
    session = Session(environment=request.environment, directory=Path(request.directory), clock=clock)
    named = request.option("--workspace", "")
    return open_backups(
        session.home,
        policy=policy,
        run_id=None,
        workspace=(session.directory / named).resolve() if named else None,
        environment=request.environment,
        clock=clock,
        cwd=session.directory / asked.cwd,
    )


def _after(backups: Backups, node: str) -> None:
    """Note the state after the call on the newest entries that were made before it."""
    found = [
        entry
        for entry in backups.log.read().entries.values()
        if entry.run_id is None and entry.node == node and entry.after is None and entry.target is not None
    ]
    if found:
        last = found[-1].occasion
        backups.after(Guarded(entries=tuple(entry for entry in found if entry.occasion == last)))


def _failures(guarded: Guarded) -> str:
    """What people are told of a call that runs although its backup failed."""
    reasons = [reason for entry in guarded.entries if entry.state == "failed" for reason in entry.detail]
    return f"agentrewind: the call runs without a backup: {'; '.join(reasons)}" if reasons else ""
