"""Finds for a tool call the answer that asked for it, and its place among the calls of that answer."""

from __future__ import annotations

import threading

from agentrewind.backup.briefing import TAG
from agentrewind.named_calls import named_calls, parent_of
from agentrewind.records import LlmNode, RecordUid
from agentrewind.replay_decisions import ToolKey
from agentrewind.rewind.candidates import answer_text


class Answers:
    """What the model has answered in this process. The caller holds a lock around `heard` and `place`.

    Attributes:
        last: the node of the last answer, whoever got it; None before the first.
    """

    def __init__(self) -> None:
        self.last: RecordUid | None = None
        self._parents: dict[str, RecordUid] = {}
        self._ordinals: dict[tuple[RecordUid | None, str | None], int] = {}
        self._waiting: list[tuple[str, str]] = []
        self._tagged: set[RecordUid] = set()
        self._here = threading.local()

    @property
    def here(self) -> LlmNode | None:
        """The last answer that a call made in this thread got."""
        found: LlmNode | None = getattr(self._here, "answer", None)
        return found

    def heard(self, node: LlmNode) -> None:
        """This answer came, in this thread."""
        self._here.answer = node
        self.last = node.record_uid
        if TAG in answer_text(node):
            self._tagged.add(node.record_uid)
        self._parents.update(parent_of(node))
        self._waiting = named_calls(node)

    def is_tagged(self, uid: RecordUid | None) -> bool:
        """The answer asked for a backup before what it does."""
        return uid in self._tagged

    def place(self, name: str, call_id: str | None, parent: RecordUid | None) -> ToolKey:
        """The call's place among the recorded ones, which is given out once.

        Without `parent` it belongs to the answer that named its id, or to the last one; without an id as
        well it takes that of the first call of its name in the last answer that has no result yet.
        """
        if parent is None:
            call_id = self._open_call(name) if call_id is None else call_id
            parent = self._parents.get(call_id, self.last) if call_id else self.last
        ordinal = self._ordinals.get((parent, call_id), 0)
        self._ordinals[parent, call_id] = ordinal + 1
        return (parent, call_id, ordinal)

    def _open_call(self, name: str) -> str | None:
        for index, (waiting, call_id) in enumerate(self._waiting):
            if waiting == name:
                del self._waiting[index]
                return call_id
        return None
