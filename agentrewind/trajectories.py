"""Makes a run of a trajectory that mini-SWE-agent saved, so that it can be looked at like a recorded one.

Nothing is made up: what the file does not hold (files, snapshots, tools and settings of the requests,
verdicts) the run does not hold; its header, its first note and every refusal say that it was not recorded.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

from agentrewind.clock import Clock
from agentrewind.durable import make_directory, sync_directory
from agentrewind.errors import DamagedError, ProtectedError, UsageError
from agentrewind.fields import Fields
from agentrewind.identity import Conversations, tool_input_id
from agentrewind.journal import create_segment
from agentrewind.lineage import uid_of
from agentrewind.provenance import TRAJECTORY
from agentrewind.records import (
    FORMAT,
    Finished,
    Header,
    JsonObject,
    LlmNode,
    MessageList,
    Metadata,
    Node,
    Note,
    Record,
    RecordUid,
    RunId,
    ToolNode,
)
from agentrewind.run_store import Run
from agentrewind.trajectories_calls import (
    FORMATS,
    Command,
    Conversation,
    Turn,
    conversation_of,
    exit_of,
)

HARNESS = "mini-swe-agent"
_TOOL = "bash"
_LARGEST = 512 << 20
_UNKNOWN = "unknown"


def is_trajectory(file: Path) -> bool:
    """Whether it is a file that begins as JSON does; an archive of a run never does."""
    if not file.is_file():
        return False
    with file.open("rb") as source:
        return source.read(64).lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"[")


def import_trajectory(file: Path, *, home: Path, clock: Clock) -> JsonObject:
    """Bring the trajectory into the store as a run; returns what came. The same file makes the same run.

    Raises:
        UsageError: the file is larger than 512 MiB.
        DamagedError: it is none, cut short, of a format that is not known, or not built as one; nothing
            was imported.
        ProtectedError: this trajectory is in the store already.
    """
    data = _read(file)
    document = _document(file, data)
    form = document.text("trajectory_format")
    if form not in FORMATS:
        known = " and ".join(FORMATS)
        raise DamagedError(f"{file}: the trajectory has the format {form!r}; this version reads {known}")
    digest = sha256(data).hexdigest()
    run_id = RunId(f"trajectory-{digest[:12]}")
    final = home / "runs" / run_id
    if final.exists():
        raise ProtectedError(f"this trajectory is in the store already, as run {run_id}")
    try:
        conversation = conversation_of(document, form)
        maker = _Maker(document, conversation, file=file, form=form, digest=digest, now=clock.now())
        header, records = maker.header(run_id), list(maker.records())
    except DamagedError as error:
        raise DamagedError(f"{file} is not built as {form} is: {error}; nothing was imported") from error
    make_directory(home / "runs")
    with tempfile.TemporaryDirectory(prefix=".import-", dir=home) as folder:
        run = Run(Path(folder) / run_id)
        create_segment(run.segment_path(0), header, put_blob=run.blobs.put)
        with run.writer(0) as writer:
            for record in records:
                writer.append(record, durable=False)
            writer.sync()
        nodes = len(run.timeline().nodes)
        run.directory.rename(final)
        sync_directory(final.parent)
    return {
        "run_id": run_id,
        "nodes": nodes,
        "snapshots": 0,
        "redacted": False,
        "absent": 0,
        TRAJECTORY: form,
    }


def _read(file: Path) -> bytes:
    if not file.is_file() or (size := file.stat().st_size) > _LARGEST:
        raise UsageError(
            f"{file} is no file, or larger than {_LARGEST >> 20} MiB; no trajectory is read from it"
        )
    data = file.read_bytes()
    if len(data) != size:
        raise DamagedError(f"{file} changed while it was read; import it when its agent has ended")
    return data


def _document(file: Path, data: bytes) -> Fields:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise DamagedError(f"{file} is no whole JSON document ({error}); nothing was imported") from error
    if not isinstance(found, dict) or not isinstance(found.get("trajectory_format"), str):
        raise DamagedError(
            f"{file} is no archive that `agentrewind export` wrote, and no trajectory that mini-SWE-agent "
            "saved: it has no field trajectory_format"
        )
    return Fields(found)


@dataclass(slots=True, kw_only=True)
class _Clock:
    """The time that the file has told last; what it does not tell takes no time."""

    last: float | None
    unknown: str

    def metadata(self, at: float | None) -> Metadata:
        """Of a call that ended then: it is taken to begin where the one before it ended."""
        began = self.last if self.last is not None else at
        took = 0 if at is None or began is None else max(0, round((at - began) * 1000))
        if at is not None:
            self.last = at
        return Metadata(created_at=self.moment(began), latency_ms=took)

    def moment(self, seconds: float | None) -> str:
        if seconds is None:
            return self.unknown
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


class _Maker:
    """Makes the records of one trajectory."""

    def __init__(
        self, document: Fields, conversation: Conversation, *, file: Path, form: str, digest: str, now: str
    ) -> None:
        self._conversation = conversation
        self._file, self._form, self._digest = file, form, digest
        self._info = document.fields("info")
        config = Fields(self._info.mapping("config"), "info.config")
        self._model = Fields(config.mapping("model"), "info.config.model").text_or_none("model_name")
        times = [each.at for each in conversation.turns if each.at is not None]
        self._clock = _Clock(last=times[0] if times else None, unknown=now)
        self._began = self._clock.moment(self._clock.last)
        self._timed = bool(times)
        self._count = 0

    def header(self, run_id: RunId) -> Header:
        version = self._info.text_or_none("mini_version")
        return Header(
            format=FORMAT,
            run_id=run_id,
            segment=0,
            forked_from=None,
            created_at=self._began,
            workspaces={},
            harness=HARNESS,
            model=self._model,
            versions={HARNESS: version} if version else {},
            options={TRAJECTORY: {"format": self._form, "sha256": self._digest, "file": self._file.name}},
        )

    def records(self) -> Iterator[Record]:
        yield self._note()
        requests, base, kept = Conversations(), None, 0
        for turn in self._conversation.turns:
            parent = None
            if turn.answer is not None:
                node = self._answer(turn, turn.answer, requests, base=base, kept=kept)
                base, kept, parent = node.record_uid, turn.sent, node.record_uid
                yield node
            yield from self._commands(turn, parent)
        if (end := self._finished()) is not None:
            yield end

    def _note(self) -> Note:
        stats = Fields(self._info.mapping("model_stats"), "info.model_stats")
        times = (
            "a call is taken to begin when the message before it was written"
            if self._timed
            else "it tells no times, so that all are those of the import"
        )
        return Note(
            topic=TRAJECTORY,
            text=f"made of {self._file.name}, which mini-SWE-agent saved, and not recorded: no files, no "
            f"snapshots, no tools or settings of the requests, no verdicts; {times}",
            at=self._began,
            data={
                "api_calls": stats.get("api_calls"),
                "instance_cost": stats.get("instance_cost"),
                "exit_status": self._info.get("exit_status"),
                "submission": self._info.get("submission"),
            },
        )

    def _answer(
        self, turn: Turn, answer: JsonObject, requests: Conversations, *, base: RecordUid | None, kept: int
    ) -> LlmNode:
        messages = self._conversation.messages
        model = self._model or turn.model or _UNKNOWN
        request = requests.identify(model=model, messages=messages[: turn.sent], tools=None)
        return LlmNode(
            record_uid=self._uid(),
            input_id=request.input_id,
            conversation=request.conversation,
            client=HARNESS,
            model=model,
            parameters={},
            messages=MessageList(base=base, keep=kept, append=messages[kept : turn.sent]),
            tools=None,
            output=answer,
            error=None,
            metadata=self._clock.metadata(turn.at),
        )

    def _commands(self, turn: Turn, parent: RecordUid | None) -> Iterator[Node]:
        seen: dict[str, int] = {}
        alone = len(turn.commands) == 1
        for command in turn.commands:
            ordinal = seen.get(command.text, 0)
            seen[command.text] = ordinal + 1
            # of several, the file tells only when all had ended
            metadata = self._clock.metadata(command.at if alone else None)
            yield self._command(command, parent, ordinal, metadata)
        if times := [each.at for each in turn.commands if each.at is not None]:
            self._clock.last = max(times)

    def _command(
        self, command: Command, parent: RecordUid | None, ordinal: int, metadata: Metadata
    ) -> ToolNode:
        arguments: JsonObject = {"command": command.text}
        return ToolNode(
            record_uid=self._uid(),
            input_id=tool_input_id(_TOOL, arguments),
            tool_name=_TOOL,
            tool_call_id=command.call_id,
            arguments=arguments,
            parent=parent,
            ordinal=ordinal,
            output=command.output,
            error=None,
            interrupted=command.output is None,
            metadata=metadata,
        )

    def _finished(self) -> Finished | None:
        """How the program says that it ended; no submission was judged, so that none counts as accepted."""
        end = self._conversation.end
        status, failed = exit_of(end) if end is not None else ("", False)
        status = status or str(self._info.get("exit_status") or "")
        if not status:
            return None
        failed = failed or bool(self._info.get("traceback"))
        return Finished(
            state="error" if failed else "stopped",
            detail=f"mini-SWE-agent ended with {status}",
            at=self._clock.moment(self._clock.last),
        )

    def _uid(self) -> RecordUid:
        self._count += 1
        return uid_of(self._count)
