"""Compares two nodes, or the paths of two runs, by what was asked and what came back. Pure.

Ids that providers make up for tool calls differ in every run and say nothing: where two runs are compared
they are numbered by their first appearance, and the workspace's own path is replaced by a name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from agentrewind.difference import first_difference
from agentrewind.identity import canonical_bytes
from agentrewind.records import Json, JsonObject, LlmNode, Node, RecordUid

WORKSPACE = "<workspace>"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeView:
    """A node with all that is compared of it; an LLM node with its full message list.

    Attributes:
        asked: what else the call was made with: model, parameters and tools, or name and arguments.
        gave: answer (content and calls, without what only this one answer has, such as its id) or result.
    """

    uid: RecordUid
    kind: str
    messages: tuple[Json, ...]
    asked: JsonObject
    gave: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageDifference:
    """Where two message lists part: `common` are equal at the beginning, `tail` at the end."""

    common: int
    tail: int
    only_left: tuple[Json, ...]
    only_right: tuple[Json, ...]

    @property
    def any(self) -> bool:
        return bool(self.only_left or self.only_right)


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldDifference:
    """A part of two nodes that differs; `first` words the first difference."""

    left: Json
    right: Json
    first: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeDifference:
    """What differs between two nodes: their messages, and by name whatever else does."""

    left: RecordUid
    right: RecordUid
    messages: MessageDifference
    fields: Mapping[str, FieldDifference]

    def to_json(self) -> JsonObject:
        """As `diff --json` prints it."""
        return {
            "left": self.left,
            "right": self.right,
            "messages": {
                "common": self.messages.common,
                "tail": self.messages.tail,
                "left": list(self.messages.only_left),
                "right": list(self.messages.only_right),
            },
            "fields": {
                name: {"left": each.left, "right": each.right, "first": each.first}
                for name, each in self.fields.items()
            },
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Parting:
    """The first place at which two paths differ.

    Attributes:
        common: nodes before it, the same on both.
        left, right: the nodes there; None where that path has ended.
        what: `asked`, `answered` (or the tool's result), `kind` or `length`.
        difference: the first difference, on one line.
    """

    common: int
    left: RecordUid | None
    right: RecordUid | None
    what: str
    difference: str

    def to_json(self) -> JsonObject:
        """As `diff --json` prints it."""
        return {
            "common": self.common,
            "left": self.left,
            "right": self.right,
            "what": self.what,
            "difference": self.difference,
        }


def view_of(node: Node, messages: Sequence[JsonObject] = ()) -> NodeView:
    """A node as it is compared; `messages` is an LLM node's full list."""
    error: Json = None if node.error is None else f"{node.error.type}: {node.error.message}"
    if isinstance(node, LlmNode):
        output = node.output or {}
        return NodeView(
            uid=node.record_uid,
            kind="llm",
            messages=tuple(messages),
            asked={"model": node.model, "parameters": dict(node.parameters), "tools": node.tools},
            gave={
                "answer": output.get("content"),
                "tool_calls": output.get("tool_calls") or None,
                "error": error,
            },
        )
    return NodeView(
        uid=node.record_uid,
        kind="tool",
        messages=(),
        asked={"tool_name": node.tool_name, "arguments": node.arguments},
        gave={"result": node.output, "error": error, "interrupted": node.interrupted},
    )


def compare_messages(left: Sequence[Json], right: Sequence[Json]) -> MessageDifference:
    """Where the two lists differ: what is between an equal beginning and an equal end."""
    common = _equal(left, right)
    tail = _equal(left[common:][::-1], right[common:][::-1])
    return MessageDifference(
        common=common,
        tail=tail,
        only_left=tuple(left[common : len(left) - tail]),
        only_right=tuple(right[common : len(right) - tail]),
    )


def compare_nodes(left: NodeView, right: NodeView) -> NodeDifference:
    """Everything in which two nodes differ."""
    ours: JsonObject = {"kind": left.kind, **left.asked, **left.gave}
    theirs: JsonObject = {"kind": right.kind, **right.asked, **right.gave}
    fields: dict[str, FieldDifference] = {}
    for name in [*ours, *(name for name in theirs if name not in ours)]:
        one, other = ours.get(name), theirs.get(name)
        if not _same(one, other):
            first = first_difference({name: one}, {name: other}, sides=("left", "right"))
            fields[name] = FieldDifference(left=one, right=other, first=first)
    return NodeDifference(
        left=left.uid,
        right=right.uid,
        messages=compare_messages(left.messages, right.messages),
        fields=fields,
    )


def parting(left: Iterable[NodeView], right: Iterable[NodeView], *, answers: bool = False) -> Parting | None:
    """The first place at which two paths differ, None where they are the same.

    With `answers` it only matters what the model said and called: prompts, tools and results may differ.

    As on replay, the model's name and a request's parameters do not count. Paths are read no further than
    that place.
    """
    ours, theirs = iter(left), iter(right)
    for place, (one, other) in enumerate(zip_longest(ours, theirs)):
        if one is None or other is None:
            return _longer(place, one, other, rest=sum(1 for _ in (theirs if one is None else ours)))
        if (found := _parts(one, other, answers=answers)) is not None:
            return Parting(common=place, left=one.uid, right=other.uid, what=found[0], difference=found[1])
    return None


class Comparable:
    """Makes views comparable between runs: without ids of calls, and without where the workspace stands.

    Equal messages of all its paths become one object, so that lists that grow are compared cheaply.
    """

    def __init__(self) -> None:
        self._one: dict[bytes, Json] = {}

    def path(self, views: Iterable[NodeView], *, root: str) -> Iterator[NodeView]:
        """The views of one run, in order."""
        clean = _Cleaner(root)
        seen: dict[int, tuple[Json, Json]] = {}

        def message(value: Json) -> Json:
            known = seen.get(id(value))
            if known is None:
                cleaned = clean(value)
                # the value itself is kept, or its id might come to stand for another one
                known = seen[id(value)] = value, self._one.setdefault(canonical_bytes(cleaned), cleaned)
            return known[1]

        for view in views:
            clean.learn(view)
            yield replace(
                view,
                messages=tuple(map(message, view.messages)),
                asked={key: clean(value) for key, value in view.asked.items()},
                gave={key: clean(value) for key, value in view.gave.items()},
            )


class _Cleaner:
    def __init__(self, root: str) -> None:
        self._root = root
        self._names: dict[str, str] = {}

    def learn(self, view: NodeView) -> None:
        for identity in _call_ids(view):
            self._names.setdefault(identity, f"call {len(self._names) + 1}")

    def __call__(self, value: Json) -> Json:
        match value:
            case str():
                return self._names.get(value) or (
                    value.replace(self._root, WORKSPACE) if self._root else value
                )
            case list():
                return [self(item) for item in value]
            case dict():
                return {key: self(item) for key, item in value.items()}
            case _:
                return value


def _longer(place: int, left: NodeView | None, right: NodeView | None, *, rest: int) -> Parting:
    side = "left" if right is None else "right"
    return Parting(
        common=place,
        left=left.uid if left else None,
        right=right.uid if right else None,
        what="length",
        difference=f"only the {side} one goes on, with {rest + 1} node(s)",
    )


def _call_ids(node: NodeView) -> list[str]:
    calls = node.gave.get("tool_calls")
    ids = [call.get("id") for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    return [each for each in ids if isinstance(each, str) and each]


def _parts(left: NodeView, right: NodeView, *, answers: bool) -> tuple[str, str] | None:
    if left.kind != right.kind:
        return "kind", f"left is a call of {_callee(left)}, right of {_callee(right)}"
    if not (answers and left.kind == "llm") and not _asked_same(left, right):
        ours: JsonObject = {"messages": list(left.messages), **_matched(left.asked)}
        theirs: JsonObject = {"messages": list(right.messages), **_matched(right.asked)}
        return "asked", first_difference(ours, theirs, sides=("left", "right"))
    if not (answers and left.kind == "tool") and not _same(left.gave, right.gave):
        return "answered", first_difference(left.gave, right.gave, sides=("left", "right"))
    return None


def _asked_same(left: NodeView, right: NodeView) -> bool:
    # message by message: those that are known to be equal are one object, and cost nothing
    return (
        len(left.messages) == len(right.messages)
        and _equal(left.messages, right.messages) == len(left.messages)
        and _same(_matched(left.asked), _matched(right.asked))
    )


def _matched(asked: JsonObject) -> JsonObject:
    return {key: value for key, value in asked.items() if key not in ("model", "parameters")}


def _callee(node: NodeView) -> str:
    return "the model" if node.kind == "llm" else f"the tool {node.asked.get('tool_name')!s}"


def _equal(one: Sequence[Json], other: Sequence[Json]) -> int:
    """How many items at the beginning are the same."""
    for place, (left, right) in enumerate(zip(one, other, strict=False)):
        if not _same(left, right):
            return place
    return min(len(one), len(other))


def _same(left: Json, right: Json) -> bool:
    # Python holds 1, True and 1.0 for equal, the log does not
    return left is right or (left == right and canonical_bytes(left) == canonical_bytes(right))
