"""Writes nodes and events of one agent process, and takes the snapshots between them.

Order of work (law 10): what a call changed before is snapshotted, the intent is durable, the call is
made, its outcome is appended; the next intent makes that outcome durable before the next effect.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Protocol

from agentrewind.clock import Clock
from agentrewind.errors import StorageError
from agentrewind.records import (
    MAIN_WORKSPACE,
    AttemptFailed,
    Change,
    CommitId,
    ErrorRecord,
    InputId,
    Json,
    JsonObject,
    LlmNode,
    Metadata,
    NodeKind,
    OutsideChange,
    Record,
    RecordUid,
    SnapshotTaken,
    Started,
    ToolNode,
    WorkspaceSpan,
)
from agentrewind.tickets import (
    SHOWN_CHANGES,
    Captured,
    LlmFacts,
    LlmTicket,
    Shot,
    ToolTicket,
    llm_node,
    span_before,
    tool_node,
)


class Appends(Protocol):
    """Where records go: one segment."""

    def append(self, record: Record, *, durable: bool) -> None: ...


class Snapshots(Protocol):
    """Takes snapshots of the workspace and compares them."""

    def snapshot(self, *, label: str, hurried: bool) -> Captured: ...
    def changes(self, before: CommitId, after: CommitId) -> tuple[Change, ...]: ...
    def catch_up(self) -> None: ...


@dataclass(slots=True)
class _Retry:
    """The LLM call that failed last: an equal request continues it, any other one closes it."""

    record_uid: RecordUid
    input_id: InputId
    attempt: int
    facts: LlmFacts
    error: ErrorRecord
    created_at: str


class Recorder:
    """The one writer of a segment while its agent process lives. Safe for threads.

    Args:
        journal: the segment to append to.
        snapshots: the workspace.
        next_uid: gives fresh record uids, ascending over the run.
        processes: lists live descendants as (pid, start tick).
        last: commit that the log names last, None at the start of a run.
        last_uid: node after which the process begins, for outside changes.
        unsettled: nodes that still wait for their after-commit, each with its before-commit.
    """

    def __init__(
        self,
        *,
        journal: Appends,
        snapshots: Snapshots,
        clock: Clock,
        next_uid: Callable[[], RecordUid],
        processes: Callable[[], tuple[tuple[int, int], ...]],
        last: CommitId | None = None,
        last_uid: RecordUid | None = None,
        unsettled: Iterable[tuple[RecordUid, CommitId]] = (),
    ) -> None:
        self._journal = journal
        self._snapshots = snapshots
        self._clock = clock
        self._next_uid = next_uid
        self._unused: RecordUid | None = None
        self._processes = processes
        self._last = last
        self._last_uid = last_uid
        self._unsettled: dict[RecordUid, CommitId] = dict(unsettled)
        self._quiet: set[RecordUid] = set()
        self._running: set[RecordUid] = set()
        self._retry: _Retry | None = None
        self._lock = threading.RLock()
        self._taken: Captured | None = None
        self._shots: list[Future[Shot]] = []
        self._catching_up: Future[None] | None = None
        self._camera = ThreadPoolExecutor(max_workers=1, thread_name_prefix="snapshot")

    def expect_nothing_of(self, uids: Iterable[RecordUid]) -> None:
        """These nodes change no file: what changed while only they wait for a snapshot came from outside."""
        with self._lock:
            self._quiet.update(uids)

    def write(self, record: Record, *, durable: bool = False) -> None:
        """Append any record. Raises StorageError."""
        with self._lock:
            self._journal.append(record, durable=durable)

    def begin_llm(self, input_id: InputId) -> LlmTicket:
        """Make the intent durable and start the snapshot, which runs while the model answers."""
        with self._lock:
            retry = self._retry if self._retry is not None and self._retry.input_id == input_id else None
            if retry is None:
                self._close_failed()
            uid = retry.record_uid if retry else self._new_uid()
            attempt = retry.attempt + 1 if retry else 1
            started = Started(
                record_uid=uid,
                node_kind=NodeKind.LLM,
                input_id=input_id,
                at=self._clock.now(),
                attempt=attempt,
                processes=self._processes(),
            )
            self._begin(started)
            if self._catching_up is not None and self._catching_up.done():
                self._catching_up.result()
            shot = self._camera.submit(self._settle, f"before {uid}", hurried=True)
            self._shots.append(shot)
            # waits for the disk while the model answers, instead of before the next tool
            self._catching_up = self._camera.submit(self._snapshots.catch_up)
            return LlmTicket(
                record_uid=uid,
                input_id=input_id,
                attempt=attempt,
                created_at=started.at,
                began=self._clock.monotonic(),
                before=shot,
            )

    def end_llm(self, ticket: LlmTicket, facts: LlmFacts, output: JsonObject) -> LlmNode:
        """Append the node; the snapshot before it is finished when this returns."""
        latency = self._elapsed(ticket.began)
        shot = ticket.before.result()
        before = shot.captured
        span = span_before(before)
        metadata = Metadata(
            created_at=ticket.created_at,
            latency_ms=latency,
            attempts=ticket.attempt,
            workspaces={MAIN_WORKSPACE: span},
            snapshot_us=shot.took_us,
        )
        node = llm_node(ticket.record_uid, ticket.input_id, facts, output=output, metadata=metadata)
        with self._lock:
            if self._retry is not None and self._retry.record_uid == ticket.record_uid:
                self._retry = None
            self._journal.append(node, durable=False)
            self._awaits_snapshot(node.record_uid, before.commit, quiet=True)
        return node

    def fail_llm(self, ticket: LlmTicket, facts: LlmFacts, error: ErrorRecord) -> None:
        """Append a failed attempt; an equal request that follows is the next attempt of the same node."""
        ticket.before.result()
        with self._lock:
            self._journal.append(
                AttemptFailed(
                    record_uid=ticket.record_uid, attempt=ticket.attempt, error=error, at=self._clock.now()
                ),
                durable=True,
            )
            self._retry = _Retry(
                ticket.record_uid, ticket.input_id, ticket.attempt, facts, error, ticket.created_at
            )

    def begin_tool(
        self,
        *,
        name: str,
        call_id: str | None,
        arguments: Json,
        input_id: InputId,
        parent: RecordUid | None,
        ordinal: int,
    ) -> ToolTicket:
        """Snapshot what came before, then make the intent durable."""
        shot = self._settle(f"before tool {name}", hurried=True)
        with self._when_captured():
            self._close_failed()
            uid = self._new_uid()
            started = Started(
                record_uid=uid,
                node_kind=NodeKind.TOOL,
                input_id=input_id,
                at=self._clock.now(),
                tool_name=name,
                tool_call_id=call_id,
                parent=parent,
                ordinal=ordinal,
                processes=self._processes(),
            )
            self._begin(started)
            self._running.add(uid)
            return ToolTicket(
                record_uid=uid,
                input_id=input_id,
                tool_name=name,
                tool_call_id=call_id,
                arguments=arguments,
                parent=parent,
                ordinal=ordinal,
                created_at=started.at,
                began=self._clock.monotonic(),
                before=self._captured(),
                snapshot_us=shot.took_us,
            )

    def _new_uid(self) -> RecordUid:
        uid, self._unused = self._unused or self._next_uid(), None
        return uid

    def _begin(self, started: Started) -> None:
        """Make the intent durable; the id of one that could not be written goes to the next call."""
        try:
            self._journal.append(started, durable=True)
        except StorageError:
            if started.attempt == 1:
                self._unused = started.record_uid
            raise

    @contextmanager
    def _when_captured(self) -> Iterator[None]:
        """The lock, once no snapshot of an LLM call that began before is still to be taken.

        A tool call that another conversation makes would else be half done in it.
        """
        while True:
            with self._lock:
                self._shots = [each for each in self._shots if not each.done()]
                if not self._shots:
                    yield
                    return
                shots = list(self._shots)
            wait(shots)

    def _captured(self) -> Captured:
        assert self._taken is not None
        return self._taken

    def end_tool(
        self,
        ticket: ToolTicket,
        *,
        output: Json,
        error: ErrorRecord | None,
        external: tuple[JsonObject, ...] = (),
    ) -> ToolNode:
        """Append the node of a tool call that returned or raised; `external`: its effects elsewhere."""
        node = tool_node(ticket, output=output, error=error, latency=self._elapsed(ticket.began))
        node = replace(node, metadata=replace(node.metadata, external=external))
        with self._lock:
            self._running.discard(ticket.record_uid)
            self._journal.append(node, durable=False)
            self._awaits_snapshot(node.record_uid, ticket.before.commit, quiet=False)
        return node

    def interrupted(
        self,
        started: Started,
        *,
        arguments: Json,
        before: CommitId | None,
        output: Json,
        external: tuple[JsonObject, ...] = (),
        again: bool = False,
    ) -> ToolNode:
        """Append the node of a call whose process died: its outcome is unknown and it never runs again.

        `again`: it has a node already, which tells of more than the files show.
        """
        with self._lock:
            uid = self._new_uid() if again else started.record_uid
        node = ToolNode(
            record_uid=uid,
            input_id=started.input_id,
            tool_name=started.tool_name or "",
            tool_call_id=started.tool_call_id,
            arguments=arguments,
            parent=started.parent,
            ordinal=started.ordinal,
            output=output,
            error=None,
            interrupted=True,
            metadata=Metadata(
                created_at=started.at,
                latency_ms=0,
                workspaces={MAIN_WORKSPACE: WorkspaceSpan(before_commit=before)},
                external=external,
            ),
        )
        with self._lock:
            self._journal.append(node, durable=True)
            if before is not None:
                self._awaits_snapshot(node.record_uid, before, quiet=False)
        return node

    def settle(self, label: str, *, hurried: bool = True) -> Captured:
        """Snapshot now: waiting nodes get it as their after-commit, else it is an outside change.

        One that is not hurried is whole, however long that takes.
        """
        return self._settle(label, hurried=hurried).captured

    def _settle(self, label: str, *, hurried: bool) -> Shot:
        with self._lock:
            began = self._clock.monotonic()
            taken = self._snapshots.snapshot(label=label, hurried=hurried)
            previous = self._last
            waiting, self._unsettled = self._unsettled, {}
            for uid, before in waiting.items():
                self._journal.append(
                    SnapshotTaken(
                        record_uid=uid,
                        workspaces={MAIN_WORKSPACE: self._span(before, taken)},
                        at=self._clock.now(),
                    ),
                    durable=False,
                )
            # what changes while a call runs is that call's, which gets a span of its own when it ends
            attributed = bool(self._running) or any(uid not in self._quiet for uid in waiting)
            if previous is not None and previous != taken.commit and not attributed:
                self._outside(previous, taken)
            self._quiet.clear()
            self._last, self._taken = taken.commit, taken
            took = round((self._clock.monotonic() - began) * 1_000_000)
            return Shot(captured=taken, took_us=took)

    def last_commit(self) -> CommitId | None:
        """The commit that the log names last."""
        return self._last

    def close(self) -> None:
        """Take the last node's snapshot and end the camera."""
        try:
            self.settle("end")
        finally:
            self._camera.shutdown()

    def _outside(self, before: CommitId, taken: Captured) -> None:
        span = self._span(before, taken)
        if span.diff_total == 0:
            return
        self._journal.append(
            OutsideChange(after=self._last_uid, workspaces={MAIN_WORKSPACE: span}, at=self._clock.now()),
            durable=False,
        )

    def _span(self, before: CommitId, taken: Captured) -> WorkspaceSpan:
        if before == taken.commit:
            return WorkspaceSpan(
                before_commit=before,
                after_commit=before,
                changed=False,
                partial=taken.partial,
                left_out=taken.left_out[:SHOWN_CHANGES],
            )
        changes = self._snapshots.changes(before, taken.commit)
        return WorkspaceSpan(
            before_commit=before,
            after_commit=taken.commit,
            changed=True,
            diff_summary=changes[:SHOWN_CHANGES],
            diff_total=len(changes),
            partial=taken.partial,
            left_out=taken.left_out[:SHOWN_CHANGES],
        )

    def _awaits_snapshot(self, uid: RecordUid, before: CommitId, *, quiet: bool) -> None:
        self._unsettled[uid] = before
        self._last_uid = uid
        if quiet:
            self._quiet.add(uid)

    def _close_failed(self) -> None:
        if self._retry is None:
            return
        failed, self._retry = self._retry, None
        span = WorkspaceSpan(before_commit=self._last)
        metadata = Metadata(
            created_at=failed.created_at,
            latency_ms=0,
            attempts=failed.attempt,
            workspaces={MAIN_WORKSPACE: span},
        )
        node = llm_node(
            failed.record_uid, failed.input_id, failed.facts, error=failed.error, metadata=metadata
        )
        self._journal.append(node, durable=False)

    def _elapsed(self, began: float) -> int:
        return round((self._clock.monotonic() - began) * 1000)
