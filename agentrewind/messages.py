"""Resolves message lists that are recorded by reference to an earlier node's."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain

from agentrewind.errors import DamagedError
from agentrewind.records import JsonObject, LlmNode, Node, RecordUid

_REMEMBERED = 16


class Conversations:
    """The full message lists of a run's LLM nodes; cheap when asked for in order."""

    def __init__(self, nodes: Mapping[RecordUid, Node]) -> None:
        self._nodes = nodes
        self._recent: dict[RecordUid, tuple[JsonObject, ...]] = {}

    def messages(self, uid: RecordUid) -> tuple[JsonObject, ...]:
        """The list that node `uid` sent. Raises DamagedError naming the node it cannot be built without."""
        pending: list[LlmNode] = []
        resolved: tuple[JsonObject, ...] | None = ()
        current: RecordUid | None = uid
        seen: set[RecordUid] = set()
        while current is not None and (resolved := self._recent.get(current)) is None:
            if current in seen:
                raise DamagedError(f"the messages of {uid} build on themselves by way of {current}")
            seen.add(current)
            node = self._llm_node(current, asked=uid)
            pending.append(node)
            current = node.messages.base
        found = resolved or ()
        for node in reversed(pending):
            found = _extended(found, node)
            self._remember(node.record_uid, found)
        return found

    def _llm_node(self, uid: RecordUid, *, asked: RecordUid) -> LlmNode:
        node = self._nodes.get(uid)
        if isinstance(node, LlmNode):
            return node
        state = "is missing or damaged" if node is None else "is a tool call and has no messages"
        raise DamagedError(f"the messages of {asked} cannot be put together: {uid} {state}")

    def _remember(self, uid: RecordUid, messages: tuple[JsonObject, ...]) -> None:
        self._recent[uid] = messages
        if len(self._recent) > _REMEMBERED:
            del self._recent[next(iter(self._recent))]


def _extended(base: tuple[JsonObject, ...], node: LlmNode) -> tuple[JsonObject, ...]:
    keep = node.messages.keep
    if not 0 <= keep <= len(base):
        raise DamagedError(
            f"the messages of {node.record_uid} cannot be put together: it keeps {keep} of "
            f"{node.messages.base or 'no node'}, which has {len(base)}"
        )
    if not keep:
        return node.messages.append
    return tuple(chain(base[:keep], node.messages.append))
