"""What a person does from the page: look what a restore would do, restore, fork. Always in two steps."""

from __future__ import annotations

import re
import secrets
import shlex
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from agentrewind.errors import ProtectedError, UsageError
from agentrewind.manual import Done, Machine, Outside, restore_elsewhere, restore_in_place
from agentrewind.records import CommitId, LlmNode
from agentrewind.run_store import Run
from agentrewind.view.reading import Reading

_COMMIT = re.compile(r"[0-9a-f]{40}")
_PLANS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Restore:
    """A restore as a person chose it.

    Attributes:
        into: None for the workspace itself.
        external: what later calls changed outside the workspace is taken back as well.
    """

    run_id: str
    node: str
    after: bool
    into: Path | None
    outside: Outside
    external: bool

    @property
    def command(self) -> str:
        """The same on the command line."""
        words = ["agentrewind", "restore", self.run_id, self.node]
        words += ["--in-place"] if self.into is None else ["--into", str(self.into)]
        words += ["--after"] if self.after else []
        words += ["--outside", self.outside.value] if self.outside is not Outside.STOP else []
        words += ["--external"] if self.external else []
        return shlex.join(words)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A restore and what it would do. `ticket` allows it once; it is empty where it would be refused."""

    restore: Restore
    would: Done
    ticket: str
    refused: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fork:
    """A fork as a person chose it.

    Attributes:
        command: the same on the command line, where it is started at once.
        known: whether this version's command line has `fork`.
        ticket: allows it once; empty where it cannot be made from here.
        made: the id of the new run, once it was made.
    """

    run_id: str
    node: str
    memory: str
    answer: str
    known: bool
    ticket: str = ""
    made: str = ""

    @property
    def command(self) -> str:
        words = ["agentrewind", "fork", self.run_id, "--at", self.node]
        words += ["--memory", self.memory] if self.memory else []
        words += ["--answer", self.answer] if self.answer else []
        return shlex.join(words)


class Forking(Protocol):
    """Makes forks; given by whoever knows how."""

    def prepare(self, run: Run, node: str, *, memory: str, answer: str) -> str:
        """Make the fork, start nothing, and give the id of the new run."""
        ...


@dataclass(slots=True)
class Actions:
    """Carries out what pages ask for; safe to share between threads.

    Attributes:
        directory: what relative folders are relative to.
        forks: whether the command line has `fork`.
        forking: makes forks from the page; None where people are shown the command instead.
    """

    machine: Machine
    directory: Path
    forks: bool
    forking: Forking | None = None
    _plans: dict[str, Plan | Fork] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def commits(self, before: str, after: str) -> tuple[CommitId, CommitId]:
        """Two snapshots out of an address. Raises UsageError."""
        if not (_COMMIT.fullmatch(before) and _COMMIT.fullmatch(after)):
            raise UsageError("the address names no two snapshots")
        return CommitId(before), CommitId(after)

    def plan_restore(self, reading: Reading, form: Mapping[str, str]) -> Plan:
        """What a restore would do; the workspace is snapshotted, nothing else happens."""
        chosen = self._chosen(reading, form)
        would = self._carry_out(reading, chosen, dry_run=True)
        refused = ""
        if would.outside and chosen.outside is Outside.STOP:
            refused = "paths changed outside any tool call; choose whether to keep or to revert these changes"
        plan = Plan(
            restore=chosen, would=would, ticket="" if refused else secrets.token_urlsafe(16), refused=refused
        )
        if plan.ticket:
            self._keep(plan.ticket, plan)
        return plan

    def restore(self, reading: Reading, form: Mapping[str, str]) -> tuple[Plan, Done]:
        """The restore that was shown; each ticket counts once.

        Raises:
            UsageError: nothing was shown under this ticket, or it was done already.
            ProtectedError: it would no longer do what was shown.
        """
        plan = self._take(form)
        if not isinstance(plan, Plan) or plan.restore.run_id != reading.run_id:
            raise UsageError("this restore was done already, or never shown; look at it once more first")
        if self._carry_out(reading, plan.restore, dry_run=True) != plan.would:
            raise ProtectedError(
                "the files have changed since this was shown, nothing was done; look at it once more"
            )
        return plan, self._carry_out(reading, plan.restore, dry_run=False)

    def plan_fork(self, reading: Reading, form: Mapping[str, str]) -> Fork:
        """What a fork would be; nothing is done."""
        node = reading.timeline.node(form.get("node", ""))
        if not isinstance(node, LlmNode):
            raise UsageError(f"{node.record_uid} is a tool call; fork at the answer that asked for it")
        plan = Fork(
            run_id=reading.run_id,
            node=node.record_uid,
            memory=form.get("memory", "").strip(),
            answer=form.get("answer", "").strip(),
            known=self.forks,
            ticket=secrets.token_urlsafe(16) if self.forking is not None else "",
        )
        if plan.ticket:
            self._keep(plan.ticket, plan)
        return plan

    def fork(self, reading: Reading, form: Mapping[str, str]) -> Fork:
        """The fork that was shown; each ticket counts once.

        Raises UsageError where nothing was shown under this ticket, or it was made already.
        """
        plan = self._take(form)
        if self.forking is None or not isinstance(plan, Fork) or plan.run_id != reading.run_id:
            raise UsageError("this fork was made already, or never shown; look at it once more first")
        made = self.forking.prepare(reading.run, plan.node, memory=plan.memory, answer=plan.answer)
        return replace(plan, made=made, ticket="")

    def _keep(self, ticket: str, plan: Plan | Fork) -> None:
        with self._lock:
            self._plans[ticket] = plan
            while len(self._plans) > _PLANS:
                del self._plans[next(iter(self._plans))]

    def _take(self, form: Mapping[str, str]) -> Plan | Fork | None:
        with self._lock:
            return self._plans.pop(form.get("ticket", ""), None)

    def _chosen(self, reading: Reading, form: Mapping[str, str]) -> Restore:
        into = form.get("into", "").strip()
        where = form.get("where", "")
        if where not in ("into", "in-place") or (where == "into" and not into):
            raise UsageError("say where to restore: into a folder, or in the workspace itself")
        try:
            outside = Outside(form.get("outside", "stop"))
        except ValueError as error:
            raise UsageError("changes from outside can be kept or reverted") from error
        return Restore(
            run_id=reading.run_id,
            node=reading.timeline.node(form.get("node", "")).record_uid,
            after=form.get("moment") == "after",
            into=self.directory / into if where == "into" else None,
            outside=outside if where == "in-place" else Outside.STOP,
            external=where == "in-place" and form.get("external") == "yes",
        )

    def _carry_out(self, reading: Reading, chosen: Restore, *, dry_run: bool) -> Done:
        if chosen.into is not None:
            return restore_elsewhere(
                reading.run,
                chosen.node,
                after=chosen.after,
                into=chosen.into,
                dry_run=dry_run,
                machine=self.machine,
            )
        return restore_in_place(
            reading.run,
            chosen.node,
            after=chosen.after,
            outside=chosen.outside,
            dry_run=dry_run,
            machine=self.machine,
            external=chosen.external,
        )
