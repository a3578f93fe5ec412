"""Carries out the two rewind tools while the agent runs: answers, refuses, or writes the decision down."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import orjson

from agentrewind.clock import Clock
from agentrewind.options import Ablation, RunOptions
from agentrewind.records import Json, JsonObject, LlmNode, Record, RecordUid, Restored, RewindAsked
from agentrewind.rewind.candidates import View, listing, refusal
from agentrewind.rewind.resume import fork_of
from agentrewind.rewind.tools import CANDIDATES
from agentrewind.timeline import Timeline

_WENT_BACK = "went_back"


class Writes(Protocol):
    """Where the decision is written down."""

    def write(self, record: Record, *, durable: bool = False) -> None: ...


class RestoresInPlace(Protocol):
    """Puts the workspace back while the process lives on (context not rewound)."""

    def __call__(self, target: LlmNode) -> Restored: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A tool's answer. `rewinds`: the decision is on disk and the process has to end."""

    value: Json
    rewinds: bool = False


class Conduct:
    """The two tools of one agent process.

    Args:
        timeline: reads the log anew.
        restore_in_place: used only where the context is not rewound.
        not_restored: what a rewind leaves as it is, for the candidates.
    """

    def __init__(
        self,
        *,
        timeline: Callable[[], Timeline],
        journal: Writes,
        options: RunOptions,
        clock: Clock,
        restore_in_place: RestoresInPlace,
        not_restored: tuple[str, ...] = (),
    ) -> None:
        self._timeline = timeline
        self._journal = journal
        self._options = options
        self._clock = clock
        self._restore_in_place = restore_in_place
        self._not_restored = not_restored

    def call(self, name: str, arguments: Json, *, asking: RecordUid | None, record_uid: RecordUid) -> Outcome:
        """Carry out one of the two tools, asked for by answer `asking` as tool node `record_uid`."""
        timeline = self._timeline()
        view = view_of(timeline, asking=asking, not_restored=self._not_restored)
        if name == CANDIDATES:
            return Outcome(value=_text(self._listing(timeline, view)))
        problem = _problem(arguments) or self._over_budget(timeline)
        if problem is None:
            assert isinstance(arguments, dict)
            problem = refusal(view, _target(arguments))
        if problem is not None:
            return Outcome(value=_text({"error": problem}))
        assert isinstance(arguments, dict)
        return self._commit(timeline, arguments, record_uid)

    @staticmethod
    def went_back(value: Json) -> bool:
        """This recorded answer is that of a commit that ended its process."""
        return isinstance(value, dict) and _WENT_BACK in value

    @staticmethod
    def undone() -> str:
        """What a commit answers on a branch that was made current again by `undo`."""
        return _text(
            {"error": "This rewind was undone by a person; you are on this branch again. Go on from here."}
        )

    def _listing(self, timeline: Timeline, view: View) -> JsonObject:
        answer = listing(view)
        if self._options.max_rewinds is not None:
            answer["rewinds_left"] = max(0, self._options.max_rewinds - count_rewinds(timeline))
        return answer

    def _over_budget(self, timeline: Timeline) -> str | None:
        limit = self._options.max_rewinds
        if limit is None or count_rewinds(timeline) < limit:
            return None
        return f"No rewind is left (of {limit}). Go on from the present state."

    def _commit(self, timeline: Timeline, arguments: JsonObject, record_uid: RecordUid) -> Outcome:
        target = _target(arguments)
        if Ablation.CONTEXT in self._options.ablations:
            node = timeline.nodes[target]
            assert isinstance(node, LlmNode)
            restored = self._restore_in_place(node)
            self._journal.write(restored, durable=True)
            return Outcome(value=_text({"files_are_back_at": target, "context": "kept as it is"}))
        segment = timeline.head + 1
        self._journal.write(
            RewindAsked(
                segment=segment,
                target=target,
                memory=str(arguments["memory_summary"]),
                reason=str(arguments.get("reason") or ""),
                asked_by=record_uid,
                by="agent",
                at=self._clock.now(),
            ),
            durable=True,
        )
        return Outcome(value={_WENT_BACK: target, "segment": segment}, rewinds=True)


def view_of(timeline: Timeline, *, asking: RecordUid | None, not_restored: tuple[str, ...] = ()) -> View:
    """What candidates are made from, out of the log."""
    stands_for: dict[RecordUid, RecordUid] = {}
    for number in timeline.segments:
        fork = fork_of(timeline, number)
        first = next((node for node in timeline.own_nodes(number) if isinstance(node, LlmNode)), None)
        if fork is not None and not fork.inclusive and fork.record_uid is not None and first is not None:
            stands_for[fork.record_uid] = first.record_uid
    return View(
        path=timeline.path(),
        asking=asking,
        known=timeline.nodes,
        notes=timeline.memories(),
        stands_for=stands_for,
        whole=frozenset(node.record_uid for node in timeline.checkpoints()),
        not_restored=(*not_restored, *left_out_last(timeline)),
    )


def left_out_last(timeline: Timeline) -> tuple[str, ...]:
    """What the path rules kept out of the newest snapshot of the current path, each with its reason."""
    for node in reversed(timeline.path()):
        for span in node.metadata.workspaces.values():
            if span.after_commit is not None or span.before_commit is not None:
                return span.left_out
    return ()


def count_rewinds(timeline: Timeline) -> int:
    """Rewinds by the agent so far, on all branches, those without context included."""
    count = 0
    for number in timeline.segments:
        for event in timeline.events(number):
            if isinstance(event, RewindAsked | Restored) and event.by == "agent":
                count += 1
    return count


def _problem(arguments: Json) -> str | None:
    if not isinstance(arguments, dict):
        return "The arguments are no JSON object; record_uid and memory_summary are needed."
    for name in ("record_uid", "memory_summary"):
        value = arguments.get(name)
        if not isinstance(value, str) or not value.strip():
            return f"`{name}` is missing or empty. Both record_uid and memory_summary are needed."
    return None


def _target(arguments: JsonObject) -> RecordUid:
    return RecordUid(str(arguments["record_uid"]).strip())


def _text(value: JsonObject) -> str:
    return orjson.dumps(_readable(value)).decode()


def _readable(value: Json) -> Json:
    """The value as a model can be shown it: bytes and broken characters as escapes."""
    match value:
        case str():
            return value.encode("utf-8", "backslashreplace").decode()
        case bytes():
            return value.decode("utf-8", "backslashreplace")
        case list():
            return [_readable(each) for each in value]
        case dict():
            return {name: _readable(each) for name, each in value.items()}
        case _:
            return value
